//! Whether what has come back is what a case expects, and what every response must be:
//!
//! - it is of HTTP/1.1, with a status and its phrase (RFC 9112 §4), and no field comes twice;
//! - it has a `Date` in the one form that may be written (RFC 9110 §5.6.7, §6.6.1), and `Server`;
//! - it has one `Content-Length`, but for 204 and 304 (RFC 9110 §8.6), and never `Transfer-Encoding`;
//! - the last one, and no other, says `Connection: close` (RFC 9112 §9.6);
//! - 405 and the answer to OPTIONS say `Allow` (RFC 9110 §9.3.7, §15.5.6), nothing else does.

use std::collections::HashSet;

use super::case::Body;
use super::pure::Outcome;
use super::{Answer, Case};

/// Holds all that has come back against what is expected.
pub(super) fn judge(case: &Case, outcome: &Outcome) -> Result<(), String> {
    let mut rest = &*outcome.bytes;
    for (at, answer) in case.answers.iter().enumerate() {
        let is_last = case.closes && at + 1 == case.answers.len();
        // A peer that has ended its side is not told: it may have been answered before.
        let says_so = (!case.ends).then_some(is_last);
        rest = judge_answer(answer, rest, says_so)
            .map_err(|what| format!("answer {} of {}: {what}", at + 1, case.answers.len()))?;
    }
    if !rest.is_empty() {
        return Err("more answers than expected".to_owned());
    }
    match (outcome.is_over, case.closes) {
        (true, false) => Err("the connection is over".to_owned()),
        (false, true) => Err("the connection lives on".to_owned()),
        _ => Ok(()),
    }
}

/// Holds the first of these responses against an answer; returns those that follow.
fn judge_answer<'a>(
    answer: &Answer,
    bytes: &'a [u8],
    says_close: Option<bool>,
) -> Result<&'a [u8], String> {
    let mut places = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut places);
    let Ok(httparse::Status::Complete(head_bytes)) = head.parse(bytes) else {
        return Err("no head of a response".to_owned());
    };
    let field = |name: &str| {
        let field = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        field.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    let status = head.code.unwrap_or_default();
    if (head.version, status) != (Some(1), answer.status) {
        return Err(format!("{status}, not {}", answer.status));
    }
    let names: HashSet<_> =
        head.headers.iter().map(|field| field.name.to_ascii_lowercase()).collect();
    if names.len() != head.headers.len() {
        return Err("a field comes twice".to_owned());
    }
    let date = field("Date").and_then(|date| httpdate::parse_http_date(&date).ok().zip(Some(date)));
    if date.is_none_or(|(time, date)| httpdate::fmt_http_date(time) != date) {
        return Err("no date".to_owned());
    }
    let has_length = !matches!(status, 204 | 304);
    let has_allow = matches!(status, 204 | 405);
    for (name, is_there) in [
        ("Server", Some(true)),
        ("Content-Length", Some(has_length)),
        ("Transfer-Encoding", Some(false)),
        ("Allow", Some(has_allow)),
    ] {
        if is_there.is_some_and(|is_there| field(name).is_some() != is_there) {
            return Err(format!("{name}: {:?}", field(name)));
        }
    }
    if says_close.is_some_and(|says| (field("Connection").as_deref() == Some("close")) != says) {
        return Err(format!("Connection: {:?}", field("Connection")));
    }
    for (name, value) in &answer.fields {
        if field(name).as_ref() != Some(value) {
            return Err(format!("{name}: {:?}, not {value:?}", field(name)));
        }
    }
    if let Some(name) = answer.lacks.iter().find(|name| field(name).is_some()) {
        return Err(format!("{name}: {:?}", field(name)));
    }

    let length = field("Content-Length").map(|length| length.parse().map_err(|_| length));
    let length = length.transpose().map_err(|length| format!("Content-Length: {length}"))?;
    let body_bytes = match answer.body {
        Body::None => 0,
        Body::Omitted(expected) => {
            if expected.is_some() && expected != length || length == Some(0) && expected.is_none() {
                return Err(format!("the length of another body: {length:?}"));
            }
            0
        }
        Body::Is(_) | Body::Page | Body::Parts(..) => length.unwrap_or_default(),
    };
    let body = bytes.get(head_bytes..head_bytes + body_bytes).ok_or("the body is cut off")?;
    let is_right = match &answer.body {
        Body::None | Body::Omitted(_) => true,
        Body::Is(expected) => body == expected,
        Body::Page => {
            field("Content-Type").as_deref() == Some("text/html; charset=utf-8")
                && memchr::memmem::find(body, status.to_string().as_bytes()).is_some()
        }
        Body::Parts(parts, file) => {
            let content_type = field("Content-Type").unwrap_or_default();
            let boundary = boundary(content_type.as_bytes()).ok_or("no boundary")?;
            body == multipart(boundary, parts, file)
        }
    };
    if !is_right {
        return Err(format!("another body: {}", body.escape_ascii()));
    }
    Ok(&bytes[head_bytes + body_bytes..])
}

fn boundary(head: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"multipart/byteranges; boundary=";
    let start = memchr::memmem::find(head, NAME)? + NAME.len();
    let end = head[start..].iter().position(|byte| byte.is_ascii_control());
    Some(&head[start..][..end.unwrap_or(head.len() - start)])
}

/// Parts of a file of no known type, as RFC 9110 §14.6 has them.
fn multipart(boundary: &[u8], parts: &[(usize, usize)], file: &[u8]) -> Vec<u8> {
    let boundary = boundary.escape_ascii();
    let mut body = Vec::new();
    for (at, &(first, last)) in parts.iter().enumerate() {
        let line_end = if at == 0 { "" } else { "\r\n" };
        let head = format!(
            "{line_end}--{boundary}\r\nContent-Type: application/octet-stream\r\n\
             Content-Range: bytes {first}-{last}/{}\r\n\r\n",
            file.len()
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&file[first..=last]);
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    body
}

/// The same bytes without what may differ from one time to the next: dates, and the boundaries of
/// parts. A peer that has ended its side may or may not have been told that an answer is the last.
pub(super) fn masked(answers: &[u8], case: &Case) -> Vec<u8> {
    const DATE: &[u8] = b"\r\nDate: ";
    const DATE_BYTES: usize = 29;
    const CLOSE: &[u8] = b"Connection: close\r\n";
    let mut masked = answers.to_vec();
    for at in memchr::memmem::find_iter(answers, DATE) {
        let date = masked[at + DATE.len()..].iter_mut().take(DATE_BYTES);
        date.for_each(|byte| *byte = b'*');
    }
    let mut from = 0;
    while let Some(found) = boundary(&answers[from..]) {
        for at in memchr::memmem::find_iter(answers, found) {
            masked[at..][..found.len()].fill(b'*');
        }
        from = found.as_ptr_range().end.addr() - answers.as_ptr().addr();
    }
    if case.ends {
        while let Some(at) = memchr::memmem::find(&masked, CLOSE) {
            masked.drain(at..at + CLOSE.len());
        }
    }
    masked
}
