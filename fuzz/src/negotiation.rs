//! Accepted codings: `http::negotiation::preferred` against the sentences of RFC 9110 §12.5.3.
//!
//! The input is field lines, each ending in LF. Every set of codings that there may be is tried.

use onering::http::negotiation::preferred;
use onering::http::{Coding, Codings};

/// Checks field lines.
pub fn check(lines: &[u8]) {
    let values = super::values_of(lines, "accept-encoding");
    super::with_head(lines, |head| {
        for choice in 0..8_u32 {
            let there: Vec<_> = Coding::ALL
                .into_iter()
                .filter(|&coding| choice >> coding as u32 & 1 == 1)
                .collect();
            let available = there.iter().fold(Codings::NONE, |set, &coding| set.with(coding));
            let said = preferred(&head.fields, available);
            assert_eq!(said, best(&values, &there), "of {there:?}");
        }
    });
}

/// The coding with the highest weight above zero; of equal ones the first; none at all if no coding
/// has more than that.
fn best(values: &[&[u8]], there: &[Coding]) -> Option<Coding> {
    if values.is_empty() {
        return None;
    }
    let mut ranked: Vec<_> =
        there.iter().map(|&coding| (weight(values, &names(coding)), coding)).collect();
    ranked.sort_by_key(|&(weight, _)| std::cmp::Reverse(weight));
    let &(highest, coding) = ranked.first()?;
    (highest > 0 && highest >= weight(values, &["identity"])).then_some(coding)
}

fn names(coding: Coding) -> Vec<&'static str> {
    match coding {
        Coding::Brotli => vec!["br"],
        Coding::Zstd => vec!["zstd"],
        Coding::Gzip => vec!["gzip", "x-gzip"],
    }
}

/// The least weight given to any of the names; or to `*`; or zero.
fn weight(values: &[&[u8]], names: &[&str]) -> u16 {
    let least = |is_it: &dyn Fn(&str) -> bool| {
        let members = values.iter().flat_map(|value| value.split(|&byte| byte == b','));
        members
            .filter_map(|member| read(str::from_utf8(member).ok()?.trim_ascii()))
            .filter(|(name, _)| is_it(name))
            .map(|(_, weight)| weight)
            .min()
    };
    let named = least(&|name| names.iter().any(|other| name.eq_ignore_ascii_case(other)));
    named.or_else(|| least(&|name| name == "*")).unwrap_or(0)
}

/// A member's name and its weight in thousandths.
fn read(member: &str) -> Option<(&str, u16)> {
    let Some((name, parameter)) = member.split_once(';') else { return Some((member, 1000)) };
    let (key, value) = parameter.trim_ascii_start().split_once('=')?;
    if !key.eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, thousandths) = value.split_once('.').unwrap_or((value, ""));
    if !["0", "1"].contains(&whole) || !thousandths.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if thousandths.len() > 3 {
        return None;
    }
    let weight = format!("{whole}{thousandths:0<3}").parse().ok()?;
    (weight <= 1000).then_some((name.trim_ascii_end(), weight))
}
