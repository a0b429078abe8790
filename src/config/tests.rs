//! The configuration as a whole: what is written against what holds, or what is reported.

use std::path::Path;
use std::time::Duration;

use globset::GlobBuilder;
use proptest::prelude::*;

use super::*;

mod tls;

fn facts() -> Facts {
    Facts { allowed_cpus: vec![0, 1], nofile: 65_536 }
}

fn plain(endpoint: Endpoint) -> Listener {
    Listener { endpoint, tls: None }
}

fn written(text: &str) -> Result<Config, ConfigError> {
    let file = File { path: Path::new("test.toml"), text };
    resolve(Some(file), &Overrides::default(), &facts())
}

/// The lines of the report.
fn problems(text: &str) -> Vec<String> {
    let error = written(text).expect_err(text);
    error.to_string().lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_problem(text: &str, place_and_key: &str, says: &str) {
    let problems = problems(text);
    let [problem] = &problems[..] else { panic!("{text}: {problems:#?}") };
    assert!(problem.starts_with(&format!("test.toml:{place_and_key}: ")), "{problem}");
    assert!(problem.contains(says), "{problem}");
}

#[test]
fn nothing_written_is_the_welcome_site_on_loopback() {
    let config = resolve(None, &Overrides::default(), &facts()).expect("defaults hold");
    assert_eq!(config, written("").expect("an empty file says nothing"));
    let [plainly, secured] = &config.listeners[..] else { panic!("{:?}", config.listeners) };
    assert_eq!(*plainly, plain(Endpoint::Address(defaults::LISTEN)));
    assert_eq!(secured.endpoint, Endpoint::Address(defaults::TLS_LISTEN));
    let certificates = secured.tls.as_ref().map(|tls| &tls.certificates);
    assert_eq!(certificates, Some(&Certificates::SelfSigned));
    assert_eq!(config.cpus, [0, 1]);
    assert_eq!(config.sites.len(), 1);
    assert_eq!(config.sites[0].root, Root::Welcome);
    // 65 536 files, less what is kept aside, in two shares of which the cache has a quarter.
    assert_eq!(config.cache.descriptors, 8_180);
    assert_eq!(config.limits.connections_per_shard, 24_540);
}

/// The file that documents the keys must not lie about them.
#[test]
fn the_example_says_what_holds_without_it() {
    let example = include_str!("../../onering.example.toml");
    assert_eq!(written(example).expect("the example holds"), written("").expect("so does nothing"));
}

#[test]
fn the_cache_opens_no_more_files_than_it_has_entries() {
    let many = Facts { nofile: 1 << 30, ..facts() };
    let config = resolve(None, &Overrides::default(), &many).expect("defaults hold");
    assert_eq!(config.cache.descriptors, config.cache.entries);
    assert_eq!(config.limits.connections_per_shard, 1 << 20);
}

#[test]
fn every_key_is_read() {
    let directory = tempfile::tempdir().expect("tempdir");
    std::fs::create_dir(directory.path().join("www")).expect("mkdir");
    let text = r#"
listen = ["0.0.0.0:80", "[::]:80"]
listen_fds = [3]
tls_listen = ["0.0.0.0:443"]
cpus = "1"
steer = "cpu"
stats = "stats.json"

[[listener]]
address = "127.0.0.1:8443"
tls = true
certificates = [{ cert = "inside.pem", key = "inside.key" }]
client_ca = "ca.pem"
client_auth = "optional"

[[listener]]
fd = 4

[[site]]
names = ["Example.org", "[::1]"]
root = "www"
index = ["home.html", "index.html"]
listing = true
charset = "iso-8859-1"
error_pages = { 404 = "/.errors/404.html", 503 = "/busy.html" }
mode_allowed = "377"
mode_forbidden = "0002"
symlinks = "owner"
dotfiles = "serve"
[[site.headers]]
match = "*.css"
set = { "Cache-Control" = "max-age=3600", Vary = "Origin" }
[[site.headers]]
always = true
set = { "X-Content-Type-Options" = "nosniff" }

[site.tls]
certificates = [{ cert = "site.pem", key = "site.key" }, { cert = "both.pem" }]
client_auth = "off"
hsts = "max-age=1"
redirect = 8443

[[site]]
names = ["other.example"]
root = "/"
charset = "off"
symlinks = "off"

[limits]
request_line = "1KiB"
head = "2KiB"
fields = 3
body = "25KiB"
body_rate = "26B"
connections_per_shard = 4
requests_per_turn = 5
pipeline = "7KiB"
backlog = 8

[timeouts]
head = "9s"
body = "27s"
handshake = "28s"
idle = "10s"
write_stall = "11s"
linger = "12s"
grace = "13s"
defer_accept = "0s"

[tls]
certificates = [{ cert = "tls.pem", key = "/tls.key" }]
min_version = "1.3"
ktls = "on"
ktls_from = "29B"
tickets = false
ticket_secret = "secret"
ticket_period = "31s"
session_cache = 32
session_lifetime = "33s"
handshakes = 34
handshakes_per_turn = 35
records_small = "36B"
offload_rsa = 4096

[cache]
entries = 14
bytes = "15MiB"
descriptors = 16
valid = "17ms"
inline = "18KiB"
error_page = "25KiB"
listing_entries = 26
etag = "inode"

[transfer]
quantum = "19KiB"
sealed_quantum = "29KiB"
cold_window = "20KiB"

[ring]
entries = 21
recv_buffers = 32
recv_buffer = "2KiB"
fixed_buffers = 23
min_wait = "24us"
"#;
    let path = directory.path().join("onering.toml");
    let file = File { path: &path, text };
    let config = resolve(Some(file), &Overrides::default(), &facts()).expect("all is well");
    let address = |text: &str| plain(Endpoint::Address(text.parse().expect("an address")));
    let files = |chain: &str, key: &str| CertificateFiles {
        chain: directory.path().join(chain),
        key: directory.path().join(key),
    };
    let secured = |text: &str, files, client_auth| Listener {
        tls: Some(ListenerTls { certificates: Certificates::Files(vec![files]), client_auth }),
        ..address(text)
    };
    let staff = ClientAuth::Optional { authorities: directory.path().join("ca.pem") };
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let set = |fields: &[(&str, &str)]| {
        fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let css = GlobBuilder::new("**/*.css").literal_separator(true).build().expect("a pattern");
    let first = Site {
        names: texts(&["example.org", "[::1]"]),
        root: Root::Directory(directory.path().join("www")),
        index: texts(&["home.html", "index.html"]),
        listing: true,
        charset: Some("iso-8859-1".into()),
        headers: vec![
            HeaderRule {
                answers: Answers::Files(css),
                set: set(&[("Cache-Control", "max-age=3600"), ("Vary", "Origin")]),
            },
            HeaderRule {
                answers: Answers::All,
                set: set(&[("X-Content-Type-Options", "nosniff")]),
            },
        ],
        error_pages: [(404, "/.errors/404.html".into()), (503, "/busy.html".into())].into(),
        modes: Modes { allowed: Some(0o377), forbidden: 0o002 },
        symlinks: Symlinks::Owner,
        dotfiles: Dotfiles::Serve,
        tls: SiteTls {
            certificates: vec![files("site.pem", "site.key"), files("both.pem", "both.pem")],
            client_auth: Some(ClientAuth::Off),
            hsts: Some("max-age=1".into()),
            redirect: Redirect::ToPort(8443),
        },
    };
    let second = Site {
        names: texts(&["other.example"]),
        charset: None,
        symlinks: Symlinks::Off,
        ..Site::of(Root::Directory("/".into()))
    };
    let expected = Config {
        listeners: vec![
            address("0.0.0.0:80"),
            address("[::]:80"),
            plain(Endpoint::Descriptor(3)),
            secured("0.0.0.0:443", files("tls.pem", "/tls.key"), ClientAuth::Off),
            secured("127.0.0.1:8443", files("inside.pem", "inside.key"), staff),
            plain(Endpoint::Descriptor(4)),
        ],
        cpus: vec![1],
        steer: Steer::Cpu,
        sites: vec![first, second],
        limits: Limits {
            request_line_bytes: 1024,
            head_bytes: 2048,
            fields: 3,
            body_bytes: 25 << 10,
            body_rate_bytes: 26,
            connections_per_shard: 4,
            requests_per_turn: 5,
            pipeline_bytes: 7 << 10,
            backlog: 8,
        },
        timeouts: Timeouts {
            head: Duration::from_secs(9),
            body: Duration::from_secs(27),
            handshake: Duration::from_secs(28),
            idle: Duration::from_secs(10),
            write_stall: Duration::from_secs(11),
            linger: Duration::from_secs(12),
            grace: Duration::from_secs(13),
            defer_accept: Duration::ZERO,
        },
        tls: Tls {
            min_version: Version::Tls13,
            ktls: Ktls::On,
            ktls_from_bytes: 29,
            tickets: false,
            ticket_secret: Some(directory.path().join("secret")),
            ticket_period: Duration::from_secs(31),
            session_cache_entries: 32,
            session_lifetime: Duration::from_secs(33),
            handshakes: 34,
            handshakes_per_turn: 35,
            records_small_bytes: 36,
            offload_rsa_bits: 4096,
        },
        cache: Cache {
            entries: 14,
            bytes: 15 << 20,
            descriptors: 16,
            valid: Duration::from_millis(17),
            inline_bytes: 18 << 10,
            error_page_bytes: 25 << 10,
            listing_entries: 26,
            etag: ETag::Inode,
        },
        transfer: Transfer {
            quantum_bytes: 19 << 10,
            sealed_quantum_bytes: 29 << 10,
            cold_window_bytes: 20 << 10,
        },
        ring: Ring {
            entries: 21,
            recv_buffers: 32,
            recv_buffer_bytes: 2048,
            fixed_buffers: 23,
            min_wait: Duration::from_micros(24),
        },
        stats: Some(directory.path().join("stats.json")),
    };
    assert_eq!(config, expected);
}

#[test]
fn the_command_line_wins() {
    let overrides = Overrides {
        directory: Some("/".into()),
        listen: vec!["127.0.0.1:0".parse().expect("an address"); 2],
        listen_fds: vec![5],
        tls_listen: vec!["[::1]:0".parse().expect("an address")],
        certificates: vec![CertificateFiles { chain: "a.pem".into(), key: "a.key".into() }],
        cpus: Some(vec![1]),
        steer: Some(Steer::Hash),
        stats: Some("elsewhere.json".into()),
    };
    let text = "listen = [\"127.0.0.1:1\"]\ntls_listen = [\"127.0.0.1:2\"]\ncpus = \"0\"\nsteer = \"cpu\"\nstats = \"x\"\n";
    let file = File { path: Path::new("test.toml"), text };
    let config = resolve(Some(file), &overrides, &facts()).expect("all is well");
    let address = plain(Endpoint::Address(overrides.listen[0]));
    let secured = Listener {
        endpoint: Endpoint::Address(overrides.tls_listen[0]),
        tls: Some(ListenerTls {
            certificates: Certificates::Files(overrides.certificates),
            client_auth: ClientAuth::Off,
        }),
    };
    let expected = [address.clone(), address, plain(Endpoint::Descriptor(5)), secured];
    assert_eq!(config.listeners, expected);
    assert_eq!(config.cpus, [1]);
    assert_eq!(config.steer, Steer::Hash);
    assert_eq!(config.sites[0].root, Root::Directory("/".into()));
    assert_eq!(config.stats, Some("elsewhere.json".into()));
}

#[test]
fn all_problems_are_reported_at_once_in_order() {
    let text = "steer = \"left\"\nbogus = 1\n\n[limits]\nhead = \"32KB\"\nfields = 0\n\
                [timeouts]\nidle = 20\nidel = \"20s\"\n";
    let problems = problems(text);
    let starts = [
        "test.toml:1:9: steer: ",
        "test.toml:2:1: bogus: unknown key; known here: listen, ",
        "test.toml:5:8: limits.head: ",
        "test.toml:6:10: limits.fields: ",
        "test.toml:8:8: timeouts.idle: ",
        "test.toml:9:1: timeouts.idel: unknown key; known here: head, body, handshake, ",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
}

/// One mistake is one line: what follows from it would only hide it.
#[test]
fn a_text_that_is_not_toml_is_reported_where_that_begins() {
    for (text, place) in [
        ("steer = \n[limits\n", "1:9"),
        ("stats = \"x\ncpus = \"0\"\n[limits]\nfields = 1\n", "1:11"),
        ("listen = [\"127.0.0.1:80\"\ncpus = \"0\"\n[limits]\nfields = 1\n", "2:1"),
        ("root: /srv\nname: x\n", "1:5"),
        ("<html>\n</html>\n", "1:1"),
    ] {
        let problems = problems(text);
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0].starts_with(&format!("test.toml:{place}: ")), "{problems:#?}");
    }
}

#[test]
fn every_bad_element_of_a_list_is_reported_in_its_place() {
    let text = "listen = [\n  \"80\",\n  \"127.0.0.1:81\",\n  82,\n]\nlisten_fds = [3, -1, \"4\"]\n\
                [[site]]\nroot = \"/\"\nnames = [\"a:80\", \"b\", \"c d\"]\n";
    let problems = problems(text);
    let starts = [
        "test.toml:2:3: listen: `80` is not",
        "test.toml:4:3: listen: write a text",
        "test.toml:6:18: listen_fds: -1 is not within",
        "test.toml:6:22: listen_fds: write a whole number",
        "test.toml:9:10: site.names: `a:80`",
        "test.toml:9:23: site.names: `c d`",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
}

#[test]
fn paths_are_relative_to_the_file_and_not_empty() {
    let path = Path::new("/etc/onering/site.toml");
    let config = |text| {
        resolve(Some(File { path, text }), &Overrides::default(), &facts()).expect("all is well")
    };
    let stats = |text| config(text).stats.expect("it is set");
    assert_eq!(stats("stats = \"stats.json\""), Path::new("/etc/onering/stats.json"));
    assert_eq!(stats("stats = \"/run/stats.json\""), Path::new("/run/stats.json"));
    assert_problem("stats = \"\"", "1:9: stats", "`.` is the directory of this file");
    assert_problem("[[site]]\nroot = \"\"", "2:8: site.root", "`.` is the directory of this file");
}

#[test]
fn values_say_what_to_write_instead() {
    assert_problem("listen = \"x\"", "1:10: listen", "a list of texts");
    assert_problem("listen = [\"80\"]", "1:11: listen", "`127.0.0.1:80`");
    assert_problem("listen = []", "1:10: listen", "name an address");
    assert_problem("listen_fds = [-1]", "1:15: listen_fds", "not within 0 to");
    assert_problem("cpus = 0", "1:8: cpus", "\"0-3,8\"");
    assert_problem("cpus = \"0-\"", "1:8: cpus", "`0-3,8`");
    assert_problem("steer = \"left\"", "1:9: steer", "`auto`, `cpu`, `hash`");
    assert_problem("limits = 1", "1:10: limits", "a table");
    assert_problem("[limits]\nhead = 4096", "2:8: limits.head", "\"64KiB\"");
    assert_problem("[limits]\nhead = \"1GiB\"", "2:8: limits.head", "not within 1024 to 1048576");
    assert_problem("[limits]\nfields = 101", "2:10: limits.fields", "not within 1 to 100");
    assert_problem("[timeouts]\nhead = \"0s\"", "2:8: timeouts.head", "not within 10ms");
    assert_problem("site = 1", "1:8: site", "`[[site]]`");
    assert_problem("[[site]]", "1:1: site.root", "the directory that is served");
    assert_problem("[[site]]\nroot = 1", "2:8: site.root", "a path");
    assert_problem("[[site]]\nroot = \"/\"\nnames = [\"a:80\"]", "3:10: site.names", "no port");
    let wildcard = "[[site]]\nroot = \"/\"\nnames = [\"*.a\"]";
    assert_problem(wildcard, "3:10: site.names", "the first site answers for all other names");
    assert_problem("[[site]]\nroot = \"/\"\nindex = [\"a/b\"]", "3:10: site.index", "`a/b`");
}

#[test]
fn contradictions_are_found_where_they_were_written() {
    assert_problem("cpus = \"0,7\"", "1:8: cpus", "CPU 7; choose from 0,1");
    assert_problem("cpus = \"0-9,20,21\"", "1:8: cpus", "CPU 2-9,20,21; choose from 0,1");
    assert_problem("listen = [\"127.0.0.1:80\", \"127.0.0.1:80\"]", "1:10: listen", "there twice");
    assert_problem("listen_fds = [3, 3]", "1:14: listen_fds", "there twice");
    assert_problem("[limits]\nrequest_line = \"32KiB\"", "2:16: limits.request_line", "no room");
    assert_problem("[limits]\npipeline = \"16KiB\"", "2:12: limits.pipeline", "one head");
    assert_problem("[transfer]\ncold_window = \"5000B\"", "2:15: transfer.cold_window", "pages");
    assert_problem("[ring]\nrecv_buffers = 1000", "2:16: ring.recv_buffers", "write 1024");
    assert_problem("[timeouts]\ndefer_accept = \"500ms\"", "2:16: timeouts.defer_accept", "whole");
    assert_problem("[[site]]\nroot = \"/absent\"", "1:1: site.root", "/absent");
    let twice =
        "[[site]]\nnames = [\"a\"]\nroot = \"/\"\n[[site]]\nnames = [\"A\"]\nroot = \"/\"\n";
    assert_problem(twice, "4:1: site.names", "`a`");
    let nameless = "[[site]]\nroot = \"/\"\n[[site]]\nroot = \"/\"\n";
    assert_problem(nameless, "3:1: site.names", "default");
    assert_problem("[cache]\ndescriptors = 60000", "2:15: cache.descriptors", "`ulimit -n 524288`");
}

#[test]
fn a_host_without_descriptors_is_told_so() {
    let few = Facts { nofile: 64, ..facts() };
    let error = resolve(None, &Overrides::default(), &few).expect_err("no descriptors");
    assert_eq!(error.fault(), Fault::Environment);
    assert!(error.to_string().contains("`LimitNOFILE=524288`"), "{error}");
}

#[test]
fn a_directory_and_sites_contradict_each_other() {
    let overrides = Overrides { directory: Some("/".into()), ..Overrides::default() };
    let file = File { path: Path::new("test.toml"), text: "[[site]]\nroot = \"/\"\n" };
    let error = resolve(Some(file), &overrides, &facts()).expect_err("two roots");
    assert!(error.to_string().starts_with("test.toml:1:1: site: "), "{error}");
}

#[test]
fn a_wrong_command_line_is_named_as_such() {
    let overrides = Overrides {
        directory: Some("/absent".into()),
        cpus: Some(vec![9]),
        ..Overrides::default()
    };
    let error = resolve(None, &overrides, &facts()).expect_err("two problems");
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| line.starts_with("command line: ")), "{lines:#?}");
}

proptest! {
    #[test]
    fn no_text_panics(text in "[\\[\\]a-z=\" \n._0-9{},#-]{0,60}") {
        let _ = written(&text);
    }

    #[test]
    fn no_value_panics(
        key in "(limits|timeouts|tls|cache|transfer|ring)\\.[a-z_]{4,12}",
        value in "(\"[0-9a-zA-Z]{0,8}\"|-?[0-9]{1,20}|0x[0-9a-f]{1,16}|\\[\\]|\\{\\}|[0-9]e5|true)",
    ) {
        let _ = written(&format!("{key} = {value}"));
    }
}
