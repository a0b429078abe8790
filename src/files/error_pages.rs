//! What is sent where there is nothing else to send: a status and a few words, ready as any answer.
//! A 204 has no words; it is what OPTIONS gets.

use crate::http::{Persistence, ResponseHead, Status};
use crate::ring::SendBuf;

use super::Now;
use super::ready::Ready;

/// What may be done with any file.
const ALLOWED: &str = "GET, HEAD, OPTIONS";

/// The pages of one shard, each made when first asked for. There are as many as there are statuses:
/// a few, so that they are looked through rather than looked up.
#[derive(Debug, Default)]
pub(super) struct ErrorPages {
    pages: Vec<(Status, Ready)>,
}

impl ErrorPages {
    /// The page of a status.
    pub(super) fn take(
        &mut self,
        status: Status,
        persistence: Persistence,
        head_only: bool,
        now: &Now,
        scratch: &mut Vec<u8>,
    ) -> SendBuf {
        let at = match self.pages.iter().position(|(known, _)| *known == status) {
            Some(at) => at,
            None => {
                self.pages.push((status, Ready::default()));
                self.pages.len() - 1
            }
        };
        let ready = &mut self.pages[at].1;
        if let Some(answer) = ready.take(persistence, head_only, now) {
            return answer;
        }
        // RFC 9110 §15.5.6: a 405 must say what would have been allowed.
        let allow =
            matches!(status, Status::NO_CONTENT | Status::METHOD_NOT_ALLOWED).then_some(ALLOWED);
        if status == Status::NO_CONTENT {
            let head = ResponseHead { allow, ..ResponseHead::new(status, persistence) };
            return ready.make(&head, b"", head_only, now, scratch);
        }
        let body = page(status);
        let head = ResponseHead { allow, ..page_head(status, &body, persistence) };
        ready.make(&head, body.as_bytes(), head_only, now, scratch)
    }
}

/// A page that says a status and nothing about us or about what was asked for.
pub(super) fn page(status: Status) -> String {
    let (code, reason) = (status.code(), status.reason());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{code} {reason}</title>\n\
         <body style=\"display:grid;place-content:center;min-height:90vh;text-align:center;\
         font-family:system-ui,sans-serif\">\n<h1>{code}</h1>\n<p>{reason}</p>\n</html>\n"
    )
}

/// The head that such a page has at least.
pub(super) fn page_head(
    status: Status,
    body: &str,
    persistence: Persistence,
) -> ResponseHead<'static> {
    ResponseHead {
        content_type: Some("text/html; charset=utf-8"),
        content_length: Some(body.len() as u64),
        ..ResponseHead::new(status, persistence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pages: &mut ErrorPages, status: Status, head_only: bool) -> String {
        let now = Now::new(0, 0);
        let send = pages.take(status, Persistence::KeepAlive, head_only, &now, &mut Vec::new());
        String::from_utf8(send.as_slice().to_vec()).unwrap()
    }

    #[test]
    fn a_page_says_its_status_and_its_length() {
        let mut pages = ErrorPages::default();
        let page = text(&mut pages, Status::NOT_FOUND, false);
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())));
        assert!(!head.contains("Allow:"));
        assert!(body.contains("404") && body.contains("Not Found"));
        assert_eq!(text(&mut pages, Status::NOT_FOUND, true), format!("{head}\r\n\r\n"));
    }

    #[test]
    fn a_405_says_what_is_allowed() {
        let page = text(&mut ErrorPages::default(), Status::METHOD_NOT_ALLOWED, false);
        assert!(page.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), "{page}");
    }

    #[test]
    fn a_204_says_the_same_and_has_no_body() {
        let page = text(&mut ErrorPages::default(), Status::NO_CONTENT, false);
        assert!(page.starts_with("HTTP/1.1 204 No Content\r\n"), "{page}");
        assert!(page.ends_with("\r\nAllow: GET, HEAD, OPTIONS\r\n\r\n"), "{page}");
        assert!(!page.contains("Content-"), "{page}");
    }

    #[test]
    fn pages_are_made_once() {
        let mut pages = ErrorPages::default();
        for _ in 0..3 {
            text(&mut pages, Status::NOT_FOUND, false);
            text(&mut pages, Status::FORBIDDEN, true);
        }
        assert_eq!(pages.pages.len(), 2);
    }
}
