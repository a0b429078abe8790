//! The figures that servers are compared by.

use super::cell::Load;
use crate::statistics::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a measurement found; absent where it was not to be found or could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Right responses per second; in [`Load::Tails`] those of the offered rate that came.
    pub requests_per_s: Option<f64>,
    /// CPU time of the server's processes per right response, µs.
    pub server_cpu_us_per_request: Option<f64>,
    /// Resident memory of the server's processes at the end, bytes.
    pub server_memory_bytes: Option<f64>,
    /// From a request's planned start to the last byte of its response, µs: 99 of 100 are not above.
    pub response_p99_us: Option<f64>,
    /// The same for 999 of 1000.
    pub response_p999_us: Option<f64>,
    /// Memory of the server's processes per connection that waits, bytes; the kernel's part of a
    /// connection is not in it.
    pub idle_connection_bytes: Option<f64>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// [`Figures::requests_per_s`].
    RequestsPerS,
    /// [`Figures::server_cpu_us_per_request`].
    ServerCpuUsPerRequest,
    /// [`Figures::server_memory_bytes`].
    ServerMemoryBytes,
    /// [`Figures::response_p99_us`].
    ResponseP99Us,
    /// [`Figures::response_p999_us`].
    ResponseP999Us,
    /// [`Figures::idle_connection_bytes`].
    IdleConnectionBytes,
}

impl Figure {
    /// Those that a load is about, the first ones first: by them a cell is won or lost.
    pub fn decisive(load: Load) -> &'static [Self] {
        match load {
            Load::Get(_) | Load::Handshakes(_) | Load::Web99 => {
                &[Self::RequestsPerS, Self::ServerCpuUsPerRequest]
            }
            Load::Tails(_) => {
                &[Self::ResponseP99Us, Self::ResponseP999Us, Self::ServerCpuUsPerRequest]
            }
            Load::Idle { .. } => &[Self::IdleConnectionBytes],
        }
    }

    /// Those that a load shows besides.
    pub fn shown(load: Load) -> &'static [Self] {
        match load {
            Load::Get(_) | Load::Handshakes(_) | Load::Web99 => &[Self::ServerMemoryBytes],
            Load::Tails(_) => &[Self::RequestsPerS],
            Load::Idle { .. } => &[Self::ServerMemoryBytes],
        }
    }

    /// Its value in a measurement.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::RequestsPerS => figures.requests_per_s,
            Self::ServerCpuUsPerRequest => figures.server_cpu_us_per_request,
            Self::ServerMemoryBytes => figures.server_memory_bytes,
            Self::ResponseP99Us => figures.response_p99_us,
            Self::ResponseP999Us => figures.response_p999_us,
            Self::IdleConnectionBytes => figures.idle_connection_bytes,
        }
    }

    /// Which way it is good.
    pub fn better(self) -> Better {
        match self {
            Self::RequestsPerS => Better::More,
            _ => Better::Less,
        }
    }

    /// A value as text, in the unit that the name gives.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::ServerMemoryBytes => format!("{:.1}", value / f64::from(1 << 20)),
            Self::IdleConnectionBytes => format!("{:.2}", value / f64::from(1 << 10)),
            _ if value >= 1000.0 => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        }
    }
}

/// Its name with its unit.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestsPerS => "requests/s",
            Self::ServerCpuUsPerRequest => "server CPU µs/request",
            Self::ServerMemoryBytes => "server memory MiB",
            Self::ResponseP99Us => "response time p99 µs",
            Self::ResponseP999Us => "response time p99.9 µs",
            Self::IdleConnectionBytes => "KiB per idle connection",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::CELLS;

    #[test]
    fn every_cell_is_decided_by_something_and_shows_no_figure_twice() {
        for cell in CELLS {
            let (decisive, shown) = (Figure::decisive(cell.load), Figure::shown(cell.load));
            assert!(!decisive.is_empty());
            assert!(shown.iter().all(|figure| !decisive.contains(figure)), "{}", cell.name);
        }
    }

    #[test]
    fn values_are_written_in_the_unit_of_the_name() {
        assert_eq!(Figure::RequestsPerS.text(123_456.7), "123457");
        assert_eq!(Figure::ServerCpuUsPerRequest.text(4.567), "4.57");
        assert_eq!(Figure::ServerMemoryBytes.text(10_485_760.0), "10.0");
        assert_eq!(Figure::IdleConnectionBytes.text(2048.0), "2.00");
    }
}
