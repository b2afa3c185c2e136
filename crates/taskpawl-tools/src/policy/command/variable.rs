//! Variables that say what programs run.

use super::git::{self, Run as GitRun};
use super::reader::Reader;
use super::{Certainty, Word};

/// How many settings of git are looked at, each with each value.
const PAIRS: usize = 1_000;

/// What a variable makes a program run.
pub(super) enum Run {
    /// A line for a shell.
    Line(String),
    /// Nobody knows what.
    Unknown,
}

/// Settings of git that stand in variables: keys in some, values in others.
#[derive(Debug, Default)]
pub(super) struct Settings {
    keys: Vec<Word>,
    values: Vec<Word>,
}

impl Settings {
    /// Takes what a word says about a variable, and returns what that runs by itself.
    pub(super) fn take(&mut self, word: &Word) -> Option<Run> {
        let Some((name, value)) = word.text.split_once('=') else {
            // It gets its value in another way, as by `read`.
            return is_of_git(&word.text).then_some(Run::Unknown);
        };
        let value = Word { text: value.to_owned(), certainty: word.certainty };
        if name.starts_with("GIT_CONFIG_VALUE_") {
            self.values.push(value);
        } else if name.starts_with("GIT_CONFIG_KEY_") {
            self.keys.push(value);
        } else if name == "GIT_CONFIG_PARAMETERS" {
            return self.take_parameters(&value);
        } else if names_program(name) && !value.text.is_empty() {
            return Some(line(value));
        } else if word.certainty == Certainty::Literal && is_expanded(&value.text) {
            // Shells expand what some variables hold, as `PS4` and `BASH_ENV`.
            return Some(Run::Line(value.text));
        }
        None
    }

    /// Takes settings as git hands them on: `'alias.x'='push'`, or `'alias.x=push'`.
    fn take_parameters(&mut self, value: &Word) -> Option<Run> {
        if value.certainty != Certainty::Literal {
            return Some(Run::Unknown);
        }
        for word in Reader::of(&value.text, 0).pieces.into_iter().flatten() {
            let (key, value) = word.text.split_once('=').unwrap_or((word.text.as_str(), ""));
            self.keys.push(Word { text: key.to_owned(), certainty: word.certainty });
            self.values.push(Word { text: value.to_owned(), certainty: word.certainty });
        }
        None
    }

    /// Returns what git runs because of them: nobody says which value is that of which key, so each may be.
    pub(super) fn runs(&mut self) -> Vec<GitRun> {
        let keys = std::mem::take(&mut self.keys);
        let is_running = |key: &&Word| key.certainty != Certainty::Literal || git::is_running(&key.text);
        let keys: Vec<Word> = keys.iter().filter(is_running).cloned().collect();
        let is_open = keys.iter().any(|key| key.certainty != Certainty::Literal) || self.values.is_empty();
        if !keys.is_empty() && (is_open || keys.len() * self.values.len() > PAIRS) {
            return vec![GitRun::Unknown];
        }
        keys.iter()
            .flat_map(|key| self.values.iter().filter_map(move |value| git::of_setting(&key.text, value)))
            .collect()
    }
}

fn is_of_git(name: &str) -> bool {
    ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_PARAMETERS"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// Returns whether a variable names a program, with its arguments.
fn names_program(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["BROWSER", "EDITOR", "GIT_EXTERNAL_DIFF", "LESSCLOSE", "LESSOPEN", "PAGER", "RSYNC_RSH", "VISUAL"];
    let is_of_git = || {
        let rest = name.strip_prefix("GIT_");
        rest.is_some_and(|rest| {
            ["ASKPASS", "COMMAND", "EDITOR", "PAGER", "SSH"].iter().any(|end| rest.ends_with(end))
        })
    };
    NAMES.contains(&name) || ["MANPAGER", "SSH_ASKPASS", "SUDO_EDITOR"].contains(&name) || is_of_git()
}

/// Returns whether a shell that reads a text once more would run something in it.
pub(super) fn is_expanded(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

fn line(value: Word) -> Run {
    if value.certainty == Certainty::Literal { Run::Line(value.text) } else { Run::Unknown }
}
