//! The reference responder: a server of the SPECweb99-style workload as a pure function from the bytes
//! of a request to those of its answer, by the semantics of `onering-fileset` alone. It makes each
//! fault that the workload must find, when it is asked to.
//!
//! It knows no socket: tests in virtual time and tests over sockets share it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, UNIX_EPOCH};

use onering_fileset::content::{Contents, LINE_BYTES, tag};
use onering_fileset::dynamic::{
    ADS, Choice, Command, Page, Post, PostCookie, PostLog, PostRecord, RequestCookie, Tables,
};
use onering_fileset::laws::RequestKind;
use onering_fileset::name::Name;

const FILES: &str = "/file_set/";
const DYNAMIC: &str = "/web99/dynamic";
const CGI: &str = "/web99/cgi";

/// What is done wrong, on every occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Files are not found.
    Status,
    /// Bodies lack their last byte, and say so.
    Length,
    /// Bodies lack their last byte, and do not say so.
    Cut,
    /// Another first line.
    FirstLine,
    /// Another marker.
    Marker,
    /// Another ad tag in files that are sent as they are.
    Tag,
    /// Ads are not put in, though the cookie says so.
    StaleAd,
    /// No cookie is set.
    NoCookie,
    /// Another ad's cookie, and another user's.
    OtherCookie,
    /// Another page around files.
    Page,
    /// Each POST is recorded twice.
    DuplicatePosts,
    /// No POST is recorded.
    LosePosts,
    /// Each POST is recorded for another file.
    AlterPosts,
    /// Numbers of records leave gaps.
    SkipNumbers,
    /// What is sent is not HTTP.
    Garbage,
}

impl Fault {
    /// Every fault.
    pub(crate) const ALL: [Self; 15] = [
        Self::Status,
        Self::Length,
        Self::Cut,
        Self::FirstLine,
        Self::Marker,
        Self::Tag,
        Self::StaleAd,
        Self::NoCookie,
        Self::OtherCookie,
        Self::Page,
        Self::DuplicatePosts,
        Self::LosePosts,
        Self::AlterPosts,
        Self::SkipNumbers,
        Self::Garbage,
    ];
}

/// An answer, and what was asked.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// Whether the connection goes on.
    pub(crate) persistent: bool,
    /// What was asked; `None` for commands and whatever is not of the workload.
    pub(crate) request: Option<(RequestKind, Name)>,
}

/// The server. See the head of this file.
#[derive(Debug)]
pub(crate) struct Responder {
    seed: u64,
    fault: Option<Fault>,
    tables: Option<Tables>,
    log: PostLog,
}

/// How many bytes at the beginning of `input` the first request has; `None` if not all have come.
pub(crate) fn request_bytes(input: &[u8]) -> Option<usize> {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut request = httparse::Request::new(&mut fields);
    let head = request.parse(input).expect("the workload sends HTTP");
    let httparse::Status::Complete(head_bytes) = head else { return None };
    let length = field(&request, "content-length").map_or("0", str_of);
    let whole = head_bytes + length.parse::<usize>().expect("a length");
    (whole <= input.len()).then_some(whole)
}

