//! What is written about TLS.

use super::*;

fn listener(text: &str) -> ListenerTls {
    let config = written(text).expect(text);
    config.listeners.into_iter().find_map(|listener| listener.tls).expect("one with TLS")
}

fn files(name: &str) -> Certificates {
    let [chain, key] = ["pem", "key"].map(|kind| format!("{name}.{kind}").into());
    Certificates::Files(vec![CertificateFiles { chain, key }])
}

fn site(tls: &str) -> String {
    format!("tls_listen = [\"127.0.0.1:443\"]\n[[site]]\nroot = \"/\"\n[site.tls]\n{tls}\n")
}

#[test]
fn a_listener_without_certificates_has_the_general_ones_then_a_sites_then_one_made_for_it() {
    let of =
        |name: &str| format!("certificates = [{{ cert = \"{name}.pem\", key = \"{name}.key\" }}]");
    let own = format!("[[listener]]\naddress = \"127.0.0.1:1\"\ntls = true\n{}\n", of("own"));
    let general = format!("[tls]\n{}\n", of("general"));
    let sites = site(&of("site"));
    assert_eq!(listener(&format!("{own}{general}")).certificates, files("own"));
    assert_eq!(listener(&format!("{sites}{general}")).certificates, files("general"));
    assert_eq!(listener(&sites).certificates, files("site"));
    assert_eq!(listener("tls_listen = [\"127.0.0.1:1\"]").certificates, Certificates::SelfSigned);
}

#[test]
fn clients_are_asked_where_somebody_vouches_for_them() {
    let listener = |client: &str| {
        listener(&format!("[[listener]]\naddress = \"127.0.0.1:1\"\ntls = true\n{client}"))
            .client_auth
    };
    let authorities = || "ca.pem".into();
    let ca = "client_ca = \"ca.pem\"\n";
    assert_eq!(listener(""), ClientAuth::Off);
    assert_eq!(listener(ca), ClientAuth::Required { authorities: authorities() });
    let optional = listener(&format!("{ca}client_auth = \"optional\""));
    assert_eq!(optional, ClientAuth::Optional { authorities: authorities() });
    assert_eq!(listener(&format!("{ca}client_auth = \"off\"")), ClientAuth::Off);
    let nobody = "[[listener]]\naddress = \"127.0.0.1:1\"\ntls = true\nclient_auth = \"required\"";
    assert_problem(nobody, "1:1: listener.client_ca", "vouch for clients");
}

#[test]
fn a_listener_says_where_and_means_what_it_says() {
    assert_problem("[[listener]]\ntls = true", "1:1: listener.address", "where to listen");
    let both = "[[listener]]\naddress = \"127.0.0.1:1\"\nfd = 3";
    assert_problem(both, "1:1: listener.fd", "write two listeners");
    let plain = "[[listener]]\nfd = 3\ncertificates = [{ cert = \"a\" }]";
    assert_problem(plain, "1:1: listener.tls", "`tls = true`");
    let plain = "[[listener]]\nfd = 3\nclient_ca = \"a\"";
    assert_problem(plain, "1:1: listener.tls", "`tls = true`");
    let twice = "tls_listen = [\"127.0.0.1:1\"]\n[[listener]]\naddress = \"127.0.0.1:1\"";
    assert_problem(twice, "2:1: listener", "127.0.0.1:1 is there twice");
    let twice = "listen = [\"127.0.0.1:1\"]\ntls_listen = [\"127.0.0.1:1\"]";
    assert_problem(twice, "2:14: tls_listen", "127.0.0.1:1 is there twice");
    assert_problem("[[listener]]\naddress = \"80\"", "2:11: listener.address", "`0.0.0.0:80`");
}

#[test]
fn certificates_are_pairs_of_files() {
    let general = |value: &str| format!("[tls]\ncertificates = {value}");
    for (value, column, says) in [
        ("\"a.pem\"", 16, "[{ cert = "),
        ("[\"a.pem\"]", 17, "{ cert = "),
        ("[]", 16, "is empty"),
        ("[{ key = \"a.key\" }]", 17, "`cert` is missing"),
        ("[{ cert = \"a\", chain = \"b\" }]", 17, "known here: cert, key"),
        ("[{ cert = \"a\" }, { cert = 1 }]", 33, "`cert`"),
        ("[{ cert = \"\" }]", 17, "`cert` is empty"),
    ] {
        assert_problem(&general(value), &format!("2:{column}: tls.certificates"), says);
    }
}

