//! Files that change under a running server.

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;
use crate::config::{Facts, File, Overrides, resolve};

/// A server's certificate in files, exchanged whenever a test likes.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A new certificate and its key.
    fn made() -> [String; 2] {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        [params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem()]
    }

    /// Puts a file in its place at once, as everybody should.
    fn put(&self, name: &str, content: &str) {
        let new = self.path("new");
        std::fs::write(&new, content).expect("it is ours");
        std::fs::rename(new, self.path(name)).expect("it is ours");
    }

    fn issue(&self) {
        let [certificate, key] = Self::made();
        self.put("site.pem", &certificate);
        self.put("site.key", &key);
    }

    fn keeper(&self) -> Result<Keeper, Problems> {
        let text = "tls_listen = [\"127.0.0.1:0\"]\n[tls]\n\
                    certificates = [{ cert = \"site.pem\", key = \"site.key\" }]\n";
        let facts = Facts { allowed_cpus: vec![0], nofile: 65_536 };
        let file = File { path: &self.path("onering.toml"), text };
        let config = resolve(Some(file), &Overrides::default(), &facts).expect("right");
        Keeper::start(&Arc::new(config))
    }
}

#[test]
fn a_change_is_taken_when_it_has_settled() {
    let files = Files::new();
    files.issue();
    let mut keeper = files.keeper().expect("it is right");
    let first = Arc::clone(keeper.running());
    assert_eq!(keeper.look(), Outcome::Same);
    files.issue();
    assert_eq!(keeper.look(), Outcome::Same, "there may be more to come");
    files.issue();
    assert_eq!(keeper.look(), Outcome::Same, "and there was");
    assert_eq!(keeper.look(), Outcome::Changed);
    assert!(!Arc::ptr_eq(&first, keeper.running()));
    assert_eq!(keeper.look(), Outcome::Same);
}

#[test]
fn a_certificate_behind_a_link_is_exchanged_with_the_link() {
    let files = Files::new();
    let link = |to: &str| {
        for kind in ["pem", "key"] {
            let _ = std::fs::remove_file(files.path("link"));
            std::os::unix::fs::symlink(format!("{to}/site.{kind}"), files.path("link"))
                .expect("it is ours");
            std::fs::rename(files.path("link"), files.path(&format!("site.{kind}")))
                .expect("it is ours");
        }
    };
    for version in ["one", "two"] {
        std::fs::create_dir(files.path(version)).expect("it is ours");
        let [certificate, key] = Files::made();
        files.put(&format!("{version}/site.pem"), &certificate);
        files.put(&format!("{version}/site.key"), &key);
    }
    link("one");
    let mut keeper = files.keeper().expect("it is right");
    assert_eq!([keeper.look(), keeper.look()], [Outcome::Same, Outcome::Same]);
    link("two");
    assert_eq!([keeper.look(), keeper.look()], [Outcome::Same, Outcome::Changed]);
}

#[test]
fn what_runs_is_kept_where_the_new_is_bad_and_that_is_said_once() {
    let files = Files::new();
    files.issue();
    let mut keeper = files.keeper().expect("it is right");
    let first = Arc::clone(keeper.running());
    for spoil in ["certificate alone", "nothing"] {
        match spoil {
            "nothing" => std::fs::remove_file(files.path("site.pem")).expect("it is there"),
            _ => files.put("site.pem", &Files::made()[0]),
        }
        assert_eq!(keeper.look(), Outcome::Same, "{spoil}");
        assert_eq!(keeper.look(), Outcome::Refused, "{spoil}");
        assert_eq!(keeper.look(), Outcome::Same, "{spoil}");
        assert!(Arc::ptr_eq(&first, keeper.running()));
    }
    assert_eq!(keeper.reload(), Outcome::Refused, "whoever asks is answered");
    files.issue();
    assert_eq!([keeper.look(), keeper.look()], [Outcome::Same, Outcome::Changed]);
}

#[test]
fn a_signal_reloads_at_once_even_what_has_not_changed() {
    let files = Files::new();
    files.issue();
    let mut keeper = files.keeper().expect("it is right");
    assert_eq!(keeper.reload(), Outcome::Changed);
    files.issue();
    assert_eq!(keeper.reload(), Outcome::Changed);
    assert_eq!([keeper.look(), keeper.look()], [Outcome::Same, Outcome::Same]);
}

#[test]
fn a_start_with_bad_certificates_says_why() {
    let files = Files::new();
    let problems = files.keeper().err().expect("there are none");
    assert_eq!(problems.worst(), Some(Severity::Fatal));
    assert_eq!(problems.to_string().matches("cannot be read").count(), 2, "{problems}");
}
