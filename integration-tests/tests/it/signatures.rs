//! Types of other crates in the signatures of the library, as far as its users would have to depend on those crates to name them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The crates whose items `taskpawl` shows to its users.
const CRATES: &[&str] = &[
    "taskpawl",
    "taskpawl-engine",
    "taskpawl-manager",
    "taskpawl-model",
    "taskpawl-process",
    "taskpawl-store",
    "taskpawl-tools",
];

/// A type that may stand in signatures, because the library re-exports it: the file and the line that does.
type Exported = (&'static str, &'static str, &'static str);

/// Crates that belong to the inside, and their exported types.
const INNER: &[(&str, &[Exported])] = &[
    ("rusqlite", &[]),
    ("indexmap", &[("IndexMap", "taskpawl-model/src/value.rs", "pub use indexmap::IndexMap;")]),
    (
        "tokio_util",
        &[("CancellationToken", "taskpawl-tools/src/lib.rs", "pub use tokio_util::sync::CancellationToken;")],
    ),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates")
}

fn sources(directory: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.insert(path.clone(), std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the names that a text imports from a crate.
fn imported<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let imports =
        text.split("use ").skip(1).filter_map(|rest| rest.split_once(';')).map(|(import, _)| import);
    let imports = imports.filter(|import| import.starts_with(&format!("{name}::")));
    let words = imports.flat_map(|import| import.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(char::is_uppercase)).collect()
}

/// Returns the declarations of a text that users see, functions up to their bodies, and the lines of enums.
fn signatures(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("pub enum") {
            found.extend(lines.by_ref().take_while(|line| *line != "}").map(|line| line.trim().to_owned()));
        }
        let mut whole = line.trim().to_owned();
        if !whole.starts_with("pub ") || whole.starts_with("pub use ") {
            continue;
        }
        let is_function = whole.contains("fn ");
        let ends: &[char] = if is_function { &['{', '}', ';'] } else { &['{', '}', ';', ','] };
        while !whole.ends_with(ends) {
            let Some(more) = lines.next() else { break };
            whole.push_str(more.trim());
        }
        found.push(whole);
    }
    found
}

/// Returns the types of a crate that a signature names, by an import of its file or by a path.
fn named<'s>(signature: &'s str, imported: &[&str], inner: &str) -> Vec<&'s str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words = signature.split(|c| !is_part(c)).filter(|word| imported.contains(word));
    let paths =
        signature.split(|c| !is_part(c) && c != ':').filter(|path| path.starts_with(&format!("{inner}::")));
    words.chain(paths.filter_map(|path| path.rsplit("::").next())).collect()
}

#[test]
fn signatures_name_no_types_that_the_library_does_not_export() {
    let mut files = BTreeMap::new();
    for name in CRATES {
        sources(&crates().join(name).join("src"), &mut files);
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (path, text) in &files {
        for signature in signatures(text).iter().filter(|signature| !signature.starts_with("//")) {
            count += 1;
            for (inner, exported) in INNER {
                let named = named(signature, &imported(text, inner), inner);
                let is_exported = |word: &str| exported.iter().any(|(known, ..)| *known == word);
                let bad = named.into_iter().filter(|word| !is_exported(word));
                wrong.extend(
                    bad.map(|word| format!("{}: `{word}` of `{inner}`: {signature}", path.display())),
                );
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 1000, "the scan found only {count} signatures");
    for (_, file, line) in INNER.iter().flat_map(|(_, exported)| *exported) {
        assert!(
            std::fs::read_to_string(crates().join(file)).unwrap().contains(line),
            "{file} lacks `{line}`"
        );
    }
}

#[test]
fn a_foreign_type_in_a_signature_is_seen() {
    let text = "use tokio_util::sync::{CancellationToken, PollSemaphore};\n\
                pub fn wait(\n    a: u8,\n    b: PollSemaphore,\n) {\n}\n\
                pub(crate) fn own() {}\n\
                pub enum Error {\n    Sql {\n        source: Arc<rusqlite::Error>,\n    },\n}\n";
    let found = signatures(text);
    assert_eq!(found[0], "pub fn wait(a: u8,b: PollSemaphore,) {");
    let imported = imported(text, "tokio_util");
    assert_eq!(imported, ["CancellationToken", "PollSemaphore"]);
    assert_eq!(named(&found[0], &imported, "tokio_util"), ["PollSemaphore"]);
    assert!(found.iter().any(|line| named(line, &[], "rusqlite") == ["Error"]), "{found:?}");
}
