//! Configurations of servers, rendered from the templates in `bench/peers/`.
//!
//! A template has places, `{{port}}`, and sections, which are whole lines between a line
//! `{{#tls}}` or `{{#plain}}` and a line `{{/tls}}` or `{{/plain}}`: the one is kept in TLS cells,
//! the other in all others.

use super::cell::Cell;
use super::certificate::Certificate;
use std::net::SocketAddr;
use std::path::Path;

/// What a server is to serve, where.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// The document root.
    pub root: &'a Path,
    /// An empty directory of its own.
    pub scratch: &'a Path,
    /// The CPUs it runs on, one thread or process each where it can be told.
    pub cpus: &'a [usize],
    /// What will be asked.
    pub cell: Cell,
    /// Its certificate, which only TLS cells use.
    pub certificate: &'a Certificate,
}

impl Assignment<'_> {
    /// The file that is asked for; the document root where it is many.
    pub(super) fn file(&self) -> std::path::PathBuf {
        self.cell.request().map_or(self.root.into(), |get| self.root.join(get.file_name()))
    }
}

/// A template with its places filled in and its sections kept or left out.
pub(super) fn render(template: &str, assignment: &Assignment<'_>) -> String {
    let Assignment { address, root, scratch, cpus, cell, certificate } = *assignment;
    let left_out = if cell.tls() { "plain" } else { "tls" };
    let (begin, end) = (format!("{{{{#{left_out}}}}}"), format!("{{{{/{left_out}}}}}"));
    let mut text = String::with_capacity(template.len());
    let mut lines = template.lines();
    while let Some(line) = lines.next() {
        if line == begin {
            lines.find(|line| *line == end);
        } else if !(line.starts_with("{{#") || line.starts_with("{{/")) {
            text.push_str(line);
            text.push('\n');
        }
    }
    let places = [
        ("{{address}}", address.to_string()),
        ("{{host}}", address.ip().to_string()),
        ("{{port}}", address.port().to_string()),
        ("{{root}}", root.to_string_lossy().into_owned()),
        ("{{scratch}}", scratch.to_string_lossy().into_owned()),
        ("{{workers}}", cpus.len().to_string()),
        ("{{file}}", assignment.file().to_string_lossy().into_owned()),
        ("{{certificate}}", certificate.certificate().to_string_lossy().into_owned()),
        ("{{key}}", certificate.key().to_string_lossy().into_owned()),
        ("{{pem}}", certificate.both().to_string_lossy().into_owned()),
    ];
    for (place, value) in places {
        text = text.replace(place, &value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str, cell: &str) -> String {
        let certificate = Certificate::kept_in(Path::new("/c"));
        let assignment = Assignment {
            address: "127.0.0.1:8000".parse().unwrap(),
            root: Path::new("/a/root"),
            scratch: Path::new("/a/scratch"),
            cpus: &[0, 3],
            cell: Cell::named(cell).unwrap(),
            certificate: &certificate,
        };
        render(template, &assignment)
    }

    #[test]
    fn places_are_filled_in_and_one_of_two_sections_is_kept() {
        let template = "\
at {{host}} {{port}}
{{#plain}}
serve {{file}} by {{workers}}
{{/plain}}
{{#tls}}
serve {{file}} with {{key}}
{{/tls}}
end
";
        let plain = "at 127.0.0.1 8000\nserve /a/root/1024.bin by 2\nend\n";
        assert_eq!(rendered(template, "1k-64"), plain);
        let tls = "at 127.0.0.1 8000\nserve /a/root/1024.bin with /c/key.pem\nend\n";
        assert_eq!(rendered(template, "tls-1k-64"), tls);
        assert_eq!(rendered("{{file}}", "web99-64"), "/a/root\n");
    }
}
