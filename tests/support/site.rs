//! A directory to be served, and a configuration for it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use onering::config::{self, Config, Facts, Overrides};
use tempfile::TempDir;

use super::Args;

/// A document root of the test's own, for every user to read.
pub(crate) struct Site {
    directory: TempDir,
}

impl Site {
    /// An empty one.
    pub(crate) fn new() -> Site {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let everyone = || Permissions::from_mode(0o755);
        fs::create_dir(directory.path().join("root")).expect("the directory is ours");
        for path in [directory.path().to_owned(), directory.path().join("root")] {
            fs::set_permissions(path, everyone()).expect("the directory is ours");
        }
        Site { directory }
    }

    /// One with a single file.
    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> Site {
        let site = Site::new();
        site.write(name, content);
        site
    }

    /// Where `name` is, beneath the document root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    /// Writes a file, in a directory that may be new.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("beneath the root")).expect("the root is ours");
        fs::write(path, content).expect("the root is ours");
    }

    /// Lets a file be as if nobody had touched it for years.
    pub(crate) fn settle(&self, name: &str) {
        let file = fs::File::options().write(true).open(self.path(name));
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_704_067_200);
        file.and_then(|file| file.set_modified(long_ago)).expect("the file is ours");
    }

    /// Writes a file beside the document root, where the configuration is.
    pub(crate) fn keep(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, content).expect("the directory is ours");
        path
    }

    /// `onering serve` on this site.
    pub(crate) fn serve(&self) -> Args {
        Args::serve(&self.path(""))
    }

    /// The configuration of this site with these settings, resolved.
    pub(crate) fn resolved(&self, settings: &str) -> Config {
        let text = format!("[[site]]\nroot = {:?}\n{settings}\n", self.path(""));
        let file = config::File { path: Path::new("resolved.toml"), text: &text };
        let facts = Facts { allowed_cpus: vec![0], nofile: 1024 };
        config::resolve(Some(file), &Overrides::default(), &facts).expect("good settings")
    }

    /// The same with settings: tables of the configuration file, such as `[timeouts]\nidle = "1s"`.
    pub(crate) fn serve_with(&self, settings: &str) -> Args {
        let file = self.directory.path().join("onering.toml");
        let text = format!("[[site]]\nroot = \"root\"\n{settings}\n");
        fs::write(&file, text).expect("the directory is ours");
        Args::of(["serve", "--config"]).arg(file)
    }
}

/// Bytes that are nowhere like their neighbours, so that a shift or a gap shows.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0u32..).flat_map(|n| n.wrapping_mul(0x9E37_79B1).to_le_bytes()).take(bytes).collect()
}
