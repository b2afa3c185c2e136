//! The shipped artifacts: size and dependencies of the program, and number of crates of the library.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::context::Context;
use crate::group::{Goal, Group, Subject};
use crate::measure::output;
use crate::product::Product;
use crate::sample::{Metric, Sample};

/// Parts of libc, the loader and the kernel's vDSO; they do not count as libraries.
const LIBC: [&str; 8] =
    ["libc.", "libm.", "libdl.", "libpthread.", "librt.", "libutil.", "linux-vdso.", "ld-linux"];

pub(crate) fn program(context: &Context) -> Result<Group, Failure> {
    const SIZE: &str = "size of the program";
    const SYMBOLS: &str = "sections with symbols of its own";
    const LIBRARIES: &str = "shared libraries beside libc";
    const ADDRESSES: &str = "addresses that the loader puts in place at each start";
    let program = Product::find(context.scratch())?.program().to_owned();
    let (of_size, of_symbols, of_addresses) = (program.clone(), program.clone(), program.clone());
    let subjects = vec![
        Subject::new(SIZE, 1, move || {
            Ok(Sample::default().with(Metric::Memory, std::fs::metadata(&of_size)?.len() as f64))
        }),
        Subject::new(SYMBOLS, 1, move || {
            Ok(counted(lines_with(&of_symbols, "readelf", "-SW", " .symtab ")?))
        }),
        Subject::new(LIBRARIES, 1, move || Ok(counted(libraries(&program)?))),
        Subject::new(ADDRESSES, 1, move || {
            Ok(counted(lines_with(&of_addresses, "readelf", "-rW", "_RELATIVE ")?))
        }),
    ];
    let goals = vec![
        Goal::figure_at_most(SIZE, Metric::Memory, f64::from(25 << 20)),
        Goal::figure_at_most(SYMBOLS, Metric::Count, 0.0),
        Goal::figure_at_most(LIBRARIES, Metric::Count, 0.0),
    ];
    Ok(Group {
        title: "The shipped program".to_owned(),
        unit: "file".into(),
        subjects,
        goals,
        is_fixed: true,
    })
}

pub(crate) fn crates() -> Group {
    const LIBRARY: &str = "crates in the tree of the library, itself included";
    const BARE: &str = "the same without its features";
    let subjects = vec![
        Subject::new(LIBRARY, 1, || Ok(counted(tree(&[])?))),
        Subject::new(BARE, 1, || Ok(counted(tree(&["--no-default-features"])?))),
    ];
    let goals = vec![Goal::figure_at_most(BARE, Metric::Count, 60.0)];
    Group { title: "The library".to_owned(), unit: "tree".into(), subjects, goals, is_fixed: true }
}

fn counted(count: usize) -> Sample {
    Sample::default().with(Metric::Count, count as f64)
}

fn lines_with(program: &Path, tool: &str, flag: &str, part: &str) -> Result<usize, Failure> {
    let text = output(Command::new(tool).arg(flag).arg(program))?;
    Ok(text.lines().filter(|line| line.contains(part)).count())
}

fn libraries(program: &Path) -> Result<usize, Failure> {
    let text = output(Command::new("ldd").arg(program))?;
    Ok(text.lines().filter(|line| !LIBC.iter().any(|part| line.contains(part))).count())
}

fn tree(flags: &[&str]) -> Result<usize, Failure> {
    let mut command = Command::new("cargo");
    command
        .args(["tree", "--locked", "-p", "taskpawl", "-e", "normal", "--prefix", "none", "--format", "{p}"]);
    let text = output(command.args(flags).current_dir(env!("CARGO_MANIFEST_DIR")))?;
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(text.lines().filter(|line| !line.is_empty()).map(name).collect::<BTreeSet<_>>().len())
}
