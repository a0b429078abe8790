//! RFC 9110 §12.5.3 as a table, then properties.

use proptest::prelude::*;

use super::*;

fn all() -> Codings {
    Coding::ALL.into_iter().fold(Codings::NONE, Codings::with)
}

fn of(accept_encoding: &str, available: Codings) -> Option<Coding> {
    preferred(&FieldLines::of(&format!("Accept-Encoding: {accept_encoding}\r\n")), available)
}

#[test]
fn by_weight_then_by_length() {
    use Coding::{Brotli, Gzip, Zstd};
    for (accept_encoding, expected) in [
        ("gzip", Some(Gzip)),
        ("GZip", Some(Gzip)),
        ("x-gzip", Some(Gzip)),
        ("gzip, deflate, br, zstd", Some(Brotli)),
        ("gzip, deflate, zstd", Some(Zstd)),
        ("br;q=0.5, gzip", Some(Gzip)),
        ("br;q=0.5, gzip;q=0.51", Some(Gzip)),
        ("br;q=0.500, gzip;q=0.5", Some(Brotli)),
        ("br ; q=0.001", Some(Brotli)),
        ("br;Q=1.000", Some(Brotli)),
        ("*", Some(Brotli)),
        ("*, br;q=0", Some(Zstd)),
        ("*;q=0.5, gzip", Some(Gzip)),
        ("gzip, identity", Some(Gzip)),
        ("gzip;q=0.5, identity;q=0.5", Some(Gzip)),
        ("identity;q=0, gzip;q=0.1", Some(Gzip)),
        ("gzip,, ,", Some(Gzip)),
        ("br;level=3, gzip", Some(Gzip)),
        // No coding.
        ("", None),
        ("identity", None),
        ("deflate, compress", None),
        ("gzip;q=0", None),
        ("gzip;q=0.000, *;q=0", None),
        ("*;q=0", None),
        ("identity;q=0", None),
        ("identity, gzip;q=0.9", None),
        ("identity;q=1, *;q=0.5", None),
        ("gzip, gzip;q=0", None),
        ("gzip;q=0, gzip", None),
        // Malformed members say nothing.
        ("gzip;q=1.001", None),
        ("gzip;q=2", None),
        ("gzip;q=-1", None),
        ("gzip;q=0.1234", None),
        ("gzip;q=", None),
        ("gzip;q=.5", None),
        ("gzip;q=0,5", None),
        ("gzip q=1", None),
        ("gzip;q=1;q=1", None),
        ("gzi", None),
        ("gzip2", None),
    ] {
        assert_eq!(of(accept_encoding, all()), expected, "{accept_encoding:?}");
    }
}

#[test]
fn only_what_there_is() {
    let gzip = Codings::NONE.with(Coding::Gzip);
    assert_eq!(of("br, gzip;q=0.1", gzip), Some(Coding::Gzip));
    assert_eq!(of("br, gzip;q=0.1, identity;q=0.2", gzip), None);
    assert_eq!(of("br", gzip), None);
    assert_eq!(of("*", Codings::NONE), None);
    assert_eq!(preferred(&FieldLines::NONE, all()), None);
}

#[test]
fn several_lines_are_one_list() {
    let fields = FieldLines::of("Accept-Encoding: br;q=0.5\r\naccept-encoding: gzip\r\n");
    assert_eq!(preferred(&fields, all()), Some(Coding::Gzip));
}

proptest! {
    /// What is chosen is there and was not refused, and nothing that is there weighs more.
    #[test]
    fn the_choice_is_the_heaviest(weights in prop::array::uniform4(0..=1000_u16), set in 0..8_u8) {
        let text = |weight: u16| format!("{}.{:03}", weight / 1000, weight % 1000);
        let [br, zstd, gzip, identity] = weights.map(text);
        let list = format!("br;q={br}, identity;q={identity}, zstd;q={zstd}, gzip;q={gzip}");
        let available = Codings(set);
        let weight = |coding: Coding| weights[coding as usize];
        let heaviest =
            Coding::ALL.into_iter().filter(|&c| available.has(c)).map(weight).max().unwrap_or(0);
        match of(&list, available) {
            Some(coding) => {
                prop_assert!(available.has(coding));
                prop_assert!(weight(coding) == heaviest && heaviest > 0 && heaviest >= weights[3]);
            }
            None => prop_assert!(heaviest == 0 || heaviest < weights[3]),
        }
    }

    /// Whatever bytes come: no panic, and nothing that there is not.
    #[test]
    fn any_bytes_are_read(list in "[gzipbrq=;,.*01 ]{0,30}", set in 0..8_u8) {
        let choice = of(&list, Codings(set));
        prop_assert!(choice.is_none_or(|coding| Codings(set).has(coding)));
    }
}
