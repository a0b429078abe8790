//! What a case is made of, and the words in which it is written.

use super::site::tag;

/// What a peer sends on a connection of its own, and all that comes back.
pub(crate) struct Case {
    pub(super) name: &'static str,
    pub(super) sends: Vec<u8>,
    /// The peer ends its side right after that.
    pub(super) ends: bool,
    pub(super) answers: Vec<Answer>,
    /// The server ends the connection after the answers.
    pub(super) closes: bool,
    /// The answer does not depend on how much of the request has come when it is looked at.
    pub(super) may_be_cut: bool,
}

/// One response, as far as it is to be looked at. What every response must be is looked at too: see
/// [`judge`](super::judge).
pub(crate) struct Answer {
    pub(super) status: u16,
    pub(super) body: Body,
    /// Fields that it has, with their values.
    pub(super) fields: Vec<(&'static str, String)>,
    /// Fields that it has not.
    pub(super) lacks: Vec<&'static str>,
}

/// What follows the head of a response.
pub(super) enum Body {
    /// Exactly these bytes.
    Is(Vec<u8>),
    /// A page that names the status.
    Page,
    /// Nothing, and no length is given.
    None,
    /// Nothing, for HEAD was asked; but the length that GET would have had.
    Omitted(Option<usize>),
    /// Parts of a file: the first byte, the last byte, and the file.
    Parts(Vec<(usize, usize)>, &'static [u8]),
}

/// Begins a case.
pub(crate) fn case(name: &'static str, sends: impl Into<Vec<u8>>) -> Case {
    Case {
        name,
        sends: sends.into(),
        ends: false,
        answers: Vec::new(),
        closes: false,
        may_be_cut: true,
    }
}

impl Case {
    /// The peer ends its side after the last byte.
    pub(crate) fn then_ends(self) -> Case {
        Case { ends: true, ..self }
    }

    /// It is to come in one piece, for the answer depends on what is there when the head is.
    pub(crate) fn in_one_piece(self) -> Case {
        Case { may_be_cut: false, ..self }
    }

    /// These answers come back, and the connection lives on (unless the peer has ended its side).
    pub(crate) fn gets(self, answers: impl Into<Vec<Answer>>) -> Case {
        Case { answers: answers.into(), closes: self.ends, ..self }
    }

    /// These answers come back, and the connection ends.
    pub(crate) fn gets_last(self, answers: impl Into<Vec<Answer>>) -> Case {
        Case { answers: answers.into(), closes: true, ..self }
    }

    /// A page with this status comes back, and the connection ends.
    pub(crate) fn refused(self, status: u16) -> Case {
        self.gets_last(page(status))
    }

    /// The connection ends without a word.
    pub(crate) fn gets_nothing(self) -> Case {
        self.gets_last([])
    }
}

/// A request with this line, for `localhost`, with more field lines.
pub(crate) fn request<const N: usize>(line: &str, fields: [&str; N]) -> Vec<u8> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!("{line}\r\nHost: localhost\r\n{fields}\r\n").into_bytes()
}

/// A GET for a target, with more field lines.
pub(crate) fn get<const N: usize>(target: &str, fields: [&str; N]) -> Vec<u8> {
    request(&format!("GET {target} HTTP/1.1"), fields)
}

/// A page that says a status.
pub(crate) fn page(status: u16) -> Answer {
    let answer = Answer { status, body: Body::Page, fields: Vec::new(), lacks: Vec::new() };
    answer.lacking("ETag").lacking("Last-Modified")
}

impl From<Answer> for Vec<Answer> {
    fn from(answer: Answer) -> Self {
        vec![answer]
    }
}

impl Answer {
    /// A file, whole, with all that is said of one.
    pub(crate) fn file(bytes: &[u8], content_type: &'static str) -> Answer {
        let answer =
            Answer { status: 200, body: Body::Is(bytes.into()), fields: Vec::new(), lacks: vec![] };
        answer
            .with("ETag", tag(bytes))
            .with("Last-Modified", super::MODIFIED)
            .with("Accept-Ranges", "bytes")
            .with("Content-Type", content_type)
            .lacking("Content-Range")
    }

    /// Nothing but a head: 204.
    pub(crate) fn no_content() -> Answer {
        Answer { status: 204, body: Body::None, fields: Vec::new(), lacks: vec!["Content-Type"] }
    }

    /// The file is what the client has already.
    pub(crate) fn not_modified(file: &[u8]) -> Answer {
        Answer::unchanged(tag(file))
    }

    /// The same of what has this tag.
    pub(crate) fn unchanged(tag: String) -> Answer {
        let answer = Answer { status: 304, body: Body::None, fields: vec![], lacks: vec![] };
        // RFC 9110 §15.4.5: nothing that the client has already, where there is a tag.
        answer.with("ETag", tag).lacking("Content-Type").lacking("Last-Modified")
    }

    /// One part of a file, from its first to its last byte.
    pub(crate) fn part(file: &[u8], first: usize, last: usize) -> Answer {
        let body = Body::Is(file[first..=last].to_vec());
        let answer = Answer { status: 206, body, fields: Vec::new(), lacks: Vec::new() };
        answer.with("Content-Range", format!("bytes {first}-{last}/{}", file.len()))
    }

    /// Several parts of a file of no known type.
    pub(crate) fn parts<const N: usize>(file: &'static [u8], parts: [(usize, usize); N]) -> Answer {
        let body = Body::Parts(parts.into(), file);
        let answer = Answer { status: 206, body, fields: Vec::new(), lacks: Vec::new() };
        answer.with("ETag", tag(file)).lacking("Content-Range")
    }

    /// The same as to GET, but the body is left out.
    pub(crate) fn for_head(self) -> Answer {
        let body = match self.body {
            Body::Is(bytes) => Body::Omitted(Some(bytes.len())),
            Body::Page => Body::Omitted(None),
            other => other,
        };
        Answer { body, ..self }
    }

    /// It has this field, with this value.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.fields.retain(|(other, _)| *other != name);
        self.fields.push((name, value.into()));
        self
    }

    /// It has no such field.
    pub(crate) fn lacking(mut self, name: &'static str) -> Answer {
        self.lacks.push(name);
        self
    }
}
