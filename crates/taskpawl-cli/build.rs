//! Takes the unwinder of GCC into the program, where the linker has it, so that what is shipped needs no shared library but libc: minimal
//! systems have no `libgcc_s`, and to load it is a tenth of what it takes to start.
#![expect(clippy::disallowed_methods, reason = "what cargo says to a build script stands in the environment")]

use std::env;
use std::path::Path;
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of_target = |name: &str| env::var(name).unwrap_or_default();
    let is_here = of_target("HOST") == of_target("TARGET");
    let has_gcc = of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_here && has_gcc && linker_has_archive() {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// A linker that finds a file says where it is, and one that does not says its name.
fn linker_has_archive() -> bool {
    let said = Command::new("cc").arg(format!("-print-file-name={ARCHIVE}")).output();
    said.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_absolute())
}
