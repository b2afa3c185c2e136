//! Formats advice as a shell command line.

use crate::advice::hint::{HintOption, HintWords};
use crate::advice::{Advice, SILENT_NOTE};
use crate::task::{Grant, Status};
use crate::value::Selector;
use crate::value::shell::{joined, quoted};

/// Flags of the current command line that suggested commands repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The store, unless it is the default one.
    pub store: Option<String>,
    /// The actor, if a flag set it.
    pub actor: Option<String>,
    /// Flags that apply to commands that run tasks.
    pub run: Vec<String>,
    /// The plan file that the current command applied.
    pub plan: Option<PlanWords>,
}

/// A plan file on the command line: a command that runs this plan applies the file first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWords {
    /// Name of the plan.
    pub name: String,
    /// The words that name the file and say how it is applied, not quoted yet.
    pub words: Vec<String>,
}

impl CommandLine {
    /// Returns the command line for advice.
    pub fn of(&self, advice: &Advice) -> String {
        if let Advice::Then { steps } = advice
            && let [Advice::RetryFailed { only: failed }, next @ Advice::RunReady { only, wait, grants }] =
                steps.as_slice()
            && failed == only
        {
            let words = self.run_ready(only, *wait).flag(["--retry-failed".to_owned()]);
            return self.line(next, words.flag(grants.iter().map(grant_words)));
        }
        if let Advice::RunReady { only, wait, grants } = advice {
            return self.line(advice, self.run_ready(only, *wait).flag(grants.iter().map(grant_words)));
        }
        match Words::of(advice) {
            Some(words) => self.line(advice, words),
            None => advice.steps().iter().map(|step| self.of(step)).collect::<Vec<_>>().join(" && "),
        }
    }

    fn run_ready<'a>(&self, only: &[Selector], wait: bool) -> Words<'a> {
        let file = self.plan.as_ref().filter(|plan| is_only(only, &plan.name));
        let scope = file.map_or_else(|| scope(only), |plan| vec![joined(&plan.words)]);
        let words = Words { verb: "run-all-ready", ids: Vec::new(), flags: scope };
        words.flag(wait.then(|| "--wait".to_owned()))
    }

    /// Returns a command line for `words` that is no advice, with the name of the program and the store.
    pub fn with(&self, words: &str) -> String {
        format!("taskpawl{} {words}", self.store_words())
    }

    /// Returns the option for the store with a leading space; empty for the default store.
    fn store_words(&self) -> String {
        self.store.as_ref().map(|store| format!(" {}", option("--store", store))).unwrap_or_default()
    }

    fn line(&self, advice: &Advice, Words { verb, ids, mut flags }: Words<'_>) -> String {
        if runs(advice) {
            // `--wait` may be part of the advice and of the current flags.
            let more: Vec<&String> = self.run.iter().filter(|word| !flags.contains(word)).collect();
            flags.extend((!more.is_empty()).then(|| joined(more)));
        }
        if let Some(actor) = self.actor.as_ref().filter(|_| acts(advice)) {
            flags.push(option("--actor", actor));
        }
        // An id that begins with `-` would be read as a flag without `--`.
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

/// Returns whether advice acts in the name of the current actor. Reads do not, and a decision of a person must not be
/// made in the name of an agent.
fn acts(advice: &Advice) -> bool {
    runs(advice)
        || matches!(
            advice,
            Advice::Claim { .. }
                | Advice::ClaimNext {}
                | Advice::Release { holder: None, .. }
                | Advice::ReleaseSilent { .. }
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
    /// The ids, not quoted yet.
    ids: Vec<&'a str>,
    /// The flags, quoted for a shell.
    flags: Vec<String>,
}

impl<'a> Words<'a> {
    /// Returns the words of one command; `None` for a sequence of commands, and for those that depend on the line.
    fn of(advice: &'a Advice) -> Option<Self> {
        let plain = |verb| Self { verb, ids: Vec::new(), flags: Vec::new() };
        let task =
            |verb, id: &'a crate::value::TaskId| Self { verb, ids: vec![id.as_str()], flags: Vec::new() };
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
            Advice::ReleaseSilent { id } => task("release", id).flag(Some(option("--note", SILENT_NOTE))),
            Advice::Done { id } | Advice::DoneByPerson { id } => task("done", id),
            Advice::Fail { id } => task("fail", id),
            Advice::Skip { id } => task("skip", id),
            Advice::Cancel { id } => task("cancel", id),
            Advice::Unblock { id } => task("unblock", id),
            Advice::UnblockInterrupted { only } if only.is_empty() => plain("unblock --all"),
            Advice::UnblockInterrupted { only } => plain("unblock").flag(scope(only)),
            Advice::Approve { id, answer } => {
                task("approve", id).flag(answer.as_ref().map(|answer| option("--answer", answer)))
            }
            Advice::Reject { id } => task("reject", id),
            Advice::SendBack { id } => task("reject", id).flag(Some("--rework TEXT".to_owned())),
            Advice::Diff { id } => task("diff", id),
            Advice::Retry { id, cascade } => task("retry", id).flag(cascades(*cascade)),
            Advice::RetryFailed { only } => plain("retry --failed").flag(scope(only)),
            Advice::Reopen { id, cascade } => task("reopen", id).flag(cascades(*cascade)),
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
            Advice::RunReady { .. } | Advice::Then { .. } => return None,
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

/// Returns the option of a run that grants something.
fn grant_words(grant: &Grant) -> String {
    match grant {
        Grant::Network => "--allow-net".to_owned(),
        Grant::Host(host) => option("--allow-host", host),
        Grant::Port(port) => option("--allow-port", &port.to_string()),
        Grant::Read(path) => option("--allow-read", path),
        Grant::Write(path) => option("--allow-write", path),
    }
}

fn is_only(only: &[Selector], plan: &str) -> bool {
    matches!(only, [Selector::Plan(name)] if name == plan)
}

fn scope(only: &[Selector]) -> Vec<String> {
    only.iter().map(|selector| option("--only", &selector.to_string())).collect()
}

/// Returns an option with its value. A value that begins with `-` needs `=`, or it would be read as a flag.
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
            HintOption::RedoChanged => "--redo-changed".to_owned(),
            HintOption::KeepChanged => "--keep-changed".to_owned(),
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
