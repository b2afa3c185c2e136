//! Configuration files with servers, in the formats of other programs.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use taskpawl::tools::read_if_there;
use thiserror::Error;

use super::config::{ServerConfig, ServerProblem};

/// Maximum size of a file. It is generous because some programs keep their conversations in the same file as their
/// servers.
const MAX_BYTES: u64 = 64 << 20;

/// A configuration file that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("failed to read `{}`", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It is not JSON.
    #[error("`{}` is no JSON", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The position and the cause of the error.
        source: serde_json::Error,
    },
}

/// The servers of a configuration file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Found {
    /// The whole text of the file. Trust in a file refers to this text.
    pub text: String,
    /// Servers that can be used.
    pub servers: Vec<ServerConfig>,
    /// Servers that cannot be used, with the reasons.
    pub problems: Vec<ServerProblem>,
    /// Names of servers that are switched off.
    pub disabled: Vec<String>,
}

/// Reads the servers of a configuration file: `.mcp.json`, the settings of Claude (with those of the project in
/// `root`) and of Gemini, and any other file with an object `mcpServers`. A file that does not exist has none.
///
/// # Errors
/// The file cannot be read, or is not JSON. Faults of single servers are part of the result.
pub fn read_servers(path: &Path, root: &Path) -> Result<Found, FileError> {
    let failed = |source| FileError::Read { path: path.to_owned(), source };
    let Some(text) = read_if_there(path, MAX_BYTES).map_err(failed)? else { return Ok(Found::default()) };
    let settings: Value = serde_json::from_str(&without_comments(&text))
        .map_err(|source| FileError::Syntax { path: path.to_owned(), source })?;
    let mut found = Found::default();
    for (name, value) in entries(&settings, root) {
        found.take(name, path, value);
    }
    found.text = text;
    Ok(found)
}

/// Reads one server from its value in `file`. `Ok(None)` is a server that is switched off.
pub fn server_of(name: &str, file: &Path, value: &Value) -> Result<Option<ServerConfig>, ServerProblem> {
    ServerConfig::read(name, file, value).map_err(|problem| ServerProblem {
        server: name.to_owned(),
        file: file.to_owned(),
        problem,
    })
}

impl Found {
    fn take(&mut self, name: &str, file: &Path, value: &Value) {
        match server_of(name, file, value) {
            Ok(Some(server)) => self.servers.push(server),
            Ok(None) => self.disabled.push(name.to_owned()),
            Err(problem) => self.problems.push(problem),
        }
    }
}

/// Returns the servers in all places of a file. The first of two with the same name counts.
fn entries<'a>(settings: &'a Value, root: &Path) -> Vec<(&'a str, &'a Value)> {
    let of_project = root.to_str().and_then(|root| settings.get("projects")?.get(root)?.get("mcpServers"));
    // The user's settings for this project come first, so that they override those for all projects.
    let places = [of_project, settings.get("mcpServers"), settings.get("servers")];
    let mut entries: Vec<(&str, &Value)> = Vec::new();
    for (name, value) in places.into_iter().flatten().filter_map(Value::as_object).flat_map(Map::iter) {
        if is_allowed(settings, name) && entries.iter().all(|(other, _)| other != name) {
            entries.push((name, value));
        }
    }
    entries
}

/// Applies the lists of Gemini's settings, which hold for all servers of the file.
fn is_allowed(settings: &Value, name: &str) -> bool {
    let list = |which| settings.get("mcp").and_then(|mcp| mcp.get(which)).and_then(Value::as_array);
    let is_in = |list: &Vec<Value>| list.iter().any(|entry| entry == name);
    list("allowed").is_none_or(is_in) && !list("excluded").is_some_and(is_in)
}

/// Removes comments, which some of these files have.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let length = match char {
            // A string is copied whole: `//` in an address is no comment.
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            _ => char.len_utf8(),
        };
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    plain
}

/// Returns the length in bytes of the JSON string at the beginning of `text`, with both quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::config::Transport;

    fn read(settings: &Value) -> Found {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        std::fs::write(&path, settings.to_string()).unwrap();
        read_servers(&path, Path::new("/work/app")).unwrap()
    }

    fn names(found: &Found) -> Vec<&str> {
        found.servers.iter().map(|server| &*server.name).collect()
    }

    #[test]
    fn servers_are_found_where_others_write_them() {
        let found = read(&json!({
            "projects": {
                "/work/app": {"mcpServers": {"here": {"command": "a"}}},
                "/work/other": {"mcpServers": {"elsewhere": {"command": "a"}}},
            },
            "mcpServers": {
                "every where": {"type": "http", "url": "https://example.com/mcp", "headers": {"a": "b"}},
                "gemini": {"httpUrl": "https://example.com/mcp", "timeout": 5000, "trust": true},
                "off": {"command": "a", "disabled": true},
                "here": {"command": "b"},
            },
        }));
        assert_eq!(names(&found), ["here", "every-where", "gemini"]);
        assert!(matches!(&found.servers[0].transport, Transport::Stdio { command, .. } if command == "a"));
        assert_eq!(found.servers[2].timeout, Some(std::time::Duration::from_secs(5)));
        assert_eq!(found.problems, []);
        assert_eq!(found.disabled, ["off"]);
    }

    #[test]
    fn lists_of_gemini_switch_servers_off() {
        let servers = json!({"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}});
        let found = read(&json!({"mcp": {"allowed": ["a", "b"], "excluded": ["b"]}, "mcpServers": servers}));
        assert_eq!(names(&found), ["a"]);
    }

    #[test]
    fn what_is_wrong_with_one_server_leaves_the_others() {
        let found = read(&json!({"mcpServers": {
            "good": {"command": "a", "args": ["b"], "env": {"N": 1}, "includeTools": ["x"]},
            "text": "a",
            "nothing": {},
            "both": {"command": "a", "url": "b"},
            "old": {"type": "sse", "url": "b"},
            "odd": {"type": "ws", "url": "b"},
            "args": {"command": "a", "args": "b"},
            "env": {"command": "a", "env": {"A": []}},
            "time": {"command": "a", "timeout": "5s"},
        }}));
        assert_eq!(names(&found), ["good"]);
        let problems: Vec<String> =
            found.problems.iter().map(|found| format!("{}: {}", found.server, found.problem)).collect();
        insta::assert_snapshot!(problems.join("\n"), @r###"
args: `args` has to be a list of texts
both: it has both `command` and `url`
env: `env` has to be an object of texts
nothing: it has neither `command` nor `url`
odd: its type cannot be `ws`, expected `stdio` or `http`
old: the transport `sse` was replaced by streamable HTTP: write `type` `http` and the address for that
text: it has to be an object
time: `timeout` has to be a number of milliseconds
"###);
    }

    #[test]
    fn comments_are_passed_over_and_strings_left_alone() {
        let text = "{ // one\n \"a\": \"//x\\\"/*\", /* two\n */ \"b\": 1 }";
        let value: Value = serde_json::from_str(&without_comments(text)).unwrap();
        assert_eq!(value, json!({"a": "//x\"/*", "b": 1}));
    }

    #[test]
    fn a_file_that_is_missing_names_none_and_one_that_is_no_json_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.json");
        assert!(read_servers(&path, dir.path()).unwrap().servers.is_empty());
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(read_servers(&path, dir.path()), Err(FileError::Syntax { .. })));
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let endless = Path::new("/dev/zero");
        let refused = read_servers(endless, Path::new("/")).unwrap_err();
        assert!(matches!(&refused, FileError::Read { .. }), "{refused}");
    }
}
