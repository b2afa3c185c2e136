//! Advice as a command line of a shell.

use crate::advice::Advice;
use crate::hint::{HintOption, HintWords};
use crate::shell::{joined, quoted};
use crate::{Selector, Status};

/// The flags that command lines have beyond what they do: those that the command had which gives the advice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The store, where it does not go without saying.
    pub store: Option<String>,
    /// In whose name commands act, where a flag said so.
    pub actor: Option<String>,
    /// Words that a command has which runs tasks.
    pub run: Vec<String>,
}

impl CommandLine {
    /// Returns the command line that does what is advised.
    pub fn of(&self, advice: &Advice) -> String {
        match Words::of(advice) {
            Some(words) => self.line(advice, words),
            None => advice.steps().iter().map(|step| self.of(step)).collect::<Vec<_>>().join(" && "),
        }
    }

    /// Returns a command line of a program that is no advice: `words` behind the name of the program and the store.
    pub fn with(&self, words: &str) -> String {
        format!("taskpawl{} {words}", self.store_words())
    }

    /// Returns what names the store, with a space before it; empty where that goes without saying.
    pub fn store_words(&self) -> String {
        self.store.as_ref().map(|store| format!(" {}", option("--store", store))).unwrap_or_default()
    }

    fn line(&self, advice: &Advice, Words { verb, ids, mut flags }: Words<'_>) -> String {
        if runs(advice) {
            // `--wait` may be advised and have been given.
            let more: Vec<&String> = self.run.iter().filter(|word| !flags.contains(word)).collect();
            flags.extend((!more.is_empty()).then(|| joined(more)));
        }
        if let Some(actor) = self.actor.as_ref().filter(|_| acts(advice)) {
            flags.push(option("--actor", actor));
        }
        // An id that begins with `-` is read as a flag before `--`.
        let is_like_a_flag = ids.iter().any(|id| id.starts_with('-'));
        let ids = joined(&ids);
        let parts = if is_like_a_flag {
            vec![flags.join(" "), format!("-- {ids}")]
        } else {
            vec![ids, flags.join(" ")]
        };
        let rest = parts.into_iter().filter(|part| !part.is_empty()).map(|part| format!(" {part}"));
        self.with(verb) + &rest.collect::<String>()
    }
}

/// Returns whether advice runs tasks.
fn runs(advice: &Advice) -> bool {
    matches!(advice, Advice::RunReady { .. } | Advice::RunOne { .. })
}

/// Returns whether advice does something in a name that is not its own: a look does not, and what a person decides is not in the name
/// of an agent.
fn acts(advice: &Advice) -> bool {
    runs(advice)
        || matches!(
            advice,
            Advice::Claim { .. }
                | Advice::ClaimNext {}
                | Advice::Release { holder: None, .. }
                | Advice::Done { .. }
                | Advice::Fail { .. }
                | Advice::Skip { .. }
                | Advice::Cancel { .. }
                | Advice::Retry { .. }
                | Advice::RetryFailed { .. }
                | Advice::Reopen { .. }
                | Advice::AddDependency { .. }
        )
}

/// The words of one command.
struct Words<'a> {
    verb: &'static str,
    /// Ids, not quoted yet.
    ids: Vec<&'a str>,
    /// Flags, as a shell takes them.
    flags: Vec<String>,
}

