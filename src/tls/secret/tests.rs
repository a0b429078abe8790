//! What is a file of secrets, and what is refused with which words.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// 32 bytes of hexadecimal digits, that begin with `first`.
fn hex(first: &str) -> String {
    format!("{first}{}", "5a".repeat(31))
}

fn parsed(text: &str) -> Result<Vec<Vec<u8>>, Fault> {
    let secrets = Secrets::parse(text.as_bytes())?;
    Ok(secrets.iter().map(|secret| secret.expose().to_vec()).collect())
}

/// A file with `content` and `mode`, in a directory of its own.
fn file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ticket-secret");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    (directory, path)
}

fn refusal(path: &Path) -> String {
    Secrets::read(path).expect_err("it is refused").to_string()
}

#[test]
fn the_line_that_the_hint_makes_is_a_secret() {
    let secrets = parsed(&format!("{}\n", hex("00"))).unwrap();
    let mut expected = vec![0x5a; 32];
    expected[0] = 0;
    assert_eq!(secrets, [expected]);
}

#[test]
fn secrets_keep_the_order_of_their_lines() {
    let text = format!("# of 2026\n{}\n\n  {}  \r\n# of 2025\n{}", hex("01"), hex("02"), hex("03"));
    let first = parsed(&text).unwrap().iter().map(|secret| secret[0]).collect::<Vec<_>>();
    assert_eq!(first, [1, 2, 3]);
}

#[test]
fn hexadecimal_and_both_alphabets_of_base64_mean_the_same_bytes() {
    let bytes: Vec<u8> = (0..33).map(|n| 255 - n * 3).collect();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(parsed(&digits).unwrap(), [bytes.as_slice()]);
    for engine in [
        &base64::engine::general_purpose::STANDARD,
        &base64::engine::general_purpose::STANDARD_NO_PAD,
        &base64::engine::general_purpose::URL_SAFE,
        &base64::engine::general_purpose::URL_SAFE_NO_PAD,
    ] {
        assert_eq!(parsed(&engine.encode(&bytes)).unwrap(), [bytes.as_slice()]);
    }
}

#[test]
fn a_file_that_is_no_text_is_one_secret() {
    let bytes: Vec<u8> = (128..=255).collect();
    assert_eq!(Secrets::parse(&bytes).unwrap().iter().next().unwrap().expose(), bytes);
    // Text by its encoding, but not what anybody writes.
    let controls: Vec<u8> = (0..32).collect();
    assert_eq!(Secrets::parse(&controls).unwrap().iter().next().unwrap().expose(), controls);
    assert_eq!(Secrets::parse(&bytes[..31]), Err(Fault::FileTooShort { length: 31 }));
}

#[test]
fn what_is_no_secret_is_refused_with_its_line() {
    assert_eq!(parsed(""), Err(Fault::Empty));
    assert_eq!(parsed("# nothing\n\n"), Err(Fault::Empty));
    assert_eq!(parsed("a pass phrase"), Err(Fault::Undecodable { line: 1 }));
    assert_eq!(parsed(&format!("{}\n\nÄ", hex("00"))), Err(Fault::Undecodable { line: 3 }));
    assert_eq!(parsed(&hex("00")[2..]), Err(Fault::TooShort { line: 1, length: 31 }));
    assert_eq!(parsed("c2hvcnQ="), Err(Fault::TooShort { line: 1, length: 5 }));
    let eight = format!("{}\n", hex("00")).repeat(SECRETS_MAX);
    assert_eq!(parsed(&eight).unwrap().len(), SECRETS_MAX);
    assert_eq!(parsed(&format!("{eight}{}", hex("00"))), Err(Fault::TooMany));
    assert_eq!(parsed(&"#".repeat(FILE_BYTES_MAX + 1)), Err(Fault::FileTooLarge));
}

#[test]
fn a_file_of_ones_own_that_nobody_else_has_access_to_is_read() {
    for mode in [0o600, 0o400, 0o700] {
        let (directory, path) = file(hex("07").as_bytes(), mode);
        assert_eq!(Secrets::read(&path).unwrap().iter().next().unwrap().expose()[0], 7);
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(Secrets::read(&link).is_ok(), "by a link");
    }
}

#[test]
fn a_file_that_others_have_access_to_is_refused_with_the_remedy() {
    for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601] {
        let (_directory, path) = file(hex("00").as_bytes(), mode);
        let refusal = refusal(&path);
        assert!(refusal.contains(&format!("has mode 0{mode:o}")), "{refusal}");
        assert!(refusal.contains(&format!("chmod 600 {}", path.display())), "{refusal}");
    }
}

#[test]
fn a_file_of_a_stranger_is_refused_and_one_of_roots_is_not() {
    let (_directory, path) = file(hex("00").as_bytes(), 0o600);
    let metadata = fs::metadata(&path).unwrap();
    let owner = metadata.uid();
    assert!(check_access(&metadata, owner, &path).is_ok());
    let by_another = check_access(&metadata, owner + 1, &path);
    if owner == 0 {
        assert!(by_another.is_ok(), "root's own serves every user");
    } else {
        let refusal = by_another.unwrap_err().to_string();
        assert!(refusal.contains(&format!("chown root {}", path.display())), "{refusal}");
    }
    if owner == 0 {
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let refusal = refusal(&path);
        assert!(refusal.contains("belongs to user 65534"), "{refusal}");
        assert!(refusal.contains(&format!("chown root {}", path.display())), "{refusal}");
    }
}

#[test]
fn what_is_not_there_or_is_no_file_is_refused_with_how_to_make_one() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    for path in [directory.path(), &missing, Path::new("/dev/zero")] {
        let refusal = refusal(path);
        assert!(refusal.contains("openssl rand -hex 32 > "), "{refusal}");
        assert!(refusal.starts_with(&path.display().to_string()), "{refusal}");
    }
}

#[test]
fn a_pipe_without_a_writer_is_refused_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert!(matches!(Secrets::read(&path), Err(SecretError::NoFile { .. })));
}

#[test]
fn no_message_has_anything_of_the_content_in_it() {
    let (_directory, path) = file(b"hunter2hunter2", 0o600);
    let error = Secrets::read(&path).unwrap_err();
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains("hunter"), "{shown}");
    }
    let secrets = Secrets::parse(hex("00").as_bytes()).unwrap();
    assert_eq!(format!("{secrets:?}"), "Secrets([Secret(..)])");
}

#[test]
fn two_that_are_drawn_differ() {
    assert_ne!(Secrets::random().unwrap(), Secrets::random().unwrap());
    assert_eq!(Secrets::random().unwrap().iter().next().unwrap().expose().len(), SECRET_BYTES_MIN);
}
