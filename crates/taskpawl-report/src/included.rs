//! Details that a report shows only on request.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A kind of detail beyond names, statuses, times and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The output of programs.
    Output,
    /// Error texts, which tools may fill with parts of their output.
    Errors,
    /// The arguments of calls.
    Args,
    /// The results of calls.
    Results,
    /// The descriptions of tasks, which agents get as prompts.
    Prompts,
    /// Paths below the home directory.
    Paths,
}

impl Detail {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Output, Self::Errors, Self::Args, Self::Results, Self::Prompts, Self::Paths];

    /// Returns the word for the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Errors => "errors",
            Self::Args => "args",
            Self::Results => "results",
            Self::Prompts => "prompts",
            Self::Paths => "paths",
        }
    }
}

impl FromStr for Detail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|detail| detail.as_str() == text);
        found.ok_or_else(|| format!("expected {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// The details that a report shows, and the home directory that it hides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Included {
    details: BTreeSet<Detail>,
    home: Option<String>,
}

impl Included {
    /// Shows `details`. Without [`Detail::Paths`], paths below `home` are shortened to `~/…`.
    pub fn new(details: impl IntoIterator<Item = Detail>, home: Option<String>) -> Self {
        let home = home.map(|home| home.trim_end_matches('/').to_owned()).filter(|home| !home.is_empty());
        Self { details: details.into_iter().collect(), home }
    }

    /// Returns whether a kind of detail is shown.
    pub fn has(&self, detail: Detail) -> bool {
        self.details.contains(&detail)
    }

    /// Returns `text` as a report may show it.
    pub fn text(&self, text: &str) -> String {
        match &self.home {
            Some(home) if !self.has(Detail::Paths) => without_paths(text, home),
            _ => text.to_owned(),
        }
    }
}

/// The list of the details, such as `output, args`; `nothing` if there are none.
impl fmt::Display for Included {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.details.is_empty() {
            return f.write_str("nothing");
        }
        let words: Vec<&str> = self.details.iter().map(|detail| detail.as_str()).collect();
        f.write_str(&words.join(", "))
    }
}

/// Replaces paths at or below `home` by `~` and `~/…`.
fn without_paths(text: &str, home: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(home) {
        shown.push_str(&rest[..at]);
        let after = &rest[at + home.len()..];
        let end = after.find(ends_path).unwrap_or(after.len());
        let is_below = after.starts_with('/');
        // `/home/me` is also the beginning of `/home/meier`, which is another directory.
        let is_other = !is_below && end > 0;
        if is_other {
            shown.push_str(&rest[at..at + home.len()]);
            rest = after;
            continue;
        }
        shown.push_str(if is_below { "~/…" } else { "~" });
        rest = &after[end..];
    }
    shown + rest
}

fn ends_path(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '`' | ':' | ',' | ';' | ')' | ']' | '}' | '>' | '<' | '|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_home_are_hidden_unless_included() {
        let home = || Some("/home/me/".to_owned());
        let hides = Included::new([Detail::Output], home());
        let text = "open /home/me/secret/a.txt: no; cd /home/me, \"/home/me/x\" /home/meier/y";
        assert_eq!(hides.text(text), "open ~/…: no; cd ~, \"~/…\" /home/meier/y");
        assert_eq!(Included::new([Detail::Paths], home()).text(text), text);
        assert_eq!(hides.to_string(), "output");
        assert_eq!(Included::default().to_string(), "nothing");
    }
}
