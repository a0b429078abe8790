//! Response heads: what `http::ResponseHead` writes is read back by httparse, field by field.
//!
//! Each byte of the input is a choice, until there are none left.

use httparse::{EMPTY_HEADER, Response};
use onering::http::{ByteRange, ContentRange, ImfDate, Persistence, ResponseHead, Status};

const STATUSES: [Status; 9] = [
    Status::OK,
    Status::NO_CONTENT,
    Status::PARTIAL_CONTENT,
    Status::MOVED_PERMANENTLY,
    Status::NOT_MODIFIED,
    Status::NOT_FOUND,
    Status::METHOD_NOT_ALLOWED,
    Status::RANGE_NOT_SATISFIABLE,
    Status::HTTP_VERSION_NOT_SUPPORTED,
];

/// Checks a head of these choices.
pub fn check(choices: &[u8]) {
    let mut choices = Choices(choices);
    let content_type = choices.text();
    let etag = choices.maybe(|choices| format!("\"{}\"", choices.text()));
    let location = choices.maybe(|choices| format!("/{}", choices.text().replace(' ', "%20")));
    let head = ResponseHead {
        status: STATUSES[usize::from(choices.byte()) % STATUSES.len()],
        content_type: choices.maybe(|_| content_type.as_str()),
        content_encoding: choices.maybe(|_| "br"),
        content_range: choices.maybe(|choices| ContentRange {
            range: choices.maybe(|choices| {
                let (one, other) = (choices.number(), choices.number());
                ByteRange { first: one.min(other), last: one.max(other) }
            }),
            complete_bytes: choices.number(),
        }),
        content_length: choices.maybe(Choices::number),
        etag: etag.as_deref().map(str::as_bytes),
        last_modified: choices.maybe(|choices| ImfDate::from_unix_s(choices.number() as i64)),
        accept_ranges: choices.maybe(|_| ()).is_some(),
        vary: choices.maybe(|_| "Accept-Encoding"),
        allow: choices.maybe(|_| "GET, HEAD, OPTIONS"),
        location: location.as_deref().map(str::as_bytes),
        retry_after_s: choices.maybe(|choices| choices.number() as u32),
        more: match choices.maybe(|_| ()) {
            Some(()) => b"X-More: more\r\n",
            None => b"",
        },
        persistence: match choices.byte() % 3 {
            0 => Persistence::KeepAlive,
            1 => Persistence::KeepAliveExplicit,
            _ => Persistence::Close,
        },
    };
    let date = ImfDate::from_unix_s(choices.number() as i64);

    let before = b"HTTP/1.1 200 OK\r\n\r\n";
    let mut out = before.to_vec();
    let date_at = head.write(&date, &mut out);
    assert!(out.starts_with(before));
    assert_eq!(out[date_at..][..ImfDate::BYTES], *date.as_bytes());
    says(&head, &date, &out[before.len()..]);
}

fn says(head: &ResponseHead<'_>, date: &ImfDate, written: &[u8]) {
    let mut places = [EMPTY_HEADER; 16];
    let mut response = Response::new(&mut places);
    let status = response.parse(written).expect("it can be read");
    assert_eq!(status, httparse::Status::Complete(written.len()));
    assert_eq!(response.version, Some(1));
    assert_eq!(response.code, Some(head.status.code()));
    assert_eq!(response.reason, Some(head.status.reason()));

    let text = |bytes: &[u8]| str::from_utf8(bytes).expect("it was text").to_owned();
    let content_range = head.content_range.map(|ContentRange { range, complete_bytes }| {
        let range = range.map(|ByteRange { first, last }| format!("{first}-{last}"));
        format!("bytes {}/{complete_bytes}", range.unwrap_or("*".to_owned()))
    });
    let connection = match head.persistence {
        Persistence::KeepAlive => None,
        Persistence::KeepAliveExplicit => Some("keep-alive"),
        Persistence::Close => Some("close"),
    };
    let expected = [
        ("Server", Some("onering".to_owned())),
        ("Date", Some(text(date.as_bytes()))),
        ("Content-Type", head.content_type.map(|value| value.trim_ascii().to_owned())),
        ("Content-Encoding", head.content_encoding.map(str::to_owned)),
        ("Content-Range", content_range),
        ("Content-Length", head.content_length.map(|bytes| bytes.to_string())),
        ("ETag", head.etag.map(text)),
        ("Last-Modified", head.last_modified.map(|date| text(date.as_bytes()))),
        ("Accept-Ranges", head.accept_ranges.then(|| "bytes".to_owned())),
        ("Vary", head.vary.map(str::to_owned)),
        ("Allow", head.allow.map(str::to_owned)),
        ("Location", head.location.map(text)),
        ("Retry-After", head.retry_after_s.map(|seconds| seconds.to_string())),
        ("X-More", (!head.more.is_empty()).then(|| "more".to_owned())),
        ("Connection", connection.map(str::to_owned)),
    ];
    let mut expected: Vec<_> =
        expected.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let mut said: Vec<_> =
        response.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect();
    expected.sort();
    said.sort();
    assert_eq!(said, expected);
}

/// What the input chooses; where it has ended, the least.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn maybe<T>(&mut self, then: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() % 2 == 1).then(|| then(self))
    }

    /// A number whose length is chosen first, so that small ones are as likely as large ones.
    fn number(&mut self) -> u64 {
        let bytes = self.byte() % 9;
        (0..bytes).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Some printable text.
    fn text(&mut self) -> String {
        let bytes = self.byte() % 16;
        (0..bytes).map(|_| char::from(b' ' + self.byte() % 95)).collect()
    }
}
