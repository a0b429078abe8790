//! Two lists of parts never have one identity.

use super::*;

#[test]
fn it_is_told_by_every_part_and_by_where_each_ends() {
    let lists: [&[&[u8]]; 7] =
        [&[], &[b""], &[b"", b""], &[b"ab"], &[b"a", b"b"], &[b"b", b"a"], &[b"ab", b""]];
    for (n, one) in lists.iter().enumerate() {
        for (m, other) in lists.iter().enumerate() {
            assert_eq!(ContextId::of(one) == ContextId::of(other), n == m, "{one:?}, {other:?}");
        }
    }
}

/// The hosts of a fleet come to the same one, whatever version they run: this value is for ever.
#[test]
fn it_is_the_same_everywhere() {
    let id = ContextId::of(&[b"required", b"ca"]);
    let hex: String = id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "f7a6a285fed317b0d6de319dc34384f602487a8d82bf7d18057be1c7f0163eaf");
    assert_eq!(format!("{id:?}"), format!("ContextId({})", &hex[..8]));
}