#[test]
fn values_of_tls_have_bounds() {
    for (line, says) in [
        ("min_version = \"1.1\"", "`1.2`, `1.3`"),
        ("ktls = true", "`auto`, `on`, `off`"),
        ("ticket_period = \"100h\"", "not within 1s to"),
        ("session_lifetime = \"25h\"", "not within 1s to 86400s"),
        ("handshakes = 0", "not within 1 to"),
        ("offload_rsa = 512", "not within 1024 to"),
    ] {
        let problems = problems(&format!("[tls]\n{line}"));
        assert!(problems.len() == 1 && problems[0].contains(says), "{problems:#?}");
    }
}

#[test]
fn strict_transport_security_is_what_browsers_take() {
    for right in ["max-age=0", "max-age=63072000; includeSubDomains; preload", "MAX-AGE = 1;"] {
        let text = site(&format!("hsts = \"{right}\""));
        let config = written(&text).expect(&text);
        assert_eq!(config.sites[0].tls.hsts.as_deref(), Some(right));
    }
    for (wrong, says) in [
        ("", "lacks `max-age`"),
        ("includeSubDomains", "lacks `max-age`"),
        ("max-age", "how many seconds"),
        ("max-age=1y", "how many seconds"),
        ("max-age=1; max-age=2", "twice"),
        ("max-age=1, includeSubDomains", "how many seconds"),
        ("max-age=1; includeSubDomains=1", "do not know"),
        ("max-age=1;\\nincludeSubDomains", "do not know"),
    ] {
        assert_problem(&site(&format!("hsts = \"{wrong}\"")), "5:8: site.tls.hsts", says);
    }
    let plain = "[[site]]\nroot = \"/\"\n[[site.headers]]\nalways = true\n\
                 set = { Strict-Transport-Security = \"max-age=1\" }";
    assert_problem(plain, "5:7: site.headers.set", "write `hsts` in `[site.tls]`");
}

#[test]
fn requests_are_sent_on_to_a_port_that_is_known() {
    let redirect = |value: &str| {
        let text = site(&format!("redirect = {value}"));
        written(&text).expect(&text).sites[0].tls.redirect
    };
    assert_eq!(redirect("true"), Redirect::ToListener);
    assert_eq!(redirect("false"), Redirect::Off);
    assert_eq!(redirect("443"), Redirect::ToPort(443));
    assert_problem(&site("redirect = 0"), "5:12: site.tls.redirect", "or write `true`");
    let nowhere = "listen = [\"127.0.0.1:1\"]\n[[site]]\nroot = \"/\"\n[site.tls]\nredirect = true";
    assert_problem(nowhere, "2:1: site.tls.redirect", "`redirect = 443`");
    let elsewhere = nowhere.replace("true", "443");
    written(&elsewhere).expect("something else has TLS");
}

#[test]
fn policies_are_numbered_by_what_they_ask_for() {
    let ca = |name: &str| ClientAuth::Required { authorities: name.into() };
    let site = |client_auth| Site {
        tls: SiteTls { client_auth, ..SiteTls::default() },
        ..Site::of(Root::Welcome)
    };
    let sites = [site(None), site(Some(ca("a"))), site(Some(ClientAuth::Off)), site(Some(ca("a")))];
    let policies = Policies::of(&sites);
    let id = |client_auth: &ClientAuth| policies.id(client_auth);
    let of = |site: &Site| site.tls.client_auth.as_ref().map(id);
    let off = Admission { of_listener: id(&ClientAuth::Off), asked: id(&ClientAuth::Off) };
    assert_eq!([0, 1, 2, 3].map(|at| off.is_for(of(&sites[at]))), [true, false, true, false]);
    let a = Admission { asked: id(&ca("a")), ..off };
    assert_eq!([0, 1, 2, 3].map(|at| a.is_for(of(&sites[at]))), [false, true, false, true]);
    let b = Admission { of_listener: id(&ca("b")), asked: id(&ca("b")) };
    assert_eq!([0, 1, 2, 3].map(|at| b.is_for(of(&sites[at]))), [true, false, false, false]);
}
