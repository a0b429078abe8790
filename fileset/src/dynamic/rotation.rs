//! Which ad a user is shown.

use std::fmt;

use super::ads::{ADS, Ads, Expiry};
use super::command::Reset;
use super::cookie::{CookieError, RequestCookie, value_of};
use super::pairs::{self, PairsError};
use super::users::Users;
use crate::name::{FILES_PER_CLASS, FILES_PER_DIRECTORY, Name};

/// What the choice is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// `User.Personality`.
    pub users: Users,
    /// `Custom.Ads`.
    pub ads: Ads,
}

/// The ad that was chosen; as text, the cookie of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its id; `None`, which is written as -1, when there is no such user or no ad for it.
    pub ad: Option<u16>,
    /// The sum of the weights of what it and the user have in common.
    pub weight: u32,
    /// Whether it is out of date. It is shown all the same.
    pub expired: bool,
}

impl Tables {
    /// The tables that a reset asks for, at that time.
    pub fn reset(seed: u64, now_s: u64, reset: &Reset<'_>) -> Self {
        let Reset { pttime_s, threads, expired_from, .. } = *reset;
        let expiry = Expiry { now_s, pttime_s: pttime_s.into(), expired_from };
        Self {
            users: Users::generate(seed, reset.users()),
            ads: Ads::generate(seed, threads, &expiry),
        }
    }

    /// The ad for a user at that time: the first one after the last ad, around the end, of which the
    /// user has enough; the last ad itself is not looked at again.
    pub fn choose(&self, request: RequestCookie, now_s: u64) -> Choice {
        let Some(user) = request.user_index().and_then(|index| self.users.find(index)) else {
            return Choice::NONE;
        };
        self.search(request.last_ad)
            .find_map(|id| {
                let ad = self.ads.as_slice()[usize::from(id)];
                let weight = (user & ad.demographics).weight(ad.weightings);
                let expired = now_s > ad.expires_s;
                (weight >= ad.minimum_match).then_some(Choice { ad: Some(id), weight, expired })
            })
            .unwrap_or(Choice::NONE)
    }

    /// The ads that are looked at, in order. Without a last ad that exists (the answer to an unknown
    /// user is -1, which comes back), that is all of them.
    fn search(&self, last_ad: i32) -> impl Iterator<Item = u16> + use<> {
        let last = u16::try_from(last_ad).ok().filter(|&last| last < ADS);
        let (first, count) = last.map_or((0, ADS), |last| (last + 1, ADS - 1));
        (0..count).map(move |step| (first + step) % ADS)
    }
}

impl Choice {
    /// No ad.
    pub const NONE: Self = Self { ad: None, weight: 0, expired: true };

    /// The file that an ad shows: 36 ads to a directory, nine to a class.
    pub fn shown(self) -> Option<Name> {
        let ad = self.ad?;
        let (of_directory, of_class) = (FILES_PER_DIRECTORY as u16, u16::from(FILES_PER_CLASS));
        let class = ad % of_directory / of_class;
        Name::new((ad / of_directory).into(), class as u8, (ad % of_class) as u8)
    }

    /// What every tag of the requested file is made to show: nothing in classes 0 and 3, which are
    /// sent as they are.
    pub fn replacement(self, requested: Name) -> Option<Name> {
        self.shown().filter(|_| matches!(requested.class(), 1 | 2))
    }

