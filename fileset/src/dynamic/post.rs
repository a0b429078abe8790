//! The body of a POST request.

use super::pairs::{self, PairsError};
use crate::name::{CLASSES, DIRECTORIES_MAX, FILES_PER_CLASS, Name};

/// Bytes of the path that a record of the log has room for.
pub const PATH_MAX: usize = 60;

/// What a POST asks for: to be recorded, and to be answered with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post<'b> {
    /// What precedes `dir00012/class1_4` in the file's path.
    pub urlroot: &'b str,
    /// The file.
    pub name: Name,
    /// Who has sent it.
    pub client: u32,
}

impl<'b> Post<'b> {
    /// Reads a body such as `urlroot=/file_set/&dir=12&class=1&num=4&client=7`, in any order.
    pub fn parse(body: &'b [u8]) -> Result<Self, PairsError> {
        let keys = ["urlroot", "dir", "class", "num", "client"];
        let [root, directory, class, file, client] = pairs::parse(body, keys)?;
        let directory = pairs::number("dir", directory, DIRECTORIES_MAX - 1)?;
        let class = pairs::number("class", class, u32::from(CLASSES) - 1)?;
        let file = pairs::number("num", file, u32::from(FILES_PER_CLASS) - 1)?;
        let name = Name::new(directory, class as u8, file as u8).ok_or(PairsError::Value("dir"))?;
        let client = pairs::number("client", client, u32::MAX)?;
        Ok(Self { urlroot: urlroot(root)?, name, client })
    }

    /// The path of the file: it is recorded, and answered with.
    pub fn path(&self) -> String {
        let mut path = self.urlroot.to_owned();
        path.extend(self.name.short().map(char::from));
        path
    }

    /// The body.
    pub fn to_body(&self) -> String {
        let Self { urlroot, name, client } = self;
        let (directory, class, file) = (name.directory(), name.class(), name.file());
        format!("urlroot={urlroot}&dir={directory}&class={class}&num={file}&client={client}")
    }
}

/// A path with which a file's name fits into a record.
pub(super) fn urlroot(value: &str) -> Result<&str, PairsError> {
    let fits = value.len() + Name::SHORT_BYTES <= PATH_MAX;
    if fits && value.starts_with('/') { Ok(value) } else { Err(PairsError::Value("urlroot")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_order_is_accepted() {
        let post = Post {
            urlroot: "/x/file_set/",
            name: Name::new(12, 1, 4).unwrap(),
            client: 4_294_967_295,
        };
        for body in [
            "urlroot=/x/file_set/&dir=12&class=1&num=4&client=4294967295",
            "client=4294967295&num=4&class=1&dir=00012&urlroot=/x/file_set/",
        ] {
            assert_eq!(Post::parse(body.as_bytes()), Ok(post), "{body}");
        }
        assert_eq!(post.path(), "/x/file_set/dir00012/class1_4");
    }

    #[test]
    fn what_is_malformed_is_named() {
        let long = format!("urlroot=/{}&dir=1&class=1&num=1&client=1", "x".repeat(43));
        for (body, error) in [
            ("", PairsError::Unknown),
            ("urlroot=/&dir=1&class=1&num=1", PairsError::Missing("client")),
            ("urlroot=/&dir=1&class=1&num=1&client=1&dir=1", PairsError::Repeated("dir")),
            ("urlroot=/&dir=100000&class=1&num=1&client=1", PairsError::Value("dir")),
            ("urlroot=/&dir=1&class=4&num=1&client=1", PairsError::Value("class")),
            ("urlroot=/&dir=1&class=1&num=9&client=1", PairsError::Value("num")),
            ("urlroot=/&dir=1&class=1&num=1&client=x", PairsError::Value("client")),
            ("urlroot=x&dir=1&class=1&num=1&client=1", PairsError::Value("urlroot")),
            (long.as_str(), PairsError::Value("urlroot")),
            ("urlroot=/&dir=1&class=1&num=1&client=1\r\n", PairsError::Bytes),
        ] {
            assert_eq!(Post::parse(body.as_bytes()), Err(error), "{body}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            root in "/[a-z_/.]{0,42}",
            directory in 0..DIRECTORIES_MAX,
            class in 0..CLASSES,
            file in 0..FILES_PER_CLASS,
            client: u32,
        ) {
            let name = Name::new(directory, class, file).unwrap();
            let post = Post { urlroot: &root, name, client };
            let body = post.to_body();
            prop_assert_eq!(Post::parse(body.as_bytes()), Ok(post));
            prop_assert!(post.path().len() <= PATH_MAX);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Post::parse(&bytes);
        }
    }
}
