//! Chunked bodies: `http::chunked` against a decoder that needs the whole body, httparse, and itself.
//!
//! - A body is decoded if and only if the second decoder can, and to the same data.
//! - What is decoded has chunks of the sizes that httparse reads.
//! - It does not matter how the bytes come.
//! - What is refused no end makes good, and what is not has an end that makes it good.
//! - Limits decide exactly where they lie; that of sizes and extensions is reached by repetition.

use onering::http::chunked::{Decoder, FRAMING_BYTES, FRAMING_PER_DATA_BYTE};
use onering::http::{HeadLimits, Refusal};

use super::reference::{field, is_token, line};
use super::trim;

/// The most data, and what is allowed of trailers.
type Limits = (u64, HeadLimits);

/// Out of reach of an input that is looked at for its possible ends. As many ends are tried as there
/// may be data, so that is little.
const GENEROUS: Limits = (12, HeadLimits { request_line_bytes: 0, head_bytes: 400, fields: 100 });

/// Low enough to be reached.
const TIGHT: Limits = (40, HeadLimits { request_line_bytes: 0, head_bytes: 24, fields: 2 });

/// For repetition.
const LARGE: Limits = (1 << 20, HeadLimits { request_line_bytes: 0, head_bytes: 400, fields: 100 });

/// Inputs up to this are looked at for their possible ends.
const ENDED_BYTES: usize = 64;

/// Shorter inputs would have to be repeated too often.
const REPEATED_BYTES: usize = 48;

/// What may come first to end whatever has begun, of a chunk's line or of the trailers.
const ENDS: [&[u8]; 12] = [
    b"",
    b"\n",
    b"\r\n",
    b"\n\r\n",
    b"\r\n\r\n",
    b":\r\n\r\n",
    b"x\r\n",
    b";x\r\n",
    b"\"\r\n",
    b"x\"\r\n",
    b"0\r\n\r\n",
    b"\n0\r\n\r\n",
];

/// Checks the body at the start of `input`.
pub fn check(input: &[u8]) {
    for limits in [&GENEROUS, &TIGHT] {
        let said = decode(input, limits, &[usize::MAX]);
        agrees(&said, input, limits);
        assert_eq!(decode(input, limits, &[1]), said, "byte by byte");
        // In pieces whose lengths are drawn from the input itself.
        let pieces: Vec<_> = input.iter().map(|byte| usize::from(byte % 8) + 1).collect();
        assert_eq!(decode(input, limits, &pieces), said, "in pieces");
    }
    if input.len() <= ENDED_BYTES {
        can_be_ended(input);
    }
    if input.len() >= REPEATED_BYTES && decode(input, &LARGE, &[usize::MAX]) == Ok(None) {
        let often = 2 * FRAMING_BYTES as usize / input.len() + 1;
        let input = input.repeat(often);
        agrees(&decode(&input, &LARGE, &[usize::MAX]), &input, &LARGE);
    }
}

/// Data and length of a body, if it has ended.
type Decoded = Option<(Vec<u8>, usize)>;

/// Decodes a body that comes in pieces of these lengths, over and over.
fn decode(input: &[u8], limits: &Limits, pieces: &[usize]) -> Result<Decoded, Refusal> {
    let mut decoder = Decoder::new(limits.0);
    let (mut data, mut taken) = (Vec::new(), 0);
    let mut pieces = pieces.iter().cycle();
    while taken < input.len() {
        let bytes = pieces.next().map_or(usize::MAX, |&bytes| bytes);
        let end = taken.saturating_add(bytes).min(input.len());
        let piece = decoder.decode(&input[taken..end], &limits.1)?;
        assert!(piece.bytes > 0 && piece.bytes <= end - taken, "no progress");
        let place = piece.data.as_ptr_range();
        assert!(piece.data.is_empty() || input.as_ptr_range().contains(&place.start));
        taken += piece.bytes;
        data.extend_from_slice(piece.data);
        if piece.is_last {
            let after = decoder.decode(&input[taken..], &limits.1);
            assert!(after.is_ok_and(|piece| piece.bytes == 0 && piece.is_last), "there is more");
            return Ok(Some((data, taken)));
        }
    }
    Ok(None)
}

fn agrees(said: &Result<Decoded, Refusal>, input: &[u8], limits: &Limits) {
    match (said, read(input, limits)) {
        (Ok(Some((data, bytes))), Some(body)) => {
            let expected: Vec<u8> = body.chunks.concat();
            assert_eq!((data, *bytes), (&expected, body.bytes));
            agrees_with_httparse(&body, input);
        }
        (Ok(Some(_)), None) => panic!("decoded, and should not be: {said:?}"),
        (_, Some(body)) => panic!("{said:?}, and should be decoded: {body:?}"),
        (_, None) => {}
    }
}

