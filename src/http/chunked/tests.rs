//! Bodies by what is good and what is bad in them, then properties.

use proptest::prelude::*;

use super::*;

const LIMITS: HeadLimits = HeadLimits { request_line_bytes: 100, head_bytes: 100, fields: 3 };
const DATA_BYTES_MAX: u64 = 1000;

/// The data of a body that comes in pieces of these sizes and is then followed by `NEXT`, and how
/// many bytes of it were taken; `None` if it does not end.
fn decode_by(input: &[u8], piece_bytes: &[usize]) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    let mut decoder = Decoder::new(DATA_BYTES_MAX);
    let (mut data, mut taken) = (Vec::new(), 0);
    let mut sizes = piece_bytes.iter().copied().chain(std::iter::repeat(usize::MAX));
    while taken < input.len() {
        let end = taken.saturating_add(sizes.next().expect("it is endless").max(1));
        let piece = decoder.decode(&input[taken..end.min(input.len())], &LIMITS)?;
        assert!(piece.bytes > 0 && piece.data.len() <= piece.bytes);
        taken += piece.bytes;
        data.extend_from_slice(piece.data);
        if piece.is_last {
            return Ok(Some((data, taken)));
        }
    }
    Ok(None)
}

fn decode(input: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    decode_by(input.as_ref(), &[])
}

#[test]
fn it_is_small() {
    assert!(size_of::<Decoder>() <= 24);
}

/// RFC 9112 §7.1
#[test]
fn good_bodies() {
    for (body, data) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("0005\r\nhello\r\n000\r\n\r\n", "hello"),
        ("000000000000000000005\r\nhello\r\n0000000000000000\r\n\r\n", "hello"),
        ("1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n\r\n", "hello"),
        ("7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n"),
        // §7.1.1
        ("5;a\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a=b\r\nhello\r\n0;c=d\r\n\r\n", "hello"),
        ("5;a=b;c;d=\"e\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a=\"\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a=\"\\\"\\\\;=\t\u{e9}\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5 ;a=b\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\t ;\t a \t=\t \"b\" ; c = d ;e\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a ;b\r\nhello\r\n0\r\n\r\n", "hello"),
        // §7.1.2
        ("5\r\nhello\r\n0\r\nX:\r\n\r\n", "hello"),
        ("5\r\nhello\r\n0\r\nHost: b\r\nContent-Length: 9\r\nX: \u{e9}\t\r\n\r\n", "hello"),
    ] {
        let input = [body, "GET"].concat();
        let expected = (data.as_bytes().to_vec(), body.len());
        assert_eq!(decode(&input), Ok(Some(expected)), "{body:?}");
        for end in 0..body.len() {
            assert_eq!(decode(&input.as_bytes()[..end]), Ok(None), "{body:?} until {end}");
        }
    }
}