    /// Reads the value of a Set-Cookie field, or of a Cookie field among others.
    pub fn parse(cookies: &[u8]) -> Result<Self, CookieError> {
        let value = value_of(cookies, "found_cookie")?;
        let keys = ["Ad_id", "Ad_weight", "Expired"];
        let [ad, weight, expired] = pairs::parse(value, keys)?;
        let ad = match ad {
            "-1" => None,
            id => Some(pairs::number("Ad_id", id, u32::from(ADS) - 1)? as u16),
        };
        Ok(Self {
            ad,
            weight: pairs::number("Ad_weight", weight, 75)?,
            expired: pairs::number("Expired", expired, 1)? == 1,
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.ad.map_or(-1, i32::from);
        let (weight, expired) = (self.weight, u8::from(self.expired));
        write!(f, "found_cookie=Ad_id={id}&Ad_weight={weight}&Expired={expired}")
    }
}

impl From<PairsError> for CookieError {
    fn from(error: PairsError) -> Self {
        Self::Value(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dynamic::{Ad, Demographics};

    const NOW_S: u64 = 1_000_000_000;

    fn tables(users: u32) -> Tables {
        let expiry = Expiry { now_s: NOW_S, pttime_s: 1800, expired_from: [48, 200] };
        Tables { users: Users::generate(1, users), ads: Ads::generate(1, 5, &expiry) }
    }

    fn request(index: u32, last_ad: i32) -> RequestCookie {
        RequestCookie { user_id: 10_000 + index, last_ad }
    }

    #[test]
    fn a_search_ends_within_24_steps_and_takes_12_in_the_mean() {
        let tables = tables(200);
        let mut steps_sum = 0;
        for user in 0..200 {
            for last in 0..360 {
                let chosen = tables.choose(request(user, last), NOW_S).ad.expect("an ad");
                let steps = (i32::from(chosen) - last).rem_euclid(360);
                assert!((1..=24).contains(&steps), "{steps} steps from {last}");
                steps_sum += steps;
            }
        }
        let mean = f64::from(steps_sum) / (200.0 * 360.0);
        assert!((11.5..=12.5).contains(&mean), "{mean}");
    }

    #[test]
    fn unknown_users_are_shown_nothing() {
        let tables = tables(10);
        assert_eq!(tables.choose(request(10, 5), NOW_S), Choice::NONE);
        let below = RequestCookie { user_id: 9_999, last_ad: 5 };
        assert_eq!(tables.choose(below, NOW_S), Choice::NONE);
        let text = "found_cookie=Ad_id=-1&Ad_weight=0&Expired=1";
        assert_eq!(Choice::NONE.to_string(), text);
        assert_eq!(Choice::NONE.shown(), None);
    }

    #[test]
    fn weights_are_those_of_the_weightings() {
        let mut file = tables(1).ads.to_file();
        let user = tables(1).users.find(0).unwrap();
        // An ad for exactly this user, which needs gender (7), region (1) and the last interest (2).
        let bits = user.0 & 0x30f0_03ff;
        let record = format!("    6 {bits:08X}    7F1F2  10 {NOW_S:10}\n");
        file[6 * 39..7 * 39].copy_from_slice(record.as_bytes());
        let tables = Tables { ads: Ads::parse(&file).unwrap(), ..tables(1) };
        let chosen = tables.choose(request(0, 5), NOW_S);
        assert_eq!(chosen, Choice { ad: Some(6), weight: 10, expired: false });
        // It is valid in its last second; later it is still shown.
        let chosen = tables.choose(request(0, 5), NOW_S + 1);
        assert_eq!(chosen, Choice { ad: Some(6), weight: 10, expired: true });
    }

    #[test]
    fn expired_ads_are_shown_and_flagged() {
        let tables = tables(1);
        let chosen = tables.choose(request(0, 52), NOW_S);
        assert_eq!((chosen.ad, chosen.expired), (Some(53), true));
        let chosen = tables.choose(request(0, 76), NOW_S);
        assert_eq!((chosen.ad, chosen.expired), (Some(77), false));
    }

    #[test]
    fn a_search_goes_around_the_end_and_stops_where_it_began() {
        let tables = tables(1);
        let order = |last| tables.search(last).collect::<Vec<_>>();
        assert_eq!(order(358)[..3], [359, 0, 1]);
        assert_eq!((order(358).len(), order(358)[358]), (359, 357));
        assert_eq!(order(359)[0], 0);
        for no_ad in [-1, 360, i32::MIN, i32::MAX] {
            assert_eq!(order(no_ad), (0..360).collect::<Vec<_>>());
        }
        // With ads for nobody, there is none.
        let nobody = Ad {
            demographics: Demographics(0),
            weightings: 0xf_ffff,
            minimum_match: 1,
            expires_s: 0,
        };
        let mut file = tables.ads.to_file();
        for id in 0..360 {
            let Ad { demographics, weightings, minimum_match, expires_s } = nobody;
            let bits = demographics.0;
            let record =
                format!("{id:5} {bits:08X} {weightings:8X} {minimum_match:3} {expires_s:10}\n");
            file[id * 39..][..39].copy_from_slice(record.as_bytes());
        }
        let tables = Tables { ads: Ads::parse(&file).unwrap(), ..tables };
        assert_eq!(tables.choose(request(0, 7), NOW_S), Choice::NONE);
    }

    #[test]
    fn an_ad_shows_a_file() {
        let shown = |ad| Choice { ad: Some(ad), ..Choice::NONE }.shown().unwrap().to_string();
        assert_eq!(shown(0), "file_set/dir00000/class0_0");
        assert_eq!(shown(54), "file_set/dir00001/class2_0");
        assert_eq!(shown(359), "file_set/dir00009/class3_8");
        let all: std::collections::BTreeSet<String> = (0..360).map(shown).collect();
        assert_eq!(all.len(), 360);
    }

    #[test]
    fn only_classes_1_and_2_are_changed() {
        let choice = Choice { ad: Some(54), ..Choice::NONE };
        let changed =
            [0, 1, 2, 3].map(|class| choice.replacement(Name::new(0, class, 0).unwrap()).is_some());
        assert_eq!(changed, [false, true, true, false]);
    }

    proptest! {
        #[test]
        fn a_choice_as_cookie(
            ad in proptest::option::of(0_u16..360),
            weight in 0_u32..=75,
            expired: bool,
        ) {
            let choice = Choice { ad, weight, expired };
            prop_assert_eq!(Choice::parse(choice.to_string().as_bytes()), Ok(choice));
        }

        #[test]
        fn no_request_makes_it_panic(user_id: u32, last_ad: i32, now_s: u64) {
            tables(5).choose(RequestCookie { user_id, last_ad }, now_s);
        }
    }
}
