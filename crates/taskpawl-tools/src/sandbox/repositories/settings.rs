//! Finds settings of a git configuration that are not in every repository: programs that git would run, and paths that lead to them.

use crate::sandbox::obeyed::shortened;

/// Settings that `git clone`, `git init`, submodules, worktrees and users write, and that run nothing: the section without its quoted part,
/// and its keys. `*` stands for all keys. Every other setting is reported.
const USUAL: [(&str, &str); 27] = [
    (
        "core",
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf sparsecheckout sparsecheckoutcone splitindex untrackedcache preloadindex fscache longpaths quotepath abbrev compression bigfilethreshold commentchar whitespace hidedotfiles protecthfs protectntfs trustctime checkstat multipackindex commitgraph",
    ),
    (
        "remote",
        "url pushurl fetch push tagopt prune prunetags mirror promisor partialclonefilter skipdefaultupdate skipfetchall followremotehead gh-resolved",
    ),
    ("branch", "*"),
    ("submodule", "url active branch fetchrecursesubmodules ignore update recurse"),
    ("user", "name email signingkey useconfigonly"),
    ("author", "name email"),
    ("committer", "name email"),
    ("extensions", "*"),
    ("init", "defaultbranch"),
    ("gc", "auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable"),
    ("maintenance", "auto strategy"),
    ("color", "*"),
    ("advice", "*"),
    ("pull", "rebase ff"),
    ("push", "default autosetupremote followtags recursesubmodules"),
    ("fetch", "prune prunetags recursesubmodules parallel fsckobjects writecommitgraph"),
    ("rebase", "autostash autosquash updaterefs"),
    ("commit", "gpgsign verbose"),
    ("tag", "gpgsign sort"),
    ("merge", "conflictstyle ff renames renamelimit"),
    ("diff", "algorithm renames renamelimit submodule noprefix mnemonicprefix"),
    ("status", "*"),
    ("log", "*"),
    ("rerere", "enabled autoupdate"),
    ("index", "*"),
    ("feature", "*"),
    ("lfs", "repositoryformatversion locksverify access"),
];

/// Returns the names of the unusual settings in the configuration `text`.
///
/// Text that git would not write itself is reported as unclear, because git may interpret it differently. `is_elsewhere` tells whether the
/// worktree is in another directory than beside the repository, so that `core.worktree` has to be set.
pub(super) fn unusual(text: &str, is_elsewhere: bool) -> Vec<String> {
    let mut section = Section::default();
    let mut found = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        let Some(rest) = section.begin(line) else {
            // The section of the following settings is unknown.
            found.push(UNCLEAR.to_owned());
            break;
        };
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = rest.split_once('=').unwrap_or((rest, "true"));
        let (key, value) = (key.trim().to_lowercase(), value.trim());
        if value.ends_with('\\') {
            // The value continues on the next line.
            found.push(UNCLEAR.to_owned());
        } else if !section.is_usual(&key, value, is_elsewhere) {
            found.push(section.name_of(&key));
        }
    }
    found.sort();
    found.dedup();
    if let Some(more) = found.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        found.truncate(MAX_NAMED);
        found.push(format!("{more} more"));
    }
    found.iter().map(|name| shortened(name)).collect()
}

/// A path that a configuration leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Led {
    /// A directory of hooks, relative to the worktree.
    Hooks(String),
    /// An included configuration, relative to the directory of this one.
    Config(String),
}

/// Returns the paths that a configuration leads to, except those that start with `~`.
pub(super) fn led(text: &str) -> Vec<Led> {
    let led = |(section, key, value): (Section, String, String)| match (section.name.as_str(), key.as_str()) {
        ("core", "hookspath") => Some(Led::Hooks(value)),
        ("include" | "includeif", "path") => Some(Led::Config(value)),
        _ => None,
    };
    let is_named = |(_, _, value): &(Section, String, String)| !value.is_empty() && !value.starts_with('~');
    all(text).into_iter().filter(is_named).filter_map(led).collect()
}

/// Returns the worktree of a repository, relative to its directory.
pub(super) fn worktree(text: &str) -> Option<String> {
    let mut all = all(text).into_iter();
    all.find_map(|(section, key, value)| (section.name == "core" && key == "worktree").then_some(value))
}

/// Returns all settings that can be parsed.
fn all(text: &str) -> Vec<(Section, String, String)> {
    let mut section = Section::default();
    let mut found = Vec::new();
    // A backslash at the end of a line continues the value on the next line.
    let text = text.replace("\\\n", "").replace("\\\r\n", "");
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        // A section header that cannot be parsed must not hide the following sections.
        let Some((key, value)) = section.begin(line).and_then(|rest| rest.split_once('=')) else { continue };
        found.push((section.clone(), key.trim().to_lowercase(), unquoted(value)));
    }
    found
}

/// Returns a value without quotes and comments.
fn unquoted(value: &str) -> String {
    let (mut said, mut is_quoted) = (String::new(), false);
    let mut chars = value.trim().chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => is_quoted = !is_quoted,
            '\\' => said.extend(chars.next()),
            '#' | ';' if !is_quoted => break,
            char => said.push(char),
        }
    }
    said.trim().to_owned()
}

/// The maximum of settings that are named for a file, and of characters of each.
const MAX_NAMED: usize = 10;

const UNCLEAR: &str = "what is not clear";

/// The section of a setting, such as `[remote "origin"]`.
#[derive(Clone, Debug, Default)]
struct Section {
    name: String,
    quoted: Option<String>,
}

