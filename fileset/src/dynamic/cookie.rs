//! The cookies of requests, and of the answer to POST. That of the answer to a request for ads is a
//! [`Choice`](super::Choice).

use std::fmt;

use super::pairs::{self, PairsError};

/// The id of the user with index 0.
pub const USER_ID_BASE: u32 = 10_000;

/// `my_cookie=user_id=10003&last_ad=12`: who asks, and what was shown last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCookie {
    /// 10 000 and the user's index.
    pub user_id: u32,
    /// The id of the last ad; -1 after none was found.
    pub last_ad: i32,
}

/// `my_cookie=10003`: the answer to POST tells who has posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostCookie {
    /// 10 000 and the user's index.
    pub user_id: u32,
}

/// Why there is no such cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    /// There is none of that name. For a dynamic GET, that is a request without ads.
    #[error("there is no cookie of that name")]
    Missing,
    /// It is there, and malformed.
    #[error("the cookie is malformed: {0}")]
    Value(PairsError),
}

impl RequestCookie {
    /// Finds the cookie in the value of a Cookie field, among others.
    pub fn parse(cookies: &[u8]) -> Result<Self, CookieError> {
        let value = value_of(cookies, "my_cookie")?;
        let [user_id, last_ad] = pairs::parse(value, ["user_id", "last_ad"])?;
        let last_ad = match last_ad {
            "-1" => -1,
            id => pairs::number("last_ad", id, i32::MAX.unsigned_abs())? as i32,
        };
        Ok(Self { user_id: pairs::number("user_id", user_id, u32::MAX)?, last_ad })
    }

    /// The user's index in `User.Personality`.
    pub fn user_index(self) -> Option<u32> {
        self.user_id.checked_sub(USER_ID_BASE)
    }
}

impl fmt::Display for RequestCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "my_cookie=user_id={}&last_ad={}", self.user_id, self.last_ad)
    }
}

impl PostCookie {
    /// Reads the value of a Set-Cookie field.
    pub fn parse(cookies: &[u8]) -> Result<Self, CookieError> {
        let value = value_of(cookies, "my_cookie")?;
        let value = std::str::from_utf8(value).map_err(|_| PairsError::Bytes)?;
        Ok(Self { user_id: pairs::number("my_cookie", value, u32::MAX)? })
    }
}

impl fmt::Display for PostCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "my_cookie={}", self.user_id)
    }
}

/// The value of the first cookie of that name (RFC 6265, section 4.2.1).
pub(super) fn value_of<'c>(cookies: &'c [u8], name: &str) -> Result<&'c [u8], CookieError> {
    let mut cookies = cookies.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let value = |cookie: &'c [u8]| cookie.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    cookies.find_map(value).ok_or(CookieError::Missing)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let cookie = RequestCookie { user_id: 10_003, last_ad: 12 };
        for text in [
            "my_cookie=user_id=10003&last_ad=12",
            "a=b; my_cookie=user_id=10003&last_ad=12",
            "not_my_cookie=1;my_cookie=user_id=10003&last_ad=12; my_cookie=2",
        ] {
            assert_eq!(RequestCookie::parse(text.as_bytes()), Ok(cookie), "{text}");
        }
        assert_eq!(cookie.user_index(), Some(3));
    }

    #[test]
    fn what_is_no_cookie_is_refused() {
        let refused = |text: &str| RequestCookie::parse(text.as_bytes()).unwrap_err();
        for text in ["", "my_cookie", "my_cookies=1", "x=my_cookie=1"] {
            assert_eq!(refused(text), CookieError::Missing, "{text}");
        }
        let value = |key| CookieError::Value(PairsError::Value(key));
        assert_eq!(refused("my_cookie=user_id=-1&last_ad=1"), value("user_id"));
        assert_eq!(refused("my_cookie=user_id=1&last_ad=-2"), value("last_ad"));
        assert_eq!(refused("my_cookie=user_id=1&last_ad=2147483648"), value("last_ad"));
        let missing = CookieError::Value(PairsError::Missing("last_ad"));
        assert_eq!(refused("my_cookie=user_id=1"), missing);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(user_id: u32, last_ad in -1_i32..=i32::MAX) {
            let cookie = RequestCookie { user_id, last_ad };
            prop_assert_eq!(RequestCookie::parse(cookie.to_string().as_bytes()), Ok(cookie));
            let cookie = PostCookie { user_id };
            prop_assert_eq!(PostCookie::parse(cookie.to_string().as_bytes()), Ok(cookie));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = RequestCookie::parse(&[b"my_cookie=", bytes.as_slice()].concat());
            let _ = PostCookie::parse(&[b"my_cookie=", bytes.as_slice()].concat());
        }
    }
}