impl<'a> Words<'a> {
    /// Returns the words of one command; nothing for several.
    fn of(advice: &'a Advice) -> Option<Self> {
        let plain = |verb| Self { verb, ids: Vec::new(), flags: Vec::new() };
        let task = |verb, id: &'a crate::TaskId| Self { verb, ids: vec![id.as_str()], flags: Vec::new() };
        Some(match advice {
            Advice::Show { id } => task("show", id),
            Advice::Explain { id } => task("explain", id),
            Advice::ExplainReady {} => plain("explain --ready"),
            Advice::Logs { id } => task("logs", id),
            Advice::History { id: Some(id) } => task("history", id),
            Advice::History { id: None } => plain("history"),
            Advice::HistoryOfRun { run } => plain("history").flag(Some(option("--run", run.as_str()))),
            Advice::List { status } => plain("list").flag(states(status)),
            Advice::ListSelectors {} => plain("list --json --fields id,plan,labels"),
            Advice::Runs {} => plain("runs"),
            Advice::Claim { id } => task("claim", id),
            Advice::ClaimNext {} => plain("claim --next"),
            Advice::Release { id, holder } => {
                task("release", id).flag(holder.as_ref().map(|name| option("--actor", name)))
            }
            Advice::Done { id } | Advice::DoneByPerson { id } => task("done", id),
            Advice::Fail { id } => task("fail", id),
            Advice::Skip { id } => task("skip", id),
            Advice::Cancel { id } => task("cancel", id),
            Advice::Unblock { id } => task("unblock", id),
            Advice::Approve { id, answer } => {
                task("approve", id).flag(answer.as_ref().map(|answer| option("--answer", answer)))
            }
            Advice::Reject { id } => task("reject", id),
            Advice::Retry { id, cascade } => task("retry", id).flag(cascades(*cascade)),
            Advice::RetryFailed { only } => plain("retry --failed").flag(scope(only)),
            Advice::Reopen { id, cascade } => task("reopen", id).flag(cascades(*cascade)),
            Advice::RunReady { only, wait } => {
                plain("run-all-ready").flag(scope(only)).flag(wait.then(|| "--wait".to_owned()))
            }
            Advice::RunOne { id } => task("run", id),
            Advice::AddDependency { id, on } => {
                Self { verb: "add-dependency", ids: vec![id.as_str(), on.as_str()], flags: Vec::new() }
            }
            Advice::RenamePlan { from, to } => {
                Self { verb: "plan rename", ids: vec![from, to], flags: Vec::new() }
            }
            Advice::Undo { revision: Some(revision) } => plain("undo").flag(Some(revision.to_string())),
            Advice::Undo { revision: None } => plain("undo REVISION"),
            Advice::DoctorFix {} => plain("doctor --fix"),
            Advice::Trust {} => plain("trust"),
            Advice::ConfigPath {} => plain("config path"),
            Advice::ListTools { connect: false } => plain("tools list"),
            Advice::ListTools { connect: true } => plain("tools list --connect"),
            Advice::Then { .. } => return None,
        })
    }

    fn flag(mut self, flags: impl IntoIterator<Item = String>) -> Self {
        self.flags.extend(flags);
        self
    }
}

fn cascades(cascade: bool) -> Option<String> {
    cascade.then(|| "--cascade".to_owned())
}

fn states(status: &[Status]) -> Option<String> {
    let words: Vec<&str> = status.iter().map(|status| status.as_str()).collect();
    (!words.is_empty()).then(|| format!("--status {}", words.join(",")))
}

fn scope(only: &[Selector]) -> Vec<String> {
    only.iter().map(|selector| option("--only", &selector.to_string())).collect()
}

/// Returns an option with its value. A value that begins with `-` is read as a flag unless `=` binds it.
fn option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{between}{}", quoted(value))
}

impl HintWords for CommandLine {
    fn advice(&self, advice: &Advice) -> String {
        format!("`{}`", self.of(advice))
    }

    fn command(&self, words: &str, args: &[String]) -> String {
        let space = if args.is_empty() { "" } else { " " };
        format!("`{}{space}{}`", self.with(words), joined(args))
    }

    fn option(&self, option: &HintOption) -> String {
        let words = match option {
            HintOption::Cascade => "--cascade".to_owned(),
            HintOption::Fresh => "--fresh".to_owned(),
            HintOption::Needs => "--needs".to_owned(),
            HintOption::Instance => "--as NAME".to_owned(),
            HintOption::Moved => "--moved".to_owned(),
            HintOption::Prefix => "--prefix NAME".to_owned(),
            HintOption::Adopt => "--adopt".to_owned(),
            HintOption::Param { name } => format!("--param {}", quoted(&format!("{name}=VALUE"))),
        };
        format!("`{words}`")
    }
}
