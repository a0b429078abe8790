//! Data in both directions, of every length, with every suite.

use super::*;

#[test]
fn every_suite_carries_data_both_ways() {
    for suite in suites() {
        let (mut client, mut session) = pair(suite);
        for bytes in [1, 2, 15, 16, 17, 1368, 1369, 1370, 16_383, 16_384, 16_385, 200_000] {
            let data = noise(bytes);
            let records = client.seal(&data);
            assert_eq!(open_data(&mut session, records), data, "{suite:?}: {bytes} received");

            let mut out = Vec::new();
            let (head, body) = data.split_at(bytes / 3);
            session.seal(Content::ApplicationData, &[head, b"", body], &mut out).unwrap();
            assert_eq!(client.receive(&out).unwrap(), data, "{suite:?}: {bytes} sent");
        }
    }
}