#[test]
fn bad_bodies() {
    use Refusal::*;
    for (body, refusal) in [
        // Sizes.
        ("\r\nhello", ChunkSize),
        ("\nhello", ChunkSize),
        ("g\r\n", ChunkSize),
        (" 5\r\n", ChunkSize),
        ("+5\r\n", ChunkSize),
        ("-5\r\n", ChunkSize),
        (";a=b\r\n", ChunkSize),
        ("0x5\r\n", ChunkSize),
        ("5h\r\n", ChunkSize),
        ("5_0\r\n", ChunkSize),
        ("5,5\r\n", ChunkSize),
        ("5\0\r\n", ChunkSize),
        ("5\u{b}\r\n", ChunkSize),
        ("\u{665}\r\n", ChunkSize),
        ("5\u{a0}\r\n", ChunkSize),
        ("3e9\r\n", BodyTooLarge),
        ("fffffffffffffffff\r\n", BodyTooLarge),
        ("10000000000000005\r\n", BodyTooLarge),
        ("80000000\r\n", BodyTooLarge),
        // The ends of their lines.
        ("5\nhello", ChunkLineEnd),
        ("5\rhello", ChunkLineEnd),
        ("5\r\r\n", ChunkLineEnd),
        ("0\n\n", ChunkLineEnd),
        ("5;a\nb\r\n", ChunkLineEnd),
        ("5;a\rb\r\n", ChunkLineEnd),
        ("5;\nxx\r\n", ChunkLineEnd),
        ("5;a=\"\n\"\r\n", ChunkLineEnd),
        ("5;a=\"\r\n\"\r\n", ChunkLineEnd),
        ("5;a=\"\\\r\n\"\r\n", ChunkLineEnd),
        ("5;a=\"b\r\n", ChunkLineEnd),
        ("5;\r\n", ChunkLineEnd),
        ("5;a=\r\n", ChunkLineEnd),
        ("5 \r\n", ChunkLineEnd),
        ("5;a \r\n", ChunkLineEnd),
        ("5;a=b \r\n", ChunkLineEnd),
        // Extensions.
        ("5 5\r\n", ChunkExtension),
        ("5 a\r\n", ChunkExtension),
        ("5;=b\r\n", ChunkExtension),
        ("5;;a\r\n", ChunkExtension),
        ("5;a=;b\r\n", ChunkExtension),
        ("5;a==b\r\n", ChunkExtension),
        ("5;a=b=c\r\n", ChunkExtension),
        ("5;a b\r\n", ChunkExtension),
        ("5;a,b\r\n", ChunkExtension),
        ("5;a=b\"c\"\r\n", ChunkExtension),
        ("5;a=\"b\"c\r\n", ChunkExtension),
        ("5;a=\"\0\"\r\n", ChunkExtension),
        ("5;a=\"\u{7f}\"\r\n", ChunkExtension),
        ("5;\0\r\n", ChunkExtension),
        ("5;\u{e9}\r\n", ChunkExtension),
        // Data.
        ("3\r\nhello\r\n", ChunkDataEnd),
        ("7\r\nhello\r\n0\r\n\r\n", ChunkDataEnd),
        ("5\r\nhello\n0\r\n\r\n", ChunkDataEnd),
        ("5\r\nhello\r0\r\n\r\n", ChunkDataEnd),
        ("5\r\nhello\r\r\n", ChunkDataEnd),
        ("5\r\nhello0\r\n\r\n", ChunkDataEnd),
        ("5\r\nhello\r\n\r\n", ChunkSize),
        // Trailers.
        ("0\r\nbroken\r\n\r\n", TrailerLine),
        ("0\r\nX : 1\r\n\r\n", TrailerLine),
        ("0\r\n X: 1\r\n\r\n", TrailerLine),
        ("0\r\nX: 1\r\n Y: 2\r\n\r\n", TrailerLine),
        ("0\r\n: 1\r\n\r\n", TrailerLine),
        ("0\r\nX: 1\n\r\n", TrailerLine),
        ("0\r\nX: 1\r\n\n", TrailerLine),
        ("0\r\n\n", TrailerLine),
        ("0\r\nX: a\rb\r\n\r\n", TrailerLine),
        ("0\r\nX: a\0b\r\n\r\n", TrailerLine),
        ("0\r\n\rX", TrailerLine),
        ("0\r\nGET / HTTP/1.1\r\n\r\n", TrailerLine),
    ] {
        assert_eq!(decode([body, "0\r\n\r\n"].concat()), Err(refusal), "{body:?}");
    }
}

#[test]
fn data_has_its_limit_over_all_chunks() {
    let chunk = format!("{DATA_BYTES_MAX:x}\r\n{}\r\n", "a".repeat(DATA_BYTES_MAX as usize));
    let (data, _) = decode(chunk.clone() + "0\r\n\r\n").expect("it fits").expect("it ends");
    assert_eq!(data.len() as u64, DATA_BYTES_MAX);
    // What is too large is so before its line has ended.
    assert_eq!(decode(chunk.clone() + "1"), Err(Refusal::BodyTooLarge));
    assert_eq!(decode(chunk + "00001"), Err(Refusal::BodyTooLarge));
}

#[test]
fn the_longest_size_is_that_of_64_bits() {
    let mut decoder = Decoder::new(u64::MAX);
    let piece = decoder.decode(b"ffffffffffffffff\r\nabc", &LIMITS).expect("it is a size");
    assert_eq!((piece.data, piece.is_last), (&b"abc"[..], false));
    assert_eq!(decoder.decode(b"", &LIMITS).map(|piece| piece.bytes), Ok(0));
    let mut decoder = Decoder::new(u64::MAX);
    assert_eq!(decoder.decode(b"10000000000000000", &LIMITS), Err(Refusal::BodyTooLarge));
}

#[test]
fn zeros_in_front_of_a_size_are_framing() {
    let mut decoder = Decoder::new(5);
    assert!(decoder.decode(&[b'0'; FRAMING_BYTES as usize], &LIMITS).is_ok());
    assert_eq!(decoder.decode(b"0", &LIMITS), Err(Refusal::ChunkOverhead));
}

#[test]
fn a_chunk_for_each_byte_is_free() {
    let body = "1\r\na\r\n".repeat(DATA_BYTES_MAX as usize) + "0\r\n\r\n";
    let (data, taken) = decode(&body).expect("it is good").expect("it ends");
    assert_eq!((data.len() as u64, taken), (DATA_BYTES_MAX, body.len()));
}

