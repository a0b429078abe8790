//! What a head says about the body that follows it.

use super::*;

/// RFC 9112 §6.1, §6.2, §6.3
#[test]
fn bodies() {
    for (fields, body) in [
        ("", RequestBody::None),
        ("Content-Length: 0\r\n", RequestBody::None),
        ("Content-Length: 000\r\n", RequestBody::None),
        ("Content-Lengths: 5\r\n", RequestBody::None),
        ("TE: trailers\r\n", RequestBody::None),
        ("cONTENT-lENGTH: 5\r\n", RequestBody::Length(5)),
        ("Content-Length: 18446744073709551615\r\n", RequestBody::Length(u64::MAX)),
        ("Connection: Content-Length\r\nContent-Length: 43\r\n", RequestBody::Length(43)),
        ("Transfer-Encoding: chunked\r\n", RequestBody::Chunked),
        ("tRANSFER-eNCODING:\tcHUNKED\r\n", RequestBody::Chunked),
    ] {
        assert_eq!(read(with_fields(fields).as_bytes()).body, body, "{fields:?}");
    }
    for (fields, refusal) in [
        ("Content-Length:\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5, 5\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5,\r\n", Refusal::LengthInvalid),
        ("Content-Length: -5\r\n", Refusal::LengthInvalid),
        ("Content-Length: +5\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5.0\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5e0\r\n", Refusal::LengthInvalid),
        ("Content-Length: 0x5\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5 5\r\n", Refusal::LengthInvalid),
        ("Content-Length: 1_0\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5;\r\n", Refusal::LengthInvalid),
        ("Content-Length: \u{665}\r\n", Refusal::LengthInvalid),
        ("Content-Length: 18446744073709551616\r\n", Refusal::LengthInvalid),
        ("Content-Length: 18446744073709551621\r\n", Refusal::LengthInvalid),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", Refusal::LengthRepeated),
        ("Content-Length: 0\r\nContent-Length: 5\r\n", Refusal::LengthRepeated),
        ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", Refusal::LengthWithCoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", Refusal::LengthWithCoding),
        ("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", Refusal::LengthWithCoding),
        ("Transfer-Encoding: gzip, chunked\r\n", Refusal::CodingUnknown),
        ("Transfer-Encoding: identity\r\n", Refusal::CodingUnknown),
        ("Transfer-Encoding: xchunked\r\n", Refusal::CodingUnknown),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", Refusal::CodingUnknown),
        ("Transfer-Encoding: chunked, gzip\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked, chunked\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked x\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked;a=b\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: \"chunked\"\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chun\u{212a}ed\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: \u{a0}chunked\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding:\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: ,chunked\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: \u{b}chunked\r\n", Refusal::Control),
        ("Transfer-Encoding: chunked\u{c}\r\n", Refusal::Control),
    ] {
        assert_eq!(refused(with_fields(fields)), refusal, "{fields:?}");
    }
    let old = "POST / HTTP/1.0\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refused(old), Refusal::CodingInHttp10);
}

/// RFC 9110 §10.1.1
#[test]
fn expectations() {
    let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    for (fields, expects) in [
        ("Content-Length: 5\r\n", false),
        ("Content-Length: 5\r\nExpect: 100-continue\r\n", true),
        ("eXPECT:\t100-CONTINUE \r\nTransfer-Encoding: chunked\r\n", true),
        ("Content-Length: 5\r\nExpect: 100-continue, 100-Continue\r\n", true),
        ("Content-Length: 5\r\nExpect: 100-continue\r\nExpect: ,100-continue,\r\n", true),
        ("Content-Length: 5\r\nExpect:\r\n", false),
        ("Content-Length: 5\r\nX-Expect: 100-continue\r\n", false),
        // Without a body there is nothing to wait for.
        ("Expect: 100-continue\r\n", false),
        ("Content-Length: 0\r\nExpect: 100-continue\r\n", false),
    ] {
        assert_eq!(read(post(fields).as_bytes()).expects_continue, expects, "{fields:?}");
    }
    for value in [
        "teapot",
        "100",
        "100-continued",
        "100-continue;q=1",
        "100-continue=1",
        "100-continue x",
        "\"100-continue\"",
        "100-continue, teapot",
        "teapot, 100-continue",
        "a=\"b, 100-continue\"",
    ] {
        for body in ["", "Content-Length: 5\r\n"] {
            let head = post(&format!("{body}Expect: {value}\r\n"));
            assert_eq!(refused(head), Refusal::Expectation, "{value}");
        }
    }
    assert_eq!(refused(post("Expect: 100-continue\r\nExpect: teapot\r\n")), Refusal::Expectation);
    // A fault of the framing is the worse one.
    assert_eq!(refused(post("Expect: teapot\r\nContent-Length: x\r\n")), Refusal::LengthInvalid);
    for value in ["100-continue", "teapot"] {
        let old = format!("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: {value}\r\n\r\n");
        assert!(!read(old.as_bytes()).expects_continue, "HTTP/1.0 knows no expectations");
    }
}
