//! Stores of earlier schemas can always be opened, also if the program is killed during a migration.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::Connection;

use crate::support::{Figures, Home, Run, Strace, Trace, program_of, scale, step_is_done};

/// System calls by which a store changes, opens and locks files. Some machines lack a few of them.
const CALLS: &[&str] = &[
    "openat",
    "close",
    "flock",
    "fcntl",
    "pwrite64",
    "write",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "renameat2",
    "unlink",
    "unlinkat",
    "mmap",
];

/// Content of the golden store of the first schema.
const TASKS: usize = 15;
const STEP: &str = "create new";

/// Returns a home with a store of the first schema.
fn old_store(faults: &str) -> Home {
    let home = Home::new().with_fault(faults);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/taskpawl-store/tests/golden/schema-1/store.sql");
    let connection = Connection::open(home.store()).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection.execute_batch(&fs::read_to_string(golden).unwrap()).unwrap();
    home
}

#[test]
fn kills_during_a_migration() {
    let Some(strace) = Strace::find("P15 kills during a migration") else { return };
    let mut figures = Figures::of("kills_during_a_migration", 0);
    let all = points(&strace, CALLS);
    // Each call once; with more time, also kills at further occurrences.
    let count = scale(all.len().max(50), 1_000);
    let chosen = (0..count).map(|number| all[number * all.len() / count % all.len()]);
    let (kills, old, wrong) = tally(&strace, chosen, "");
    figures.add(format!(
        "{kills} kills at {} points, {old} left the old store, {} harmed one",
        all.len(),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(old > 0 && old < kills, "kills before and after the commit: {old} of {kills}");
}

#[test]
fn kills_during_a_migration_are_seen() {
    let Some(strace) = Strace::find("P15 kills during a migration, control") else { return };
    let mut figures = Figures::of("kills_during_a_migration_are_seen", 0);
    let all = points(&strace, &["pwrite64"]);
    // More than half of them harm the store.
    let (kills, _, wrong) = tally(&strace, all.into_iter().step_by(scale(4, 1)), "MigrateInPieces");
    figures.add(format!("{kills} kills, {} stores harmed by a migration in pieces", wrong.len()));
    assert!(!wrong.is_empty());
}

/// Returns the calls of a complete migration, each with its number among those of its thread.
fn points(strace: &Strace, calls: &[&'static str]) -> Vec<(&'static str, usize)> {
    let home = old_store("");
    let log = home.path("strace.log");
    let list: Vec<String> = calls.iter().map(|call| format!("?{call}")).collect();
    Run::of(&mut strace.with_paths(&home, &list.join(","), &log, &program_of(&home, STEP))).ok();
    assert!(version(&home) > 1, "there is a migration");
    let store = home.path("tasks").to_string_lossy().into_owned();
    let mut seen = BTreeMap::<(String, &'static str), usize>::new();
    let mut points = Vec::new();
    for line in Trace::read(&log).lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(word)) = (words.next(), words.next()) else { continue };
        let is = |name: &&&str| word.split_once('(').is_some_and(|(found, _)| found == **name);
        let Some(call) = calls.iter().find(is) else { continue };
        let number = seen.entry((thread.to_owned(), call)).or_default();
        *number += 1;
        if line.contains(&store) {
            points.push((*call, *number));
        }
    }
    points
}

/// Returns the number of kills, the number of stores that kept the old schema, and the mistakes.
fn tally(
    strace: &Strace,
    points: impl Iterator<Item = (&'static str, usize)>,
    faults: &str,
) -> (usize, usize, Vec<String>) {
    let (mut kills, mut old, mut wrong) = (0, 0, Vec::new());
    for (call, number) in points {
        let home = old_store(faults);
        let run = Run::of(&mut strace.killing(&home, call, number, &program_of(&home, STEP)));
        kills += usize::from(run.code != Some(0));
        match authorize(&home) {
            Ok(is_old) => old += usize::from(is_old),
            Err(mistake) => wrong.push(format!("{call} {number}: {mistake}")),
        }
    }
    (kills, old, wrong)
}

/// Returns whether the store has the old schema; an error if it is neither old nor new, or incomplete.
fn authorize(home: &Home) -> Result<bool, String> {
    let tasks = || {
        let page = home
            .manager()
            .list(&taskpawl::model::view::Query::default())
            .map_err(|error| taskpawl_text::error_chain(&error))?;
        Ok::<_, String>(page.tasks.len())
    };
    let before = tasks()?;
    let is_old = version(home) == 1;
    let is_done = step_is_done(&home.manager(), STEP)?;
    if before != TASKS + usize::from(is_done) || is_old && is_done {
        return Err(format!("{before} tasks, with the new one: {is_done}, old: {is_old}"));
    }
    home.manager()
        .create(crate::support::named("after"))
        .map_err(|error| taskpawl_text::error_chain(&error))?;
    if tasks()? != before + 1 {
        return Err("a write was lost".to_owned());
    }
    let copy = Connection::open(format!("{}.v1.bak", home.store()))
        .map_err(|error| taskpawl_text::error_chain(&error))?;
    let kept: Result<i64, _> = copy.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0));
    match kept {
        Ok(count) if usize::try_from(count) == Ok(TASKS) => Ok(is_old),
        other => Err(format!("the copy has {other:?} tasks")),
    }
}

fn version(home: &Home) -> i64 {
    let connection = Connection::open(home.store()).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}