fn agrees_with_httparse(body: &Body<'_>, input: &[u8]) {
    let mut rest = input;
    for chunk in body.chunks.iter().chain([&&b""[..]]) {
        match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((bytes, size))) => {
                assert_eq!(size, chunk.len() as u64);
                assert!(rest[bytes..].starts_with(chunk));
                rest = &rest[bytes + chunk.len()..];
                rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
            }
            // It has no place for more zeros than there are digits of 64 bits.
            Err(_) if rest.starts_with(&[b'0'; 2]) => return,
            other => panic!("httparse reads no size here: {other:?}"),
        }
    }
}

/// Holds a verdict on what has come against what may still come.
fn can_be_ended(input: &[u8]) {
    let is_good = |end: &[u8]| read(&[input, end].concat(), &GENEROUS).is_some();
    let data_ends =
        (0..=GENEROUS.0 as usize).map(|bytes| [&b"a".repeat(bytes)[..], b"\r\n0\r\n\r\n"].concat());
    let ends: Vec<_> = data_ends.chain([Vec::new()]).collect();
    let can = ENDS.iter().any(|begin| ends.iter().any(|end| is_good(&[begin, &end[..]].concat())));
    match decode(input, &GENEROUS, &[usize::MAX]) {
        Ok(_) => assert!(can, "not refused, and nothing makes it good"),
        Err(refusal) => assert!(!can, "{refusal:?}, and it can become good"),
    }
}

/// A body as the second decoder reads it.
#[derive(Debug)]
struct Body<'a> {
    chunks: Vec<&'a [u8]>,
    bytes: usize,
}

/// RFC 9112 §7.1, and the limits that the documentation of `http::chunked` states.
fn read<'a>(input: &'a [u8], limits: &Limits) -> Option<Body<'a>> {
    let (mut rest, mut chunks, mut data_bytes) = (input, Vec::new(), 0);
    loop {
        let (size_line, after) = line(rest)?;
        let size = size_of(size_line)?;
        rest = after;
        let is_within = |rest: &[u8], data_bytes: u64| {
            let framing_bytes = (input.len() - rest.len()) as u64 - data_bytes;
            let more = data_bytes * u64::from(FRAMING_PER_DATA_BYTE);
            framing_bytes <= u64::from(FRAMING_BYTES) + more
        };
        if !is_within(rest, data_bytes) || size > limits.0 - data_bytes {
            return None;
        }
        if size == 0 {
            break;
        }
        let (chunk, after) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        rest = after.strip_prefix(b"\r\n")?;
        data_bytes += size;
        chunks.push(chunk);
        if !is_within(rest, data_bytes) {
            return None;
        }
    }
    let (trailers, mut lines) = (rest, 0);
    loop {
        let (trailer, after) = line(rest)?;
        rest = after;
        if trailer.is_empty() {
            break;
        }
        field(trailer)?;
        lines += 1;
    }
    let is_within = trailers.len() - rest.len() <= limits.1.head_bytes && lines <= limits.1.fields;
    is_within.then_some(Body { chunks, bytes: input.len() - rest.len() })
}

fn size_of(line: &[u8]) -> Option<u64> {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let digits = line.iter().position(|byte| !is_digit(byte)).unwrap_or(line.len());
    let size = u64::from_str_radix(str::from_utf8(&line[..digits]).ok()?, 16).ok()?;
    are_extensions(&line[digits..]).then_some(size)
}

/// RFC 9112 §7.1.1: from the last to the first, since a quoted string may have anything in it.
fn are_extensions(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    // Where the first one ends, another begins, or nothing does.
    let Some(extension) = trim_start(text).strip_prefix(b";") else { return false };
    (0..=extension.len()).any(|end| {
        let (first, others) = extension.split_at(end);
        let may_end = others.is_empty() || trim_start(others).starts_with(b";");
        may_end && is_extension(first) && are_extensions(others)
    })
}

fn is_extension(text: &[u8]) -> bool {
    // Whitespace after it would be before what follows.
    if text.ends_with(b" ") || text.ends_with(b"\t") {
        return false;
    }
    let text = trim(text);
    match text.iter().position(|&byte| byte == b'=') {
        None => is_token(text),
        Some(equals) => {
            let (name, value) = (trim(&text[..equals]), trim(&text[equals + 1..]));
            is_token(name) && (is_token(value) || is_quoted(value))
        }
    }
}

/// RFC 9110 §5.6.4
fn is_quoted(text: &[u8]) -> bool {
    let [b'"', inner @ .., b'"'] = text else { return false };
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'"' => return false,
            b'\\' => match bytes.next() {
                Some(escaped) => escaped,
                None => return false,
            },
            byte => byte,
        };
        if *byte != b'\t' && (*byte < b' ' || *byte == 0x7f) {
            return false;
        }
    }
    true
}

fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}
