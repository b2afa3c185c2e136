//! The programs of a project that a call names. A remembered approval holds for their content: a change of `build.sh` would otherwise
//! decide what an approved `sh build.sh` does.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use taskpawl::model::task::AskedCall;
use taskpawl::tools::{content_hash, open_file};

use crate::files::read_bytes;

/// The largest program whose content is compared, in bytes. A larger one counts as changed at each run.
const MAX_BYTES: u64 = 64 << 20;

/// Programs that run the file which their arguments name.
const INTERPRETERS: &[&str] = &[
    ".", "Rscript", "ash", "awk", "bash", "bun", "csh", "dash", "deno", "fish", "gawk", "java", "just",
    "ksh", "lua", "make", "node", "perl", "php", "python", "ruby", "sh", "source", "tclsh", "tsx", "zsh",
];

/// Returns a call for people: its command line or its arguments, and its sandbox request.
pub(super) fn text(call: &AskedCall) -> String {
    let work = work(call);
    let request = call.sandbox.as_ref().map(|request| serde_json::to_string(request).unwrap_or_default());
    request.map_or_else(|| work.clone(), |request| format!("{work} with sandbox {request}"))
}

fn work(call: &AskedCall) -> String {
    let line = call.args.get("command").and_then(Value::as_str);
    let argv = call.args.get("argv").and_then(Value::as_array).map(|argv| {
        argv.iter().map(|word| word.as_str().unwrap_or("…").to_owned()).collect::<Vec<_>>().join(" ")
    });
    let as_json = || serde_json::to_string(&call.args).unwrap_or_default();
    line.map(str::to_owned).or(argv).unwrap_or_else(as_json)
}

/// Returns the hashes of the programs of a project that a call names, by path.
pub(super) fn hashes(root: &Path, call: &AskedCall) -> BTreeMap<String, Option<String>> {
    let directory = call.args.get("cwd").and_then(Value::as_str).unwrap_or_default();
    let at = |word: &str| Path::new(directory).join(word).to_string_lossy().into_owned();
    let mut found = BTreeMap::new();
    let mut follows_interpreter = true;
    for word in words(call) {
        let path = at(&word);
        let is_option = word.starts_with('-');
        if is_of_project(root, &path)
            && (is_program(&root.join(&path)) || names_program(root, &path, follows_interpreter))
        {
            found.insert(path.clone(), hash(root, &path));
        }
        follows_interpreter = is_interpreter(&word) || (follows_interpreter && is_option);
    }
    found
}

/// Returns the hash of a program; `None` if it does not exist.
pub(super) fn hash(root: &Path, path: &str) -> Option<String> {
    let path = root.join(path);
    let size = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
    if size > MAX_BYTES {
        return Some(String::new());
    }
    read_bytes(&path).ok().map(|bytes| content_hash(&bytes))
}

/// Returns the words of the programs and arguments that a call names.
fn words(call: &AskedCall) -> Vec<String> {
    let of_argv =
        call.args.get("argv").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let line = call.args.get("command").and_then(Value::as_str).unwrap_or_default();
    let is_end = |c: char| {
        c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '"' | '\'' | '`')
    };
    // An argument of a program may be a command line itself, as in `sh -c`.
    let lines = of_argv.clone().filter(|word| word.contains(is_end)).chain([line]);
    let of_lines = lines.flat_map(|line| line.split(is_end)).filter(|word| !word.is_empty());
    of_argv.map(str::to_owned).chain(of_lines.map(str::to_owned)).collect()
}

fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain)
}

fn is_of_project(root: &Path, path: &str) -> bool {
    let path = root.join(path);
    path.canonicalize()
        .unwrap_or_else(|_| PathBuf::from(&path))
        .starts_with(root.canonicalize().unwrap_or_else(|_| root.to_owned()))
}

/// Returns whether a file can be run itself.
fn is_program(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    if !metadata.is_file() {
        return false;
    }
    let starts_as_script = || {
        let mut start = [0; 2];
        open_file(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
    };
    metadata.permissions().mode() & 0o111 != 0 || starts_as_script()
}

/// Returns whether a word stands where an interpreter expects its program. A missing file counts if the word is a path.
fn names_program(root: &Path, path: &str, follows_interpreter: bool) -> bool {
    // A command line, as in `sh -c`, is no path.
    let is_word = !path.contains(char::is_whitespace);
    let path = root.join(path);
    follows_interpreter && (path.is_file() || (is_word && !path.exists() && path.extension().is_some()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(args: &Value) -> AskedCall {
        let call = json!({
            "task": "t", "call": "c1", "tool": "exec", "args": args, "unknown": [], "origin": "plan", "untrusted": [], "trusts": []
        });
        serde_json::from_value(call).unwrap()
    }

    #[test]
    fn the_programs_of_a_call_are_found_and_its_data_is_not() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        fs::create_dir(root.path().join("sub")).unwrap();
        file("build.sh", "echo 1");
        file("sub/run", "#!/bin/sh\n");
        file("words.txt", "a");
        let names = |args: &Value| hashes(root.path(), &call(args)).into_keys().collect::<Vec<_>>().join(" ");
        for (args, expected) in [
            (json!({"argv": ["sh", "-e", "build.sh", "words.txt"]}), "build.sh"),
            (json!({"argv": ["/usr/bin/python3.12", "words.txt"]}), "words.txt"),
            (json!({"command": "sort words.txt > sorted.txt; . build.sh"}), "build.sh"),
            (json!({"command": "bash -c 'sub/run && true'"}), "sub/run"),
            (json!({"argv": ["sh", "-c", "node later.js"]}), "later.js"),
            (json!({"argv": ["./run"], "cwd": "sub"}), "sub/./run"),
            (json!({"argv": ["cp", "words.txt", "/usr/bin/env"]}), ""),
            (json!({"path": "build.sh"}), ""),
        ] {
            assert_eq!(names(&args), expected, "{args}");
        }
        assert_eq!(hash(root.path(), "later.js"), None);
        assert_ne!(hash(root.path(), "build.sh"), hash(root.path(), "words.txt"));
    }
}
