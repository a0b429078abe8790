//! The first bytes of a connection: what is a record, and which name is asked for.

use proptest::prelude::*;

use super::super::hello::{Assembly, Hello};
use super::*;

/// What is known of the length of a record.
type Known = Result<Option<usize>, Fault>;

#[test]
fn the_first_bytes_say_what_is_spoken() {
    let table: &[(&[u8], Known)] = &[
        (b"", Ok(None)),
        (&[22], Ok(None)),
        (&[22, 3, 1, 2], Ok(None)),
        (&[22, 3, 1, 2, 0], Ok(Some(517))),
        (&[22, 3, 3, 0x40, 0], Ok(Some(5 + (1 << 14)))),
        (&[22, 3, 3, 0x40, 1], Err(Fault::RecordOverflow)),
        (&[21, 3, 1, 0, 2], Ok(Some(7))),
        (&[22, 2], Err(Fault::NotTls)),
        (&[22, 4, 0, 0, 0], Err(Fault::NotTls)),
        (b"G", Ok(None)),
        (b"GET", Ok(None)),
        (b"GET ", Err(Fault::PlainHttp)),
        (b"GET / HTTP/1.1\r\n", Err(Fault::PlainHttp)),
        (b"OPTIONS * HTTP/1.1\r\n", Err(Fault::PlainHttp)),
        (b"PRI * HTTP/2.0\r\n", Err(Fault::PlainHttp)),
        (b"PROPFIND / HTTP/1.1\r\n", Err(Fault::PlainHttp)),
        (b"GARBAGE!", Err(Fault::NotTls)),
        (b"AB C", Err(Fault::NotTls)),
        (b"ABCDEFGHIJKLMNOPQ ", Err(Fault::NotTls)),
        (b"GEt /", Err(Fault::NotTls)),
        (b"SSH-2.0-OpenSSH", Err(Fault::NotTls)),
        (b"\r\n", Err(Fault::NotTls)),
        (&[0x80], Ok(None)),
        (&[0x80, 0x2e, 1, 0, 2], Err(Fault::Ssl2Hello)),
        (&[0x80, 0x2e, 4, 0, 2], Err(Fault::NotTls)),
        (&[0], Err(Fault::NotTls)),
    ];
    for (prefix, expected) in table {
        assert_eq!(record_bytes(prefix, Stage::First), *expected, "{prefix:?}");
    }
}

#[test]
fn later_records_may_be_longer_by_what_sealing_adds() {
    for (stage, growth) in [
        (Stage::First, 0),
        (Stage::Handshake, 2048),
        (Stage::Session(Version::Tls12), 2048),
        (Stage::Session(Version::Tls13), 256),
    ] {
        let header = |bytes: usize| {
            let [high, low] = u16::try_from(bytes).unwrap().to_be_bytes();
            [23, 3, 3, high, low]
        };
        let longest = (1 << 14) + growth;
        assert_eq!(record_bytes(&header(longest), stage), Ok(Some(5 + longest)));
        assert_eq!(record_bytes(&header(longest + 1), stage), Err(Fault::RecordOverflow));
    }
    assert_eq!(record_bytes(b"GET / ", Stage::Handshake), Err(Fault::Unexpected));
}

proptest! {
    #[test]
    fn more_bytes_never_change_what_is_known(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
        for stage in [Stage::First, Stage::Handshake, Stage::Session(Version::Tls13)] {
            let mut known = Ok(None);
            for length in 0..=bytes.len() {
                let now = record_bytes(&bytes[..length], stage);
                if known != Ok(None) {
                    prop_assert_eq!(now, known);
                }
                known = now;
            }
        }
    }

    #[test]
    fn a_hello_in_any_pieces_has_the_same_name(cuts in proptest::collection::vec(1_usize..90, 1..40)) {
        let hello = client_hello("Some.Example");
        let mut records = Vec::new();
        let (mut rest, mut cuts) = (&hello[HEADER_BYTES..], cuts.iter().cycle());
        let mut assembly = Assembly::default();
        while !rest.is_empty() {
            prop_assert_eq!(assembly.read(&records), Hello::Partial);
            let (piece, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            records.extend_from_slice(&[22, 3, 1, 0, piece.len() as u8]);
            records.extend_from_slice(piece);
            rest = later;
        }
        prop_assert_eq!(assembly.read(&records), Hello::Whole(Some("some.example".into())));
        prop_assert_eq!(read(&records), Hello::Whole(Some("some.example".into())));
    }

    #[test]
    fn a_changed_hello_does_no_harm(place in 0_usize..300, byte in any::<u8>(), length in 0_usize..300) {
        let mut hello = client_hello("some.example");
        let place = place % hello.len();
        hello[place] = byte;
        hello.truncate(length.max(place + 1));
        let _ = read(&hello);
        let mut handshake = Handshake::new(Arc::clone(&SERVER));
        handshake.push(&hello);
        let _ = handshake.advance();
    }
}

/// Reads a hello whose records have come at once.
fn read(records: &[u8]) -> Hello {
    Assembly::default().read(records)
}

static SERVER: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| Arc::new(server_config()));

/// A ClientHello for this name, in one record.
fn client_hello(name: &str) -> Vec<u8> {
    // With the default groups it would be larger than one byte can say.
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups.retain(|group| group.name() == rustls::NamedGroup::X25519);
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let [hello] = Client { connection }.sent().try_into().unwrap();
    hello
}

#[test]
fn the_dot_of_the_root_is_no_part_of_a_name() {
    let mut hello = client_hello("some.examplex");
    let place = hello.windows(13).position(|bytes| bytes == b"some.examplex").unwrap();
    hello[place + 12] = b'.';
    assert_eq!(read(&hello), Hello::Whole(Some("some.example".into())));
}

#[test]
fn an_address_is_no_name() {
    assert_eq!(read(&client_hello("127.0.0.1")), Hello::Whole(None));
}

#[test]
fn what_is_no_hello_has_no_name() {
    for records in [&[21, 3, 3, 0, 2, 1, 0][..], &[22, 3, 3, 0, 4, 2, 0, 0, 0], &[23, 3, 3, 0, 0]] {
        assert_eq!(read(records), Hello::Whole(None));
    }
    for records in [&[][..], &[22, 3, 3], &[22, 3, 3, 0, 0], &[22, 3, 3, 0, 1, 1]] {
        assert_eq!(read(records), Hello::Partial);
    }
}

/// Before TLS 1.2 there are no signature algorithms, which rustls would miss first.
#[test]
fn a_client_of_old_versions_alone_is_told_that_it_is_the_version() {
    let with_version = |version: [u8; 2], extensions: &[u8]| {
        let body = [&version[..], &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0], extensions].concat();
        let message = [&[1, 0, 0, u8::try_from(body.len()).unwrap()], &*body].concat();
        [&[22, 3, 1, 0, u8::try_from(message.len()).unwrap()], &*message].concat()
    };
    for version in [[3, 0], [3, 1], [3, 2]] {
        assert_eq!(read(&with_version(version, &[])), Hello::TooOld, "{version:?}");
        let listed = [0, 7, 0, 43, 0, 3, 2, 3, 4];
        assert_eq!(read(&with_version(version, &listed)), Hello::Whole(None), "{version:?}");
    }
    assert_eq!(read(&with_version([3, 3], &[])), Hello::Whole(None));
}
