//! Options of the compiled SQLite: those of `.cargo/config.toml` in this repository and in the shipped program, the defaults of
//! `libsqlite3-sys` in a build from a registry. `scripts/test-default-sqlite` runs the tests of stores with the latter.

use std::collections::BTreeSet;

use rusqlite::Connection;

/// Options that stores rely on, in every build. `USE_URI` is for the addresses of `connect`.
const NEEDED: [&str; 5] = [
    "DEFAULT_SYNCHRONOUS=2",
    "DEFAULT_WAL_AUTOCHECKPOINT=1000",
    "MAX_VARIABLE_NUMBER=32766",
    "THREADSAFE=1",
    "USE_URI",
];

/// Options that only the flags of this repository set.
const OF_FLAGS: [&str; 5] =
    ["DEFAULT_MEMSTATUS=0", "DISABLE_DIRSYNC", "OMIT_DEPRECATED", "OMIT_LOAD_EXTENSION", "OMIT_SHARED_CACHE"];

/// Options that only a build without these flags has.
const OF_DEFAULTS: [&str; 8] = [
    "ENABLE_DBSTAT_VTAB",
    "ENABLE_FTS3",
    "ENABLE_FTS3_PARENTHESIS",
    "ENABLE_FTS5",
    "ENABLE_LOAD_EXTENSION",
    "ENABLE_RTREE",
    "ENABLE_STAT4",
    "SOUNDEX",
];

#[test]
fn the_compiled_sqlite_has_the_options_of_its_build() {
    let connection = Connection::open_in_memory().unwrap();
    let mut statement = connection.prepare("PRAGMA compile_options").unwrap();
    let options = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let options: BTreeSet<String> = options.map(Result::unwrap).collect();

    let missing: Vec<&str> = NEEDED.into_iter().filter(|option| !options.contains(*option)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "{options:?}");

    let has_flags = option_env!("LIBSQLITE3_FLAGS").is_some_and(|flags| !flags.is_empty());
    let expected = if has_flags { &OF_FLAGS[..] } else { &OF_DEFAULTS[..] };
    let distinguishing = OF_FLAGS.iter().chain(&OF_DEFAULTS).copied();
    let found: Vec<&str> = distinguishing.filter(|option| options.contains(*option)).collect();
    assert_eq!(found, expected, "{options:?}");
}
