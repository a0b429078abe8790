//! The page that a dynamic answer wraps its content in, as parts around it: the content is sent as it
//! lies in memory, and the length is known before.

use std::net::IpAddr;

/// The page's title. It belongs to the interface that clients of the workload may look for.
pub const TITLE: &str = "SPECweb99 Dynamic GET & POST Test";

const BEFORE_CONTENT: &[u8] = b"<pre>\n";
const AFTER_CONTENT: &[u8] = b"\n</pre>\n</body></html>\n";

/// What a page says of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'p> {
    /// The server and its version.
    pub server_software: &'p [u8],
    /// Who asks.
    pub remote_addr: IpAddr,
    /// The path of what has answered.
    pub script_name: &'p [u8],
    /// What it was asked, without the question mark.
    pub query_string: &'p [u8],
}

impl Page<'_> {
    /// What follows the content.
    pub const TAIL: &'static [u8] = AFTER_CONTENT;

    /// Appends what precedes the content. Script name and query come from the network: their markup
    /// is escaped, so that none of it is the page's.
    pub fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<html>\n<head><title>");
        out.extend_from_slice(TITLE.as_bytes());
        out.extend_from_slice(b"</title></head>\n<body>\n");
        let address = self.remote_addr.to_string();
        for (name, value) in [
            ("SERVER_SOFTWARE", self.server_software),
            ("REMOTE_ADDR", address.as_bytes()),
            ("SCRIPT_NAME", self.script_name),
            ("QUERY_STRING", self.query_string),
        ] {
            out.extend_from_slice(b"<p>");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" = ");
            escape(value, out);
            out.push(b'\n');
        }
        out.extend_from_slice(BEFORE_CONTENT);
    }

    /// The Content-Length of a page: what [`write_head`](Self::write_head) has appended, the content,
    /// and [`TAIL`](Self::TAIL).
    pub const fn content_length(head_bytes: usize, content_bytes: usize) -> usize {
        head_bytes + content_bytes + Self::TAIL.len()
    }

    /// The bytes of a page, or of its beginning, that precede the content; `None` if they are not all
    /// there.
    pub fn head_bytes(page: &[u8]) -> Option<usize> {
        memchr::memmem::find(page, BEFORE_CONTENT).map(|at| at + BEFORE_CONTENT.len())
    }

    /// The content of a page, for those who verify it.
    pub fn content(page: &[u8]) -> Option<&[u8]> {
        page[Self::head_bytes(page)?..].strip_suffix(AFTER_CONTENT)
    }
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn page(query_string: &[u8]) -> Page<'_> {
        Page {
            server_software: b"onering/0.1.0",
            remote_addr: IpAddr::V4(Ipv4Addr::new(192, 168, 1, 17)),
            script_name: b"/web99/dynamic",
            query_string,
        }
    }

    fn wrapped(page: &Page<'_>, content: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        page.write_head(&mut body);
        let length = Page::content_length(body.len(), content.len());
        body.extend_from_slice(content);
        body.extend_from_slice(Page::TAIL);
        assert_eq!(body.len(), length);
        body
    }

    #[test]
    fn the_page_as_a_whole() {
        let body = wrapped(&page(b"/file_set/dir00012/class1_4"), b"content");
        let expected = "\
<html>
<head><title>SPECweb99 Dynamic GET & POST Test</title></head>
<body>
<p>SERVER_SOFTWARE = onering/0.1.0
<p>REMOTE_ADDR = 192.168.1.17
<p>SCRIPT_NAME = /web99/dynamic
<p>QUERY_STRING = /file_set/dir00012/class1_4
<pre>
content
</pre>
</body></html>
";
        assert_eq!(String::from_utf8_lossy(&body), expected);
    }

    #[test]
    fn the_wrapper_has_about_255_bytes() {
        let bytes = wrapped(&page(b"/file_set/dir00012/class1_4"), b"").len();
        assert!((235..=275).contains(&bytes), "{bytes}");
    }

    #[test]
    fn markup_of_the_request_is_not_that_of_the_page() {
        let body = wrapped(&page(b"<pre>\n<script>&"), b"content");
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains("QUERY_STRING = &lt;pre&gt;\n&lt;script&gt;&amp;\n"), "{text}");
        assert_eq!(Page::content(&body), Some(b"content".as_slice()));
    }

    proptest! {
        #[test]
        fn the_content_is_found_again(
            query in proptest::collection::vec(any::<u8>(), 0..40),
            content in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let body = wrapped(&page(&query), &content);
            prop_assert_eq!(Page::content(&body), Some(content.as_slice()));
        }
    }
}
