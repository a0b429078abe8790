//! Who is shown which certificate, who is asked for one, and what becomes of bad files.

use super::super::pki::{NOW_S, Pki, resumption};
use super::*;

fn load(pki: &Pki, text: &str, running: Option<&Material>) -> (Option<Material>, Problems) {
    let config = pki.config(text);
    let mut problems = Problems::default();
    let loaded = Material::load(&config, &resumption(&config), running, NOW_S, &mut problems);
    (loaded, problems)
}

/// The first names of the certificates for a server name, on the first listener.
fn shown<'m>(material: &'m Material, name: Option<&str>) -> Vec<&'m str> {
    let listener = material.listeners[0].as_ref().expect("it has TLS");
    let choice = listener.choices.find(name);
    choice.iter().map(|&at| &*material.certificates[at].names()[0]).collect()
}

const LISTENER: &str = "tls_listen = [\"127.0.0.1:0\"]\n";

fn general(names: &[&str]) -> String {
    let pairs =
        names.iter().map(|name| format!("{{ cert = \"{name}.pem\", key = \"{name}.key\" }}"));
    format!("certificates = [{}]\n", pairs.collect::<Vec<_>>().join(", "))
}

#[test]
fn exact_names_come_before_wildcards_and_the_first_certificate_is_everybody_elses() {
    let pki = Pki::new();
    pki.issue("first", &["first.example"]);
    pki.issue("wild", &["*.example"]);
    pki.issue("exact", &["a.example", "a.second.example"]);
    let material =
        pki.material(&format!("{LISTENER}[tls]\n{}", general(&["first", "wild", "exact"])));
    for (name, expected) in [
        (Some("a.example"), &["a.example", "*.example"][..]),
        (Some("b.example"), &["*.example"]),
        (Some("a.second.example"), &["a.example"]),
        (Some("b.second.example"), &["first.example"]),
        (None, &["first.example"]),
    ] {
        assert_eq!(shown(&material, name), expected, "{name:?}");
    }
}

#[test]
fn a_sites_own_certificates_are_for_its_names() {
    let pki = Pki::new();
    pki.issue("general", &["a.example", "b.example"]);
    pki.issue("own", &["own.example", "b.example"]);
    let text = format!(
        "{LISTENER}[tls]\n{}[[site]]\nnames = [\"a.example\"]\nroot = \"/\"\n[[site]]\n\
         names = [\"b.example\"]\nroot = \"/\"\n[site.tls]\n{}",
        general(&["general"]),
        general(&["own"])
    );
    let material = pki.material(&text);
    assert_eq!(shown(&material, Some("a.example")), ["a.example"]);
    assert_eq!(shown(&material, Some("b.example")), ["own.example"]);
    // Its certificate is found by its other names, too.
    assert_eq!(shown(&material, Some("own.example")), ["own.example"]);
    assert_eq!(shown(&material, None), ["a.example"]);
}

#[test]
fn of_several_kinds_of_key_the_cheapest_comes_first() {
    let pki = Pki::new();
    let issue = |name: &str, kind| {
        let names = ["a.example"];
        pki.files(name, &pki.identity_with(&names, kind, |_| {}));
    };
    issue("one", &rcgen::PKCS_ED25519);
    issue("two", &rcgen::PKCS_ECDSA_P384_SHA384);
    let material = pki.material(&format!("{LISTENER}[tls]\n{}", general(&["one", "two"])));
    for name in [Some("a.example"), None] {
        let listener = material.listeners[0].as_ref().expect("it has TLS");
        let kinds = listener.choices.find(name).iter().map(|&at| material.certificates[at].kind());
        assert_eq!(kinds.collect::<Vec<_>>(), [KeyKind::Ecdsa, KeyKind::Ed25519], "{name:?}");
    }
}

#[test]
fn without_certificates_one_is_made_and_outlives_a_reload() {
    let pki = Pki::new();
    let text = format!("{LISTENER}[[site]]\nnames = [\"a.example\", \"[::2]\"]\nroot = \"/\"\n");
    let (first, problems) = load(&pki, &text, None);
    assert_eq!(problems, Problems::default());
    let first = first.expect("it is made");
    let names = ["localhost", "127.0.0.1", "::1", "a.example", "::2"].map(String::from);
    assert_eq!(first.made_for(), Some(&names[..]));
    let (second, _) = load(&pki, &text, Some(&first));
    let same = second.expect("it is there").certificates[0].is_same(&first.certificates[0]);
    assert!(same);
    let (third, _) = load(&pki, &text, None);
    assert!(!third.expect("it is made").certificates[0].is_same(&first.certificates[0]));
    assert_eq!(pki.material("listen = [\"127.0.0.1:0\"]").made_for(), None);
}

#[test]
fn names_that_nothing_covers_are_warned_of_once() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example", "*.b.example", "192.0.2.1"]);
    let text = format!(
        "tls_listen = [\"127.0.0.1:0\", \"[::1]:0\"]\n[tls]\n{}[[site]]\nroot = \"/\"\nnames = \
         [\"a.example\", \"www.b.example\", \"b.example\", \"192.0.2.1\", \"[::1]\"]\n",
        general(&["site"])
    );
    let (material, problems) = load(&pki, &text, None);
    assert!(material.is_some());
    let found: Vec<_> = problems.iter().collect();
    assert_eq!(found.len(), 2, "{problems}");
    for (problem, name) in found.iter().zip(["`b.example`", "`[::1]`"]) {
        assert_eq!(problem.severity, Severity::Warning);
        assert_eq!(problem.file.as_ref(), Some(&files.chain));
        assert!(problem.message.contains(name), "{problem}");
    }
}