#[test]
fn extensions_have_a_bound_that_grows_with_the_data() {
    let long = FRAMING_BYTES as usize - "5;\r\n".len();
    let body = |bytes| format!("5;{}\r\nhello", "e".repeat(bytes));
    assert_eq!(decode(body(long)), Ok(None));
    assert_eq!(decode(body(long + 1)), Err(Refusal::ChunkOverhead));
    // Endless, without an end of the line.
    assert_eq!(decode("5;".to_owned() + &"e".repeat(1 << 20)), Err(Refusal::ChunkOverhead));

    let chunk = format!("1;{}\r\na\r\n", "e".repeat(1000));
    assert_eq!(decode(chunk.repeat(16)), Ok(None));
    assert_eq!(decode(chunk.repeat(17)), Err(Refusal::ChunkOverhead));
    let data = format!("{DATA_BYTES_MAX:x}\r\n{}\r\n", "a".repeat(DATA_BYTES_MAX as usize));
    let last = format!("0;{}", "e".repeat(20_000));
    assert_eq!(decode(data + &last), Ok(None));
    assert_eq!(decode(last), Err(Refusal::ChunkOverhead));
}

#[test]
fn trailers_have_the_limits_of_a_head() {
    let trailers = |lines: usize| format!("0\r\n{}\r\n", "X: 1\r\n".repeat(lines));
    assert!(decode(trailers(LIMITS.fields)).is_ok_and(|body| body.is_some()));
    assert_eq!(decode(trailers(LIMITS.fields + 1)), Err(Refusal::TooManyTrailers));

    let longest = |bytes: usize| format!("0\r\nX: {}\r\n\r\n", "a".repeat(bytes - 7));
    assert!(decode(longest(LIMITS.head_bytes)).is_ok_and(|body| body.is_some()));
    assert_eq!(decode(longest(LIMITS.head_bytes + 1)), Err(Refusal::TrailerTooLong));

    let generous = HeadLimits { fields: usize::MAX, head_bytes: usize::MAX, ..LIMITS };
    let mut decoder = Decoder::new(0);
    let too_many = trailers(FIELDS_MAX + 1);
    let refused = decoder.decode(too_many.as_bytes(), &generous);
    assert_eq!(refused, Err(Refusal::TooManyTrailers));
}

/// Bodies that are dense in what the grammar is about, good ones among them.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "2\r\nhi\r\n",
        "1",
        "0",
        "a",
        "\r\n",
        "\r",
        "\n",
        ";",
        "=",
        "x",
        "\"",
        "\\",
        " ",
        "\t",
        "\0",
        "\u{e9}",
        ":",
        "X: y\r\n",
        ";n=\"v\"",
        "\r\n\r\n",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

/// An encoding of `data`: chunks of these sizes, each with its extensions.
fn encode(mut data: &[u8], chunks: &[(usize, &str)], trailers: &str) -> Vec<u8> {
    let mut body = Vec::new();
    let rest = std::iter::repeat(&(usize::MAX, ""));
    for &(bytes, extensions) in chunks.iter().chain(rest) {
        if data.is_empty() {
            break;
        }
        let (chunk, after) = data.split_at(bytes.clamp(1, data.len()));
        body.extend_from_slice(format!("{:X}{extensions}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
        data = after;
    }
    body.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    body
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        data in prop::collection::vec(any::<u8>(), 0..DATA_BYTES_MAX as usize),
        chunks in prop::collection::vec((1_usize..100, prop::sample::select(vec!["", ";a", " ; a=\"b;\\\"\""])), 0..20),
        trailers in prop::sample::select(vec!["", "X: y\r\n", "A:b\r\nTransfer-Encoding: chunked\r\n"]),
        pieces in prop::collection::vec(1_usize..40, 0..60),
    ) {
        let body = encode(&data, &chunks, trailers);
        let followed = [&body[..], b"GET / HTTP/1.1\r\n"].concat();
        prop_assert_eq!(decode_by(&followed, &pieces), Ok(Some((data, body.len()))));
    }

    #[test]
    fn it_does_not_matter_how_the_bytes_come(body in bodies(), pieces in prop::collection::vec(1_usize..8, 0..20)) {
        let whole = decode(&body);
        prop_assert_eq!(decode_by(&body, &pieces), whole.clone());
        prop_assert_eq!(decode_by(&body, &vec![1; body.len()]), whole);
    }

    #[test]
    fn nothing_panics(input in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode(input);
    }
}
