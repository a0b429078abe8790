//! `onering fileset generate`: writes a set, or what is missing of it.

use std::num::NonZero;
use std::path::PathBuf;

use onering_fileset::store::{self, Control, Order};

use super::progress::Watch;
use super::{Exit, Failure, Size};
use crate::sys::signal;

const AFTER_HELP: &str = "\
Examples:
  onering fileset generate /srv/web99 --load 100
      90 directories, 461 MB
  onering fileset generate /srv/web99 --dirs 200
      the same set, grown to 200 directories
  onering fileset generate /tmp/other --dirs 5 --seed 7 --quiet

The files are in DIR/file_set, the manifest is DIR/onering-fileset.json. The same seed gives the same
bytes everywhere.

Interrupted at any point, by Ctrl-C or by loss of power, the same command goes on with it: a file that
was not finished is never taken for a whole one. On return, everything is on the disk. Files that are
missing or have another length are written anew; `onering fileset verify` finds every other change.

Refuses to write anything when the disk is too small, when DIR holds a set of another seed or a larger
one, and while another run is at work in it. Exit codes are those of `onering fileset --help`.";

/// Write the set into a directory, or go on with one.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Where; made if it is not there.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    size: Size,
    /// What the contents are drawn from: that of the set which is there, else 1.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Threads that write. Most of their time they wait for the file system to make a file, so more than
/// there are CPUs. Load 100 on ext4, two busy CPUs: 2.7 to 3.9 s, with two writers 3.3 to 5.8 s, by
/// `cp -r` from memory 4.9 to 6.1 s.
const WRITERS: NonZero<usize> = NonZero::new(8).expect("8 is not 0");

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let directories = args.size.directories()?;
    let order = Order { directories, seed: args.seed, writers: WRITERS };
    let signals = signal::block_termination()
        .map_err(|error| Failure::new(Exit::Environment, format!("signals: {error}")))?;

    let control = Control::default();
    let watch = Watch {
        control: &control,
        total_bytes: directories.bytes(),
        moved_bytes: Control::written_bytes,
        quiet: args.quiet,
    };
    let obey = || {
        if !matches!(signals.read(), Ok(None)) {
            control.stop();
        }
    };
    let (generated, wrote) =
        watch.over(obey, || store::generate(&args.directory, &order, &control));
    let generated = generated.map_err(super::failure)?;

    let directory = args.directory.display();
    if !generated.whole {
        let message = format!(
            "interrupted; go on with: onering fileset generate {directory} --dirs {directories}"
        );
        return Err(Failure::new(Exit::NotWhole, message));
    }
    crate::cli::print(&format!(
        "{directory}: {directories} directories, {} files, {} bytes, seed {}; wrote {wrote}\n",
        directories.files(),
        directories.bytes(),
        generated.seed
    ))
}
