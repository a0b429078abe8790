//! Whether what comes is the page of a dynamic answer around a file, however it is cut.
//!
//! Where the file begins is known only when the page's head has come, for the server's own name is in
//! it: until then its bytes are kept, and there are no more than [`HEAD_BYTES_MAX`] of them.

use super::super::Wrong;
use super::super::file::{FileCheck, agrees};
use onering_fileset::dynamic::Page;
use onering_fileset::name::Name;
use std::net::IpAddr;

/// The longest head of a page: with typical values it has 230 bytes.
const HEAD_BYTES_MAX: usize = 4096;

/// What a page must say of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'e> {
    /// The path that was asked.
    pub(super) script: &'e str,
    /// What precedes the file's name in the query, if there was one.
    pub(super) files: Option<&'e str>,
    /// The file.
    pub(super) name: Name,
}

/// A page that is being received, from its first byte on.
#[derive(Clone, Debug)]
pub(super) struct PageCheck {
    body_bytes: usize,
    awaits: Awaits,
}

#[derive(Clone, Debug)]
enum Awaits {
    /// The rest of the page's head, of which this has come.
    Head(Vec<u8>),
    /// The file and what follows; the file begins at that byte.
    File(usize),
}

impl PageCheck {
    /// A body of so many bytes.
    pub(super) fn new(body_bytes: u64) -> Self {
        Self { body_bytes: body_bytes as usize, awaits: Awaits::Head(Vec::new()) }
    }

    /// Its bytes from `offset` on, which follow those that came before; of the file in it, `file` is
    /// told.
    pub(super) fn piece(
        &mut self,
        offset: usize,
        piece: &[u8],
        expected: &Expected<'_>,
        file: &mut FileCheck,
    ) -> Result<(), Wrong> {
        let file_bytes = expected.name.size() as usize;
        let begin = match &mut self.awaits {
            Awaits::File(begin) => *begin,
            Awaits::Head(before) => {
                let room = HEAD_BYTES_MAX - before.len();
                before.extend_from_slice(&piece[..piece.len().min(room)]);
                let Some(begin) = Page::head_bytes(before) else {
                    return if before.len() < HEAD_BYTES_MAX { Ok(()) } else { Err(Wrong::Page) };
                };
                if !expected.is_head(&before[..begin]) {
                    return Err(Wrong::Page);
                }
                if self.body_bytes != Page::content_length(begin, file_bytes) {
                    return Err(Wrong::Length);
                }
                self.awaits = Awaits::File(begin);
                begin
            }
        };
        let end = begin + file_bytes;
        let within = |at: usize| at.clamp(offset, offset + piece.len()) - offset;
        let of_file = &piece[within(begin)..within(end)];
        if !of_file.is_empty() {
            file.piece(offset.max(begin) - begin, of_file)?;
        }
        if agrees(end, Page::TAIL, offset, piece) { Ok(()) } else { Err(Wrong::Page) }
    }

    /// All of it has come.
    pub(super) fn end(&self) -> Result<(), Wrong> {
        match self.awaits {
            Awaits::Head(_) => Err(Wrong::Page),
            Awaits::File(_) => Ok(()),
        }
    }
}

impl Expected<'_> {
    /// Whether this is what precedes the file: any server may say its name, and any address that it
    /// takes the request to come from.
    fn is_head(&self, head: &[u8]) -> bool {
        const SOFTWARE: &str = "<p>SERVER_SOFTWARE = ";
        const ADDRESS: &str = "<p>REMOTE_ADDR = ";
        let said = std::str::from_utf8(head).ok().and_then(|text| {
            let mut lines = text.lines().skip_while(|line| !line.starts_with(SOFTWARE));
            let software = lines.next()?.strip_prefix(SOFTWARE)?;
            let address = lines.next()?.strip_prefix(ADDRESS)?;
            Some((software, address.parse::<IpAddr>().ok()?))
        });
        let Some((software, remote_addr)) = said else { return false };
        let mut query = Vec::new();
        if let Some(files) = self.files {
            query.extend_from_slice(files.as_bytes());
            query.extend_from_slice(&self.name.short());
        }
        let script_name = self.script.as_bytes();
        let page = Page { server_software: b"", remote_addr, script_name, query_string: &query };
        let mut right = Vec::with_capacity(head.len());
        page.write_head(&mut right);
        // The name as it came is put in afterwards, so that it is not escaped twice.
        let named = memchr::memmem::find(&right, SOFTWARE.as_bytes()).map(|at| at + SOFTWARE.len());
        let Some(named) = named else { return false };
        right.splice(named..named, software.bytes());
        !software.contains('<') && right == head
    }
}
