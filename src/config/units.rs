//! Durations, sizes, CPU lists and addresses as people write them: the only place that reads them,
//! for the configuration file and for the command line alike.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

/// What is wrong with a value, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

const DURATION_UNITS: [(&str, u64); 5] =
    [("us", 1), ("ms", 1000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];

const SIZE_UNITS: [(&str, u64); 4] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads a whole number and its unit: `10s`, `500ms`, `250us`, `2m`, `1h`. No unit means nothing, save
/// for zero, which has none.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    with_unit(text, &DURATION_UNITS, "a duration is a whole number and us, ms, s, m or h: `10s`")
        .map(Duration::from_micros)
}

/// Reads a size in bytes: `512B`, `64KiB`, `1MiB`, `2GiB`. Decimal units (`KB`) are refused rather than
/// guessed at.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    with_unit(text, &SIZE_UNITS, "a size is a whole number and B, KiB, MiB or GiB: `64KiB`")
}

/// Reads a list of CPUs: `0-3,8`, in the order written, none of them twice.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, UnitError> {
    let malformed =
        || UnitError(format!("`{text}` is not a list of CPUs; write numbers and ranges: `0-3,8`"));
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last && last <= CPU_MAX => (first, last),
            (Some(_), Some(last)) if last > CPU_MAX => {
                return Err(UnitError(format!("CPU {last} is beyond the last, {CPU_MAX}")));
            }
            _ => return Err(malformed()),
        };
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(UnitError(format!("CPU {cpu} is in `{text}` twice")));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

/// Reads where to listen: `127.0.0.1:8080`, `[::]:80`. Neither half has a default, and names are not
/// looked up: what one means may differ from one day to the next.
pub fn parse_address(text: &str) -> Result<SocketAddr, UnitError> {
    text.parse().map_err(|_| {
        let shape = format!("`{text}` is not an address and a port; write ");
        UnitError(shape + &address_meant(text).unwrap_or("`127.0.0.1:8080` or `[::]:80`".into()))
    })
}

/// What someone who wrote `text` is likely to have meant by it.
fn address_meant(text: &str) -> Option<String> {
    let port = text.rsplit(':').next().filter(|port| number::<u16>(port).is_some())?;
    match text.strip_suffix(port)? {
        "" | ":" | "*:" => {
            Some(format!("`0.0.0.0:{port}` for everyone, `127.0.0.1:{port}` for this host"))
        }
        "localhost:" => Some(format!("`127.0.0.1:{port}`")),
        _ => None,
    }
}

/// The highest CPU number that the kernel's affinity calls take here.
const CPU_MAX: usize = 1023;

fn with_unit(text: &str, units: &[(&str, u64)], shape: &str) -> Result<u64, UnitError> {
    if text == "0" {
        return Ok(0);
    }
    let malformed = || UnitError(format!("`{text}`: {shape}"));
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number_text, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
    let number: u64 = number(number_text).ok_or_else(malformed)?;
    number.checked_mul(*factor).ok_or_else(|| UnitError(format!("`{text}` is too large")))
}

/// Digits only: `FromStr` of integers would also take a sign.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        for (text, expected) in [
            ("10s", Duration::from_secs(10)),
            ("500ms", Duration::from_millis(500)),
            ("50us", Duration::from_micros(50)),
            ("2m", Duration::from_secs(120)),
            ("1h", Duration::from_secs(3600)),
            ("0s", Duration::ZERO),
            ("0", Duration::ZERO),
        ] {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
        for text in ["", "10", "s", "1.5s", "-1s", "+1s", "10 s", "10S", "1d", "9999999999999999h"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, expected) in
            [("512B", 512), ("64KiB", 65_536), ("1MiB", 1 << 20), ("2GiB", 2 << 30), ("0", 0)]
        {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "64", "64K", "64KB", "64kib", "1.5MiB", "KiB", "99999999999GiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        let error = parse_bytes("64KB").expect_err("decimal");
        assert!(error.to_string().contains("KiB"), "{error}");
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpus("0"), Ok(vec![0]));
        assert_eq!(parse_cpus("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpus("8,0-1"), Ok(vec![8, 0, 1]));
        for text in
            ["", ",", "0,", "3-1", "0-", "-1", "a", "0,0", "0-2,1", "0 1", "1024", "0-99999999"]
        {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses() {
        for text in ["127.0.0.1:8080", "[::]:80", "[::1]:0"] {
            assert_eq!(parse_address(text).map(|address| address.to_string()), Ok(text.into()));
        }
        for (text, says) in [
            ("", "write `127.0.0.1:8080` or `[::]:80`"),
            ("127.0.0.1", "write `127.0.0.1:8080` or `[::]:80`"),
            ("example.org:80", "write `127.0.0.1:8080` or `[::]:80`"),
            ("::1:80x", "write `127.0.0.1:8080` or `[::]:80`"),
            ("80", "`0.0.0.0:80` for everyone"),
            (":80", "`0.0.0.0:80` for everyone"),
            ("*:80", "`0.0.0.0:80` for everyone"),
            ("localhost:8080", "write `127.0.0.1:8080`"),
            ("70000", "write `127.0.0.1:8080` or `[::]:80`"),
        ] {
            let error = parse_address(text).expect_err(text).to_string();
            assert!(error.starts_with(&format!("`{text}` is not")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = (parse_duration(&text), parse_bytes(&text), parse_cpus(&text));
            let _ = parse_address(&text);
        }

        #[test]
        fn what_is_written_is_read(number in 0_u64..1 << 30, unit in 0..SIZE_UNITS.len()) {
            let (name, factor) = SIZE_UNITS[unit];
            prop_assert_eq!(parse_bytes(&format!("{number}{name}")), Ok(number * factor));
        }
    }
}