impl Responder {
    /// A server of the file set under a seed, which was not reset yet, and does everything right.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, fault: None, tables: None, log: PostLog::default() }
    }

    /// From now on, this is done wrong.
    pub(crate) fn set_fault(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }

    /// The answer to a whole request.
    pub(crate) fn answer(&mut self, input: &[u8], now_s: u64) -> Answer {
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut fields);
        let head = request.parse(input).expect("the workload sends HTTP");
        let httparse::Status::Complete(head_bytes) = head else { panic!("a whole request") };
        let connection = field(&request, "connection").map_or("", str_of).to_ascii_lowercase();
        let persistent = match request.version {
            Some(1) => connection != "close",
            _ => connection == "keep-alive",
        };
        let (asked, status, cookie, body) = self.serve(&request, &input[head_bytes..], now_s);
        let mut bytes = head_of(status, &cookie, body.len(), persistent, now_s);
        bytes.extend_from_slice(&body);
        // Commands are always carried out: faults are those of a run.
        match self.fault.filter(|_| asked.is_some()) {
            Some(Fault::Garbage) => bytes = b"\0\r\n\r\n".repeat(20),
            Some(Fault::Cut) => drop(bytes.pop()),
            _ => return Answer { bytes, persistent, request: asked },
        }
        Answer { bytes, persistent: false, request: asked }
    }

    /// What was asked, and status, cookie and body of the answer.
    fn serve(
        &mut self,
        request: &httparse::Request<'_, '_>,
        body: &[u8],
        now_s: u64,
    ) -> (Option<(RequestKind, Name)>, u16, String, Vec<u8>) {
        let target = request.path.expect("a target");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let cookie = field(request, "cookie").map(RequestCookie::parse);
        let name = Name::at_end_of(target.as_bytes());
        if path == DYNAMIC
            && let Some(Ok(command)) = Command::parse(query.as_bytes())
        {
            let log = match command {
                Command::Reset(reset) => {
                    self.tables = Some(Tables::reset(self.seed, now_s, &reset));
                    self.log = PostLog::default();
                    Vec::new()
                }
                Command::Fetch => self.log.to_file(),
            };
            return (None, 200, String::new(), self.page(path, query, &log));
        }
        let (kind, name, cookie, body) = match (request.method, path, name, cookie) {
            (Some("GET"), _, Some(name), None) if path.starts_with(FILES) => {
                (RequestKind::Static, name, String::new(), self.file(name, None))
            }
            (Some("GET"), DYNAMIC, Some(name), Some(Ok(cookie))) => {
                let choice = self.tables.as_ref().expect("reset").choose(cookie, now_s);
                let file = self.file(name, choice.replacement(name));
                let page = self.page(path, query, &file);
                (RequestKind::CustomAd, name, self.choice(choice), page)
            }
            (Some("GET"), DYNAMIC | CGI, Some(name), None) => {
                let kind = if path == CGI { RequestKind::Cgi } else { RequestKind::Dynamic };
                let file = self.file(name, None);
                (kind, name, String::new(), self.page(path, query, &file))
            }
            (Some("POST"), DYNAMIC, None, Some(Ok(cookie))) => {
                let post = Post::parse(body).expect("a body as the workload has it");
                self.record(&post, cookie.user_id, now_s);
                let file = self.file(post.name, None);
                let set = self.posted(cookie.user_id);
                (RequestKind::Post, post.name, set, self.page(path, query, &file))
            }
            _ => return (None, 400, String::new(), Vec::new()),
        };
        let status = if self.fault == Some(Fault::Status) { 404 } else { 200 };
        (Some((kind, name)), status, cookie, body)
    }

    fn file(&self, name: Name, shown: Option<Name>) -> Vec<u8> {
        let mut file = Contents::new(self.seed).of(name);
        match (self.fault, shown) {
            (Some(Fault::FirstLine), _) => file[8] ^= 1,
            (Some(Fault::Marker), _) => file[LINE_BYTES] ^= 1,
            (Some(Fault::Length), _) => drop(file.pop()),
            (Some(Fault::Tag), None) => {
                tag::substitute(&mut file, Name::new(0, 0, 0).expect("a name"));
            }
            (Some(Fault::StaleAd), _) | (_, None) => {}
            (_, Some(shown)) => tag::substitute(&mut file, shown),
        }
        file
    }

    fn page(&self, path: &str, query: &str, content: &[u8]) -> Vec<u8> {
        let page = Page {
            server_software: b"reference & responder",
            remote_addr: IpAddr::V4(Ipv4Addr::LOCALHOST),
            script_name: path.as_bytes(),
            query_string: query.as_bytes(),
        };
        let mut body = Vec::new();
        page.write_head(&mut body);
        body.extend_from_slice(content);
        body.extend_from_slice(Page::TAIL);
        if self.fault == Some(Fault::Page) {
            body[1] = b'H';
        }
        body
    }

    fn choice(&self, choice: Choice) -> String {
        match self.fault {
            Some(Fault::NoCookie) => String::new(),
            Some(Fault::OtherCookie) => {
                let ad = choice.ad.map(|ad| (ad + 1) % ADS);
                format!("Set-Cookie: {}\r\n", Choice { ad, ..choice })
            }
            _ => format!("Set-Cookie: {choice}\r\n"),
        }
    }

    fn posted(&self, user_id: u32) -> String {
        match self.fault {
            Some(Fault::NoCookie) => String::new(),
            Some(Fault::OtherCookie) => {
                format!("Set-Cookie: {}\r\n", PostCookie { user_id: user_id + 1 })
            }
            _ => format!("Set-Cookie: {}\r\n", PostCookie { user_id }),
        }
    }

    fn record(&mut self, post: &Post<'_>, user_id: u32, now_s: u64) {
        let (times, step) = match self.fault {
            Some(Fault::LosePosts) => (0, 1),
            Some(Fault::DuplicatePosts) => (2, 1),
            Some(Fault::SkipNumbers) => (1, 2),
            _ => (1, 1),
        };
        let mut path = post.path();
        if self.fault == Some(Fault::AlterPosts) {
            path = path.replace("class", "Class");
        }
        for _ in 0..times {
            let sequence = self.log.0.last().map_or(0, |last| last.sequence) + step;
            let (name, client, path) = (post.name, post.client, path.clone());
            let record =
                PostRecord { sequence, time_s: now_s, pid: 1, name, client, path, user_id };
            self.log.0.push(record);
        }
    }
}

fn head_of(status: u16, cookie: &str, bytes: usize, persistent: bool, now_s: u64) -> Vec<u8> {
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now_s));
    let connection = if persistent { "keep-alive" } else { "close" };
    let head = format!(
        "HTTP/1.1 {status} As asked\r\nServer: reference\r\nDate: {date}\r\n\
         Content-Type: text/html\r\nContent-Length: {bytes}\r\n{cookie}\
         Connection: {connection}\r\n\r\n"
    );
    head.into_bytes()
}

fn field<'h>(request: &httparse::Request<'_, 'h>, name: &str) -> Option<&'h [u8]> {
    let mut fields = request.headers.iter();
    fields.find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

fn str_of(value: &[u8]) -> &str {
    std::str::from_utf8(value).expect("the workload sends ASCII")
}
