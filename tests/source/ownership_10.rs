//! Layer 10: safe code cannot make the kernel read or write memory that is not there for it. Each file
//! in `tests/compile_fail` tries one way, and must not compile for the reason that is beside it.

use std::process::Command;

/// The compiler whose words the expected messages are. `TRYBUILD=overwrite` writes another's.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn safe_code_cannot_take_memory_from_under_the_kernel() {
    let version = Command::new("rustc").arg("--version").output().expect("there is a compiler");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(COMPILER) {
        eprintln!("\nskipped: the expected messages are those of {COMPILER}x, not of {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
