//! `key=value&key=value`, as cookies, POST bodies and commands of the workload have it: every key
//! once, in any order, and nothing else. Nothing is percent-encoded.

/// Why such a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairsError {
    /// Bytes that are not printable ASCII.
    #[error("not printable ASCII")]
    Bytes,
    /// A part without `=`, or with a key that does not belong there.
    #[error("a part that does not belong there")]
    Unknown,
    /// A key that is there twice.
    #[error("`{0}` is there twice")]
    Repeated(&'static str),
    /// A key that is not there.
    #[error("`{0}` is not there")]
    Missing(&'static str),
    /// A value that is not as it must be.
    #[error("`{0}` has a value that it may not have")]
    Value(&'static str),
}

/// The values of the keys, in the order of the keys.
pub(super) fn parse<'t, const N: usize>(
    text: &'t [u8],
    keys: [&'static str; N],
) -> Result<[&'t str; N], PairsError> {
    let graphic = text.iter().all(u8::is_ascii_graphic);
    let text = std::str::from_utf8(text).ok().filter(|_| graphic).ok_or(PairsError::Bytes)?;
    let mut values = [None; N];
    for pair in text.split('&') {
        let (key, value) = pair.split_once('=').ok_or(PairsError::Unknown)?;
        let at = keys.iter().position(|known| *known == key).ok_or(PairsError::Unknown)?;
        if values[at].replace(value).is_some() {
            return Err(PairsError::Repeated(keys[at]));
        }
    }
    let mut found = [""; N];
    for ((found, value), key) in found.iter_mut().zip(values).zip(keys) {
        *found = value.ok_or(PairsError::Missing(key))?;
    }
    Ok(found)
}

/// A decimal number, digits alone, of no more than `most`.
pub(super) fn number(key: &'static str, value: &str, most: u32) -> Result<u32, PairsError> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|&number: &u32| digits && number <= most);
    number.ok_or(PairsError::Value(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_once_in_any_order() {
        let parse = |text: &'static str| parse(text.as_bytes(), ["a", "b"]);
        assert_eq!(parse("a=1&b=2"), Ok(["1", "2"]));
        assert_eq!(parse("b=&a=x=y"), Ok(["x=y", ""]));
        assert_eq!(parse("a=1"), Err(PairsError::Missing("b")));
        assert_eq!(parse("a=1&a=1"), Err(PairsError::Repeated("a")));
        for text in ["", "a=1&b=2&", "a=1&b", "a=1&b=2&c=3"] {
            assert_eq!(parse(text), Err(PairsError::Unknown), "{text}");
        }
        for text in ["a=1&b= 2", "a=1&b=\u{e9}", "a=1\n&b=2"] {
            assert_eq!(parse(text), Err(PairsError::Bytes), "{text}");
        }
    }

    #[test]
    fn numbers_are_digits_within_bounds() {
        assert_eq!(number("n", "0012", 12), Ok(12));
        for value in ["13", "", "+1", "-1", "1x", "99999999999"] {
            assert_eq!(number("n", value, 12), Err(PairsError::Value("n")), "{value}");
        }
    }
}
