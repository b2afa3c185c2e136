//! Hidden files that a command line names. Most programs read the empty cover, take it for an empty file, and end successfully.

use std::path::{Path, PathBuf};

use taskpawl_process::{Profile, Program, Sandbox};

use super::excluded_paths::{is_within, plain};

/// The maximum of bytes of a command line that are searched.
const BYTES: usize = 64 << 10;

/// Returns the existing files that a command line names and that are hidden from its program, as the command line names them.
pub(crate) fn hidden_names(program: &Program) -> Vec<String> {
    let Sandbox::On(profile) = &program.sandbox else { return Vec::new() };
    let mut left = BYTES;
    let words = program.argv.iter().take_while(|word| {
        left = left.saturating_sub(word.len());
        left > 0
    });
    let mut names: Vec<String> = words
        .flat_map(|word| word.split(is_border))
        .filter(|word| is_hidden(profile, &program.cwd, word))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn is_border(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\'' | '"' | '`' | '=' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | ',' | '@')
}

fn is_hidden(profile: &Profile, cwd: &Path, word: &str) -> bool {
    let path: PathBuf = plain(&cwd.join(word));
    is_within(&path, &profile.hidden) && path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use taskpawl_process::{Environment, OutputFiles};

    use super::*;

    fn named(argv: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        for name in [".env", "sub/.env.local"] {
            std::fs::write(at(name), "").unwrap();
        }
        let hidden = vec![at(".env"), at("sub/.env.local"), at("sub/.env")];
        let profile = Profile { hidden, ..Profile::default() };
        let program = Program {
            argv: argv.iter().map(|word| word.replace("[]", dir.path().to_str().unwrap())).collect(),
            cwd: at("sub"),
            environment: Environment::default(),
            stdin: None,
            handover: None,
            output: OutputFiles { stdout: PathBuf::new(), stderr: PathBuf::new() },
            sandbox: Sandbox::On(Arc::new(profile)),
        };
        hidden_names(&program).iter().map(|name| name.replace(dir.path().to_str().unwrap(), "[]")).collect()
    }

    #[test]
    fn a_command_line_names_what_is_there_and_hidden() {
        assert_eq!(named(&["cat", "../.env"]), ["../.env"]);
        assert_eq!(named(&["cat", "[]/.env", "[]/.env"]), ["[]/.env"]);
        assert_eq!(named(&["sh", "-c", "set -a; . ../.env; echo 'x'>out"]), ["../.env"]);
        assert_eq!(
            named(&["tool", "--env-file=.env.local", "@./.env.local"]),
            ["./.env.local", ".env.local"]
        );
        for others in [&["cat", "env", "", "."][..], &["cat", ".env"], &["cat", "..env"]] {
            assert!(named(others).is_empty(), "{others:?}");
        }
        assert!(named(&["echo", &"x".repeat(BYTES), "../.env"]).is_empty());
    }
}