impl Section {
    /// Parses a section header at the beginning of a line and returns the rest; `None` if it cannot be parsed.
    fn begin<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let Some(head) = line.strip_prefix('[') else { return Some(line) };
        let end = head.find([']', '"'])?;
        let (name, rest) = head.split_at(end);
        let (name, quoted, rest) = match rest.strip_prefix('"') {
            Some(rest) => {
                let (quoted, rest) = rest.split_once('"').filter(|(quoted, _)| !quoted.contains('\\'))?;
                (name, Some(quoted.to_owned()), rest.strip_prefix(']')?)
            }
            None => match name.split_once('.') {
                Some((name, quoted)) => (name, Some(quoted.to_owned()), &rest[1..]),
                None => (name, None, &rest[1..]),
            },
        };
        *self = Self { name: name.trim().to_lowercase(), quoted };
        Some(rest.trim_start())
    }

    fn is_usual(&self, key: &str, value: &str, is_elsewhere: bool) -> bool {
        let value = value.trim_matches('"').trim();
        match (self.name.as_str(), key) {
            ("core", "worktree") => is_elsewhere,
            // Any other value is the path of a program.
            ("core", "fsmonitor") => is_yes_or_no(value),
            ("submodule", "update") => !value.starts_with('!'),
            // A URL `ext::…` runs a program in place of a server.
            ("remote" | "branch" | "submodule", _) if value.contains("::") => false,
            (name, key) => {
                let mut usual = USUAL.iter().filter(|(section, _)| *section == name);
                usual.any(|(_, keys)| *keys == "*" || keys.split(' ').any(|usual| usual == key))
            }
        }
    }

    fn name_of(&self, key: &str) -> String {
        match &self.quoted {
            Some(quoted) => format!("{}.{quoted}.{key}", self.name),
            None => format!("{}.{key}", self.name),
        }
    }
}

fn is_yes_or_no(value: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "1", "0", ""]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_itself_and_people_leave_behind_is_usual() {
        let cloned = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
            [remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\
            # what people say\n[user]\n\tname = \"A B\"\n\temail = a@b\n[submodule \"lib\"]\n\tactive = true\n\turl = ../lib\n\
            [color.diff]\n\tmeta = yellow\n[core] fsmonitor = true\n[extensions]\n\tworktreeConfig\n";
        assert_eq!(unusual(cloned, false), Vec::<String>::new());
        assert_eq!(unusual("[core]\n\tworktree = ../../../lib\n", true), Vec::<String>::new());
        assert_eq!(unusual("", false), Vec::<String>::new());
    }

    #[test]
    fn what_runs_programs_or_leads_to_them_is_named() {
        for (text, expected) in [
            ("[core]\n\tfsmonitor = ./x\n", "core.fsmonitor"),
            ("[CORE]\n\tHooksPath = ../h\n", "core.hookspath"),
            ("[core]\n\tworktree = /home/me\n", "core.worktree"),
            ("[core] sshCommand=x", "core.sshcommand"),
            ("\u{feff}[core]\npager", "core.pager"),
            ("[alias]\n\tst = !x\n", "alias.st"),
            ("[include]\n\tpath = x\n", "include.path"),
            ("[includeIf \"gitdir:/\"]\n\tpath = x\n", "includeif.gitdir:/.path"),
            ("[filter \"a\"]\n\tsmudge = x\n", "filter.a.smudge"),
            ("[diff \"a\"]\n\ttextconv = x\n", "diff.a.textconv"),
            ("[diff]\n\texternal = x\n", "diff.external"),
            ("[merge \"a\"]\n\tdriver = x\n", "merge.a.driver"),
            ("[credential]\n\thelper = x\n", "credential.helper"),
            ("[gpg]\n\tprogram = x\n", "gpg.program"),
            ("[sequence]\n\teditor = x\n", "sequence.editor"),
            ("[remote \"a\"]\n\turl = ext::sh -c x\n", "remote.a.url"),
            ("[remote \"a\"]\n\tuploadpack = x\n", "remote.a.uploadpack"),
            ("[branch \"a\"]\n\tremote = \"ext::x\"\n", "branch.a.remote"),
            ("[submodule \"a\"]\n\tupdate = !x\n", "submodule.a.update"),
            ("[gc]\n\trecentObjectsHook = x\n", "gc.recentobjectshook"),
            ("[made \"up\"]\n\tby = others\n", "made.up.by"),
        ] {
            assert_eq!(unusual(text, false), [expected], "{text}");
        }
    }

    #[test]
    fn what_others_write_does_not_fill_a_message() {
        let many: Vec<String> = (10..30).map(|number| format!("[alias]\n\ta{number} = !x\n")).collect();
        let named = unusual(&many.concat(), false);
        assert_eq!((named.len(), named[0].as_str(), named[10].as_str()), (11, "alias.a10", "10 more"));
        let long = format!("[made \"{}\u{1b}[31m\"]\n\tup = x\n", "x".repeat(1_000));
        assert_eq!(unusual(&long, false), [format!("made.{}…", "x".repeat(75))]);
    }

    #[test]
    fn what_may_mean_something_else_to_git_is_not_clear() {
        for text in [
            "[color]\n\tx = a\\\n[core]\n\tfsmonitor = true\n",
            "[core\n\tbare = true\n",
            "[remote \"a\\\"]\n\turl = x\n",
            "[remote \"a\" x]\n",
        ] {
            assert_eq!(unusual(text, false), [UNCLEAR], "{text}");
        }
    }
}