#[test]
fn everything_that_is_fatal_is_told_at_once() {
    let pki = Pki::new();
    pki.issue("good", &["a.example"]);
    let ca = pki.write("ca.pem", "nothing");
    let text = format!(
        "{LISTENER}[tls]\n{}[[site]]\nroot = \"/\"\n[site.tls]\nclient_ca = \"ca.pem\"\n\
         certificates = [{{ cert = \"gone.pem\" }}, {{ cert = \"good.pem\" }}]\n",
        general(&["good"])
    );
    let (material, problems) = load(&pki, &text, None);
    assert!(material.is_none());
    let files: Vec<_> = problems.iter().map(|problem| problem.file.clone()).collect();
    let gone = Some(pki.path("gone.pem"));
    let without_key = Some(pki.path("good.pem"));
    assert_eq!(files, [gone.clone(), gone, without_key, Some(ca)], "{problems}");
}

#[test]
fn policies_are_told_apart_by_what_clients_have_to_be() {
    let pki = Pki::new();
    pki.issue("site", &["a.example"]);
    pki.write("one.pem", &pki.root());
    pki.write("same.pem", &format!("{0}\n{0}", pki.root()));
    pki.write("both.pem", &format!("{}{}", pki.root(), pki.intermediate()));
    pki.write("htob.pem", &format!("{}{}", pki.intermediate(), pki.root()));
    let site = |name: &str, tls: &str| {
        format!("[[site]]\nroot = \"/\"\nnames = [\"{name}\"]\n[site.tls]\n{tls}\n")
    };
    let sites = [
        site("first", ""),
        site("one", "client_ca = \"one.pem\""),
        site("same", "client_ca = \"same.pem\""),
        site("optional", "client_ca = \"one.pem\"\nclient_auth = \"optional\""),
        site("both", "client_ca = \"both.pem\""),
        site("htob", "client_ca = \"htob.pem\""),
        site("off", "client_auth = \"off\""),
    ];
    let text = format!("{LISTENER}[tls]\n{}{}", general(&["site"]), sites.concat());
    let material = pki.material(&text);
    let listener = material.listeners[0].as_ref().expect("it has TLS");
    let id = |name| listener.policies[*listener.policy_of.find(name)].id;
    for (one, other, same) in [
        ("first", "off", true),
        ("first", "elsewhere", true),
        ("one", "same", true),
        ("both", "htob", true),
        ("first", "one", false),
        ("one", "optional", false),
        ("one", "both", false),
    ] {
        assert_eq!(id(Some(one)) == id(Some(other)), same, "{one} {other}");
    }
    assert_eq!(id(None), id(Some("first")));
}

#[test]
fn sessions_are_bound_to_listeners_by_what_is_said_of_them() {
    let pki = Pki::new();
    pki.issue("site", &["a.example"]);
    pki.issue("inside", &["a.example"]);
    let text = |general: &str| {
        format!(
            "tls_listen = [\"127.0.0.1:0\", \"[::1]:0\"]\n[[listener]]\naddress = \"127.0.0.2:0\"\n\
             tls = true\ncertificates = [{{ cert = \"inside.pem\", key = \"inside.key\" }}]\n[tls]\n{general}"
        )
    };
    let ids = |text: &str| {
        let material = pki.material(text);
        let of = |listener: &Option<OfListener>| listener.as_ref().expect("TLS").policies[0].id;
        material.listeners.iter().map(of).collect::<Vec<_>>()
    };
    let before = ids(&text(&general(&["site"])));
    assert_eq!(before[0], before[1]);
    assert_ne!(before[0], before[2]);
    // Neither a new certificate nor other files change it; another version does.
    pki.issue("site", &["a.example", "b.example"]);
    pki.issue("other", &["a.example"]);
    assert_eq!(ids(&text(&general(&["site"]))), before);
    assert_eq!(ids(&text(&general(&["other"]))), before);
    assert_ne!(ids(&text(&format!("min_version = \"1.3\"\n{}", general(&["site"]))))[0], before[0]);
}

#[test]
fn a_single_sites_policy_is_everybodys() {
    let pki = Pki::new();
    pki.write("ca.pem", &pki.root());
    let text = format!(
        "{LISTENER}[[site]]\nroot = \"/\"\nnames = [\"a.example\"]\n[site.tls]\nclient_ca = \"ca.pem\"\n"
    );
    let material = pki.material(&text);
    let listener = material.listeners[0].as_ref().expect("it has TLS");
    assert_eq!(listener.policies.len(), 1);
    assert!(matches!(listener.policies[0].asked, Asked::Required(_)));
}

#[test]
fn a_reload_is_no_worse_than_what_runs() {
    let pki = Pki::new();
    pki.issue("a", &["a.example"]);
    pki.issue("b", &["b.example"]);
    let text = format!("{LISTENER}[tls]\n{}", general(&["a", "b"]));
    let (running, _) = load(&pki, &text, None);
    let running = running.expect("both are right");
    let judged = |running: &Material| {
        let (next, problems) = load(&pki, &text, Some(running));
        let next = next.expect("nothing is fatal");
        (running.is_worsened_by(&next, &problems), next)
    };
    assert!(!judged(&running).0);
    let expired = |name: &str| {
        let at = |unix_s| {
            x509_parser::time::ASN1Time::from_timestamp(unix_s).expect("a time").to_datetime()
        };
        let kind = &rcgen::PKCS_ECDSA_P256_SHA256;
        let identity = pki.identity_with(&["a.example"], kind, |params| {
            (params.not_before, params.not_after) = (at(NOW_S - 200), at(NOW_S - 100));
        });
        pki.files(name, &identity);
    };
    expired("a");
    let (worse, started_with_it) = judged(&running);
    assert!(worse, "a good certificate would give way to an expired one");
    pki.issue("b", &["b.example"]);
    assert!(!judged(&started_with_it).0, "the expired one is already there");
}
