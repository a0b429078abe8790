//! `onering fileset plan`: how large a set is, before it is written.

use std::fmt::Write;

use onering_fileset::laws::Popularity;
use onering_fileset::plan::Directories;
use serde::Serialize;

use super::{Exit, Failure, Size};

const AFTER_HELP: &str = "\
Examples:
  onering fileset plan --load 5700
  onering fileset plan --dirs 90 --json

`size MB` is the \"Fileset Size (MB)\" of published results: 4.88 for each directory. The last lines say
how much memory holds the files that so many of all requests are for. The JSON's first field names its
version. Exit codes are those of `onering fileset --help`.";

/// Say how many directories, files and bytes a load needs.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    size: Size,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Shares of all requests, in percent.
const PERCENTS: [f64; 3] = [90.0, 99.0, 99.9];

#[derive(Debug, Serialize)]
struct Plan {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<u64>,
    directories: u32,
    files: u64,
    bytes: u64,
    size_mb: f64,
    working_sets: [WorkingSet; PERCENTS.len()],
}

/// The most popular files, for which so many of all requests are.
#[derive(Clone, Copy, Debug, Serialize)]
struct WorkingSet {
    requests_percent: f64,
    bytes: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let plan = Plan::new(args.size.directories()?, args.size.load);
    let text = if args.json {
        let json = serde_json::to_string_pretty(&plan)
            .map_err(|error| Failure::new(Exit::Environment, error))?;
        json + "\n"
    } else {
        plan.as_text()
    };
    crate::cli::print(&text)
}

impl Plan {
    fn new(directories: Directories, load: Option<u64>) -> Self {
        let popularity = Popularity::new(directories);
        let bytes = popularity.working_set_bytes(PERCENTS.map(|percent| percent / 100.0), 1);
        let mut working_sets =
            PERCENTS.map(|requests_percent| WorkingSet { requests_percent, bytes: 0 });
        working_sets.iter_mut().zip(bytes).for_each(|(set, bytes)| set.bytes = bytes);
        Self {
            format: "onering-fileset-plan/1",
            load,
            directories: directories.count(),
            files: directories.files(),
            bytes: directories.bytes(),
            size_mb: directories.disclosed_mb(),
            working_sets,
        }
    }

    fn as_text(&self) -> String {
        const MIB: f64 = 1024.0 * 1024.0;
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            writeln!(text, "{name:12} {value}").expect("a string takes every line");
        };
        if let Some(load) = self.load {
            line("load", format!("{load} connections"));
        }
        line("directories", self.directories.to_string());
        line("files", self.files.to_string());
        line("bytes", format!("{} ({:.2} GiB)", self.bytes, self.bytes as f64 / MIB / 1024.0));
        line("size MB", format!("{:.2}", self.size_mb));
        for set in self.working_sets {
            let mib = set.bytes as f64 / MIB;
            line(&format!("{} %", set.requests_percent), format!("of requests: {mib:.0} MiB"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_as_text() {
        let plan = Plan::new(Directories::for_load(4250).expect("a load"), Some(4250));
        let expected = "\
load         4250 connections
directories  2811
files        101196
bytes        14390869524 (13.40 GiB)
size MB      13717.68
90 %         of requests: 341 MiB
99 %         of requests: 1499 MiB
99.9 %       of requests: 5245 MiB
";
        assert_eq!(plan.as_text(), expected);
    }
}
