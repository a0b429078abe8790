//! `Custom.Ads`: 360 ads, whom they are for and until when.

use super::demographics::{Demographics, LAST_INTEREST};
use super::record::{Fields, Malformed, Padding, RecordError, expect, records};
use crate::random::{Purpose, Random};

/// How many ads there are.
pub const ADS: u16 = 360;

/// Bytes of a record, its newline included: id (5 columns), demographics (8 digits), weightings (8
/// columns, hexadecimal), minimum match (3), expiration (10), single blanks between.
pub const AD_BYTES: usize = 39;

/// Every so many ads, one is for everybody.
pub const ALWAYS_EVERY: u16 = 24;

/// What is needed of an ordinary ad: more than all weights but the full ones give.
const ORDINARY_MINIMUM: u32 = 75;

/// The weights of an ad for everybody.
const ALWAYS_WEIGHTINGS: u32 = 0x3_ffff;

/// One ad. Its id is its place in [`Ads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ad {
    /// Whom it is for.
    pub demographics: Demographics,
    /// Four bits for each group, see [`GROUPS`](super::GROUPS).
    pub weightings: u32,
    /// The least weight at which it is shown.
    pub minimum_match: u32,
    /// The last second in which it is valid, in Unix time.
    pub expires_s: u64,
}

/// All 360 ads, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ads(Box<[Ad]>);

/// Until when ads are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The present, in Unix time.
    pub now_s: u64,
    /// The run's length; ads are valid for twice as long.
    pub pttime_s: u64,
    /// Where two runs of 24 consecutive ads begin, around the end, that expired 366 days earlier.
    pub expired_from: [u16; 2],
}

impl Expiry {
    /// When ads expire, if a run asks for nothing else.
    pub const PTTIME_S: u64 = 1800;

    fn of(&self, id: u16) -> u64 {
        let within = |from: u16| (id + ADS - from % ADS) % ADS < ALWAYS_EVERY;
        let valid = self.now_s.saturating_add(self.pttime_s.saturating_mul(2));
        let expires = match self.expired_from.iter().any(|&from| within(from)) {
            true => valid.saturating_sub(366 * 24 * 60 * 60),
            false => valid,
        };
        // Ten columns.
        expires.min(9_999_999_999)
    }
}

impl Ad {
    /// Reads a record: the id and the ad.
    pub fn parse(record: &[u8; AD_BYTES]) -> Result<(u64, Self), Malformed> {
        let mut fields = Fields::of(record);
        let id = fields.decimal(5)?;
        fields.blank()?;
        let demographics = Demographics(fields.hex(8, Padding::Zeros)?);
        fields.blank()?;
        let weightings = fields.hex(8, Padding::Blanks)?;
        fields.blank()?;
        // Three columns, so that it fits.
        let minimum_match = fields.decimal(3)? as u32;
        fields.blank()?;
        let expires_s = fields.decimal(10)?;
        fields.newline()?;
        Ok((id, Self { demographics, weightings, minimum_match, expires_s }))
    }

    fn to_record(self, id: usize) -> String {
        let Self { demographics, weightings, minimum_match, expires_s } = self;
        format!("{id:5} {:08X} {weightings:8X} {minimum_match:3} {expires_s:10}\n", demographics.0)
    }
}

impl Ads {
    /// The ads of a seed: whom they are for is drawn. One in 24, from `threads mod 24` on, is for
    /// everybody, so that a search among them ends within 24 steps.
    pub fn generate(seed: u64, threads: u32, expiry: &Expiry) -> Self {
        let mut random = Random::new(seed, Purpose::Ads, 0);
        let always = threads % u32::from(ALWAYS_EVERY);
        let ad = |id: u16| {
            let Demographics(bits) = Demographics::draw(&mut random);
            let weightings = random.below(1 << 20);
            let expires_s = expiry.of(id);
            if u32::from(id % ALWAYS_EVERY) == always {
                let demographics = Demographics(bits | LAST_INTEREST);
                Ad { demographics, weightings: ALWAYS_WEIGHTINGS, minimum_match: 1, expires_s }
            } else {
                let demographics = Demographics(bits);
                Ad { demographics, weightings, minimum_match: ORDINARY_MINIMUM, expires_s }
            }
        };
        Self((0..ADS).map(ad).collect())
    }

