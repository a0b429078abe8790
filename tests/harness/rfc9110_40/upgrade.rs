//! RFC 9110 §7.6, §7.8 and §10.1.4: what concerns the connection alone. No other protocol is spoken,
//! so that an `Upgrade` is ignored, as the section allows; so is `TE`, for no answer has trailers.

use crate::conformance_40::{Answer, Case, alpha, case, get, hold, index, request};

fn upgrades() -> Vec<Case> {
    let plain = || index().lacking("Upgrade").lacking("Connection");
    let mut cases = Vec::new();
    for protocol in ["foo/1", "websocket", "h2c", "HTTP/2.0", "TLS/1.2", "a, b/2", ""] {
        let field = format!("Upgrade: {protocol}");
        cases.push(case("an upgrade", get("/", [&*field, "Connection: Upgrade"])).gets(plain()));
        cases.push(
            case("an upgrade of 1.0", request("GET / HTTP/1.0", [&*field, "Connection: Upgrade"]))
                .gets_last(index()),
        );
        cases.push(
            case("an upgrade that Connection does not name", get("/", [&*field])).gets(plain()),
        );
    }
    cases.push(
        case("an upgrade and close", get("/", ["Upgrade: foo", "Connection: Upgrade, close"]))
            .gets_last(index()),
    );
    // RFC 7540 §3.2, which RFC 9113 §3.1 has done away with.
    cases.push(
        case(
            "an upgrade to HTTP/2, and a request behind it",
            [
                get(
                    "/",
                    [
                        "Upgrade: h2c",
                        "HTTP2-Settings: AAMAAABkAAQAAP__",
                        "Connection: Upgrade, HTTP2-Settings",
                    ],
                ),
                get("/alpha.txt", []),
            ]
            .concat(),
        )
        .gets([plain(), alpha()]),
    );
    cases.push(
        case(
            "a handshake of WebSocket",
            get(
                "/",
                [
                    "Upgrade: websocket",
                    "Connection: keep-alive, Upgrade",
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                    "Sec-WebSocket-Version: 13",
                ],
            ),
        )
        .gets(plain()),
    );
    cases.push(
        case("an upgrade with OPTIONS", request("OPTIONS * HTTP/1.1", ["Upgrade: TLS/1.0"]))
            .gets(Answer::no_content()),
    );
    cases
}

fn transfer_codings_accepted() -> Vec<Case> {
    let mut cases = Vec::new();
    for te in ["trailers", "", "chunked", "gzip;q=0.5", "trailers, deflate;q=0.5", "x;y=\"z\""] {
        let field = format!("TE: {te}");
        cases.push(
            case("TE", get("/", [&*field, "Connection: TE"]))
                .gets(index().lacking("Transfer-Encoding").lacking("Trailer")),
        );
    }
    cases.push(
        case("TE and close", get("/", ["TE: trailers", "Connection: TE, close"]))
            .gets_last(index()),
    );
    cases
}

#[test]
fn cases() {
    hold([upgrades(), transfer_codings_accepted()].into_iter().flatten().collect());
}
