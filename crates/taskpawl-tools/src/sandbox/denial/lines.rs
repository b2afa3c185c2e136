//! Lines that programs write about errors: their phrases, and the paths in them.

use std::path::PathBuf;

/// The number of last lines of a program's output that are searched.
pub(super) const LINES: usize = 40;

// Error names such as `EACCES` are compared with their case; all other phrases without.

pub(super) const DENIED: [&str; 6] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "EACCES",
    "EROFS",
    "access is denied",
];
/// Errors of programs that replace a file which a mount covers, as `git config` does.
pub(super) const COVERED: [&str; 2] = ["device or resource busy", "EBUSY"];
/// Errors of programs that write to a path which a mount protects.
pub(super) const READ_ONLY: [&str; 2] = ["read-only file system", "EROFS"];
/// Errors of programs that connect to a covered socket.
pub(super) const REFUSED: [&str; 2] = ["connection refused", "ECONNREFUSED"];
/// The error of a shell that creates a file in a missing directory.
pub(super) const NO_DIRECTORY: [&str; 1] = ["directory nonexistent"];
pub(super) const MISSING: [&str; 3] = ["no such file", "ENOENT", "cannot find module"];
/// Errors of programs that cannot start another process.
pub(super) const TOO_MANY: [&str; 3] = ["resource temporarily unavailable", "cannot fork", "EAGAIN"];
/// Errors of programs that cannot write more to a file.
pub(super) const TOO_LARGE: [&str; 3] = ["file too large", "file size limit exceeded", "EFBIG"];
/// Errors of programs that cannot open another file.
pub(super) const TOO_MANY_FILES: [&str; 2] = ["too many open files", "EMFILE"];
pub(super) const UNREACHABLE: [&str; 20] = [
    "network is unreachable",
    "could not resolve host",
    "could not resolve hostname",
    "could not resolve proxy",
    "couldn't resolve host",
    "couldn't resolve proxy",
    "couldn't connect to server",
    "unable to resolve host address",
    "temporary failure resolving",
    "temporary failure in name resolution",
    "name or service not known",
    "failed to lookup address",
    "dns error",
    "address family not supported",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "no address associated with hostname",
    "all connection attempts failed",
    "fetch failed",
];
/// Errors of connections that began and were refused, reset or not made in time.
pub(super) const CONNECTING: [&str; 12] = [
    "connection refused",
    "ECONNREFUSED",
    "connection reset",
    "ECONNRESET",
    "connection closed",
    "connection aborted",
    "connection error",
    "failed to connect",
    "could not connect",
    "unable to connect",
    "network error",
    "timed out",
];
/// Words in the errors of programs that create files, or open them for writing.
pub(super) const MAKES: [&str; 16] = [
    "copy",
    "create",
    "creating",
    "ENOENT",
    "FileNotFoundError",
    "link",
    "make",
    "mkdir",
    "move",
    "open",
    "opening",
    "rename",
    "tee",
    "touch",
    "write",
    "writing",
];
/// Those of them that no program uses that only reads.
pub(super) const CREATES: [&str; 5] = ["cannot create", "can't create", "mkdir", "tee", "touch"];

/// Words before a file name in the errors of shells and other programs.
const MADE: [&str; 7] =
    ["cannot create ", "cannot open ", "can't create ", "can't open ", "open ", "mkdir ", "remove "];

/// Returns whether a line contains one of the phrases as whole words: `FileNotFoundError` does not contain `ENOTFOUND`.
pub(super) fn says(line: &str, phrases: &[&str]) -> bool {
    let folded = line.to_lowercase();
    let is_name = |phrase: &str| phrase.starts_with(|first: char| first.is_ascii_uppercase());
    phrases.iter().any(|phrase| has_words(if is_name(phrase) { line } else { &folded }, phrase))
}

pub(super) fn has_words(text: &str, words: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(words)
        .any(|(at, _)| !text[..at].ends_with(is_inner) && !text[at + words.len()..].starts_with(is_inner))
}

/// Returns the parts of a line that may be paths: quoted texts and words with a slash.
pub(super) fn paths_in(line: &str) -> Vec<PathBuf> {
    // In `/bin/sh: 1: cannot create /etc/x: …` the first part is the reporting program, unless there is no other part.
    let line = match line.split_once(": ") {
        Some((_, rest)) if rest.contains(": ") => rest,
        _ => line,
    };
    let is_quote = |c: char| matches!(c, '\'' | '"' | '`' | '‘' | '’' | '“' | '”');
    let quoted = line.split(is_quote).skip(1).step_by(2);
    let is_border =
        |c: char| c.is_whitespace() || is_quote(c) || matches!(c, '(' | ')' | '[' | ']' | ',' | ';' | '=');
    let bare =
        line.split(is_border).map(|word| word.trim_end_matches([':', '.'])).filter(|word| word.contains('/'));
    let is_path = |text: &&str| !text.is_empty() && text.len() < 4096 && !text.contains("://");
    // In a shell's `script: line 1: /etc/x y: Permission denied` the path is the part before the error, as it is after `cannot create`.
    let named = line.rsplit(": ").skip(1).map(without_action).filter(|part| part.starts_with('/'));
    // Reversed, because the name of the reporting program comes first.
    quoted.chain(named).chain(bare.rev()).filter(is_path).map(PathBuf::from).collect()
}

/// Returns the file name without a directory that precedes the error, as in `sh: 1: cannot create Makefile: …` or `open Makefile: …`.
pub(super) fn name_alone(line: &str) -> Option<&str> {
    let part = line.rsplit(": ").nth(1)?;
    let name = without_action(part);
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
    is_name.then_some(name)
}

/// Returns the rest of a part such as `cannot create NAME`.
fn without_action(part: &str) -> &str {
    MADE.iter().find_map(|said| part.strip_prefix(said)).unwrap_or(part)
}