    /// Reads the file.
    pub fn parse(file: &[u8]) -> Result<Self, RecordError> {
        let read = |index: usize, record: &[u8; AD_BYTES]| {
            let (id, ad) = Ad::parse(record)?;
            expect(id, index as u64)?;
            Ok(ad)
        };
        let ads = records(file, 1, read)?;
        if ads.len() != usize::from(ADS) {
            let why = Malformed::Count { found: ads.len(), expected: ADS.into() };
            return Err(RecordError { line: ads.len(), why });
        }
        Ok(Self(ads.into()))
    }

    /// The file.
    pub fn to_file(&self) -> Vec<u8> {
        let records = self.0.iter().enumerate();
        records.map(|(id, ad)| ad.to_record(id)).collect::<String>().into_bytes()
    }

    /// All ads, by id.
    pub fn as_slice(&self) -> &[Ad] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dynamic::GROUPS;

    const NOW_S: u64 = 1_000_000_000;

    fn expiry(expired_from: [u16; 2]) -> Expiry {
        Expiry { now_s: NOW_S, pttime_s: Expiry::PTTIME_S, expired_from }
    }

    fn ads(threads: u32) -> Ads {
        Ads::generate(1, threads, &expiry([100, 350]))
    }

    #[test]
    fn the_sample_record() {
        let record = b"   54 24808100    97F61  75  952393980\n";
        let ad = Ad {
            demographics: Demographics(0x2480_8100),
            weightings: 0x9_7f61,
            minimum_match: 75,
            expires_s: 952_393_980,
        };
        assert_eq!(Ad::parse(record), Ok((54, ad)));
        assert_eq!(ad.to_record(54).as_bytes(), record);
        for group in GROUPS {
            assert_eq!((ad.demographics.0 & group.mask).count_ones(), 1);
        }
        assert_eq!(Demographics(0x2480_8100).weight(ad.weightings), 9 + 7 + 15 + 6 + 1);
    }

    #[test]
    fn there_are_360_ads_of_39_bytes() {
        let file = ads(5).to_file();
        assert_eq!(file.len(), 360 * 39);
        let fewer = Ads::parse(&file[..39 * 359]).unwrap_err();
        assert_eq!(fewer.to_string(), "line 359: 359 records, and there must be 360");
        let cut = Ads::parse(&file[..39 * 20 + 3]).unwrap_err();
        assert_eq!(cut.to_string(), "line 21: ends after 3 bytes of 39");
    }

    #[test]
    fn one_in_24_is_for_everybody_and_the_others_for_hardly_anybody() {
        for threads in [0, 5, 24, 100] {
            for (id, ad) in ads(threads).as_slice().iter().enumerate() {
                for group in &GROUPS[..4] {
                    assert_eq!((ad.demographics.0 & group.mask).count_ones(), 1);
                }
                let last = ad.demographics.0 & GROUPS[4].mask;
                if id % 24 == threads as usize % 24 {
                    assert_eq!((ad.minimum_match, ad.weightings, last), (1, 0x3ffff, 0x3ff));
                } else {
                    assert_eq!((ad.minimum_match, last.count_ones()), (75, 1));
                    assert!(ad.weightings < 1 << 20);
                }
            }
        }
    }

    #[test]
    fn two_runs_of_24_have_expired_also_around_the_end() {
        let year_ago = NOW_S + 3_600 - 366 * 86_400;
        for (id, ad) in ads(0).as_slice().iter().enumerate() {
            let expired = (100..124).contains(&id) || !(14..350).contains(&id);
            assert_eq!(ad.expires_s, if expired { year_ago } else { NOW_S + 3_600 }, "{id}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seed in any::<u64>(), threads in any::<u32>(), now_s in any::<u64>()) {
            let expiry = Expiry { now_s, pttime_s: 1800, expired_from: [7, 359] };
            let ads = Ads::generate(seed, threads, &expiry);
            prop_assert_eq!(Ads::parse(&ads.to_file()), Ok(ads));
        }

        #[test]
        fn any_other_byte_is_noticed(at in 0_usize..360 * 39, byte in any::<u8>()) {
            let ads = ads(3);
            let mut file = ads.to_file();
            prop_assume!(file[at] != byte);
            file[at] = byte;
            prop_assert!(Ads::parse(&file) != Ok(ads));
        }
    }
}
