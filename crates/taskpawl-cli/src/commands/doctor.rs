use std::path::Path;
use std::process::ExitCode;

use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::value::TaskId;
use taskpawl::store::{Diagnostic, Location, PlacementError, Severity};
use taskpawl::tools::{Enforcement, Isolation, Level, NearRule, NetworkWall, SpawnError, is_in_sandbox};
use taskpawl::{AskedByRule, CacheLayers, Taskpawl, WorktreeState};

use crate::app::App;
use crate::commands::prune::{size, sized, tasks_of};
use crate::commands::sandbox::SandboxArgs;
use crate::commands::{coding_agents, files_leftovers};
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{Style, clean_block, style};

/// Check the store, and repair it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks the integrity of the store, gates and counts against the tasks, expired leases, tasks and records of dead runs, \
leftover files, file modes and the file system, and tries which parts of the sandbox this machine can enforce. Outside a \
project it checks the sandbox alone. Also names allow rules that recently did not cover the standard input, the directory \
or the variables of a call, with the keys that they lack. Before a repair changes or removes rows, a copy of the store is \
kept beside it, named `.mended-N.bak`.

Exit codes: 0 no fault, or all repaired · 1 faults that `--fix` can repair · 8 faults that it cannot repair

Examples:
  taskpawl doctor
  taskpawl doctor --fix")]
pub(crate) struct Args {
    /// Repair every fault that can be repaired without loss
    #[arg(long)]
    fix: bool,
}

/// Said if the sandbox cannot limit the number of processes: nothing then ends a program that starts itself
/// again and again.
const UNCOUNTED: &str = "nothing but the machine limits how many processes they start; that takes `processes` in `[sandbox]` of the \
                         configuration and a delegated cgroup, as of `systemd-run --user --scope taskpawl …`";

/// Name of the check that notes a missing project.
const NO_PROJECT: &str = "project";

/// Checks the store, the configuration and the sandbox; repairs with `--fix`.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let (plans, mut found) = match app.place() {
        Err(CliError::Placement(PlacementError::NoProject { directory })) if !args.fix => {
            outside(app, &directory)?
        }
        _ => {
            let held = SandboxArgs::default();
            // Without `--fix` nothing may change: `runner` would record a project that was moved.
            let plans = if args.fix { app.runner(&held)? } else { app.onlooker(&held)? };
            let found = plans.blocking().examine(args.fix)?;
            (plans, found)
        }
    };
    found.extend(
        app.left_aside()
            .into_iter()
            .map(|(message, remedy)| Diagnostic::new("config", Severity::Damage, "project", message, remedy)),
    );
    // A damaged store may have no readable history, and these notes are made from it.
    if !found.iter().any(|diagnostic| diagnostic.is_open() && diagnostic.severity == Severity::Damage) {
        found.extend(near_rules(app, &plans)?);
    }
    found.extend(of_caches(plans.engine().cache_layers()));
    found.extend(of_worktrees(&plans)?);
    found.extend(files_leftovers::check(app, &plans, args.fix)?);
    found.extend(coding_agents::note(app)?);
    let tried = plans.engine().probe_sandbox();
    let starts_programs = tried.is_ok();
    let has_gaps = !matches!(&tried, Ok(Some(enforcement)) if gaps(enforcement).is_empty());
    let is_strict = matches!(&tried, Ok(Some(enforcement)) if enforcement.level == Level::Strict);
    found.push(of_sandbox(tried));
    // Strict builds on the normal sandbox: trying it is useless if that fails, or if programs are already
    // that restricted.
    if starts_programs && !is_strict {
        found.push(of_strict(plans.engine().probe_strict()));
    }
    let out = app.out();
    if out.is_json {
        out.data(&found)?;
        return Ok(exit(&found));
    }
    let mut text = Shown::new();
    for diagnostic in &found {
        let (word, look) = word(diagnostic);
        let label = out.paint.style(look, word);
        let line = format!("{}: {}", diagnostic.place, diagnostic.message);
        let advice = advice(diagnostic);
        text.push(shown![label, "  ", clean_block(&line), "\n         ", clean_block(&advice), "\n"]);
    }
    if !found.iter().any(|diagnostic| diagnostic.is_open() || diagnostic.check == NO_PROJECT) {
        let end = if has_gaps { "no fault was found; the sandbox has gaps\n" } else { "all is well\n" };
        text.push(end);
    }
    out.print(text)?;
    let mendable =
        found.iter().filter(|diagnostic| diagnostic.is_open() && diagnostic.severity == Severity::Repairable);
    if mendable.count() > 0 {
        out.advise(&Hint::from(Advice::DoctorFix {}).text(" repairs this without loss"));
    }
    Ok(exit(&found))
}

/// Returns notes about allow rules that would have allowed a call that asked for approval, but for one
/// missing key.
fn near_rules(app: &App, plans: &Taskpawl) -> Result<Vec<Diagnostic>, CliError> {
    let policy = app.policy()?.clone().with_tools(app.toolbox()?.registry().clone());
    Ok(taskpawl::near_rules(plans.manager(), &policy)?.into_iter().map(of_near_rule).collect())
}

fn of_near_rule(asked: AskedByRule) -> Diagnostic {
    let NearRule { rule, file, line, add, .. } = asked.rule;
    let file = file.map_or_else(|| "the policy".to_owned(), |file| file.display().to_string());
    let tasks = list_of(&asked.tasks);
    let message = format!("the rule on `{rule}` did not allow what asked for an approval in {tasks}");
    let keys: Vec<String> = add.iter().map(|key| format!("`{key}`")).collect();
    let remedy = format!("with {} in the rule it allows that", keys.join(" and "));
    Diagnostic::new("rules", Severity::Note, format!("{file} line {line}"), message, remedy)
}

/// Number of tasks that a note names.
const MAX_TASKS: usize = 5;

fn list_of(tasks: &[TaskId]) -> String {
    let named: Vec<String> = tasks.iter().take(MAX_TASKS).map(|id| format!("`{id}`")).collect();
    match tasks.len().checked_sub(MAX_TASKS) {
        Some(more @ 1..) => format!("{} and {more} more", named.join(", ")),
        _ => named.join(", "),
    }
}

/// Size in bytes from which a note tells about changes to caches.
const NOTED_CACHES: u64 = 1 << 20;

/// Returns a note about the changes of programs to caches.
fn of_caches(caches: CacheLayers) -> Option<Diagnostic> {
    let message = format!(
        "the changes of programs to them take {} of at most {}",
        size(caches.bytes),
        size(caches.limit)
    );
    let remedy = "`taskpawl prune --caches` removes them; packages are downloaded again";
    let note = Diagnostic::new("caches", Severity::Note, "caches", message, remedy);
    (caches.bytes >= NOTED_CACHES).then_some(note)
}

/// Returns notes about the git worktrees of tasks that are there.
fn of_worktrees(plans: &Taskpawl) -> Result<Vec<Diagnostic>, CliError> {
    let kept = plans.engine().kept_worktrees()?;
    let of = |state, what: &str, remedy: &str| {
        let all: Vec<_> = kept.iter().filter(|worktree| worktree.state == state).cloned().collect();
        let message = format!("{} {what}: {}", sized(&all), tasks_of(&all));
        (!all.is_empty()).then(|| Diagnostic::new("worktrees", Severity::Note, "worktrees", message, remedy))
    };
    let notes = [
        of(
            WorktreeState::Open,
            "of tasks that are not done",
            "a retry goes on in it; `taskpawl diff TASK` shows the work",
        ),
        of(
            WorktreeState::Done,
            "of tasks that are done and not merged",
            "a task with the tool `merge` merges their work and removes it",
        ),
        of(
            WorktreeState::Orphan,
            "without a task",
            "`taskpawl prune --worktrees` removes it; the branch stays",
        ),
    ];
    Ok(notes.into_iter().flatten().collect())
}

/// Returns an engine that can try the sandbox outside of a project, and a note that there is no project.
fn outside(app: &App, directory: &Path) -> Result<(Taskpawl, Vec<Diagnostic>), CliError> {
    let builder = app.builder_at(Location::Memory, directory)?;
    let plans = app.held(builder, &SandboxArgs::default())?.open()?;
    let message = "it is in no project: there is no store to look at, and only the sandbox was tried";
    let remedy = "`taskpawl init` makes it a project; `--store PATH` names a store";
    let found = Diagnostic::new(NO_PROJECT, Severity::Note, directory.display(), message, remedy);
    Ok((plans, vec![found]))
}

/// Returns the restrictions that this machine does not enforce, as one text; empty if there are none.
fn gaps(enforcement: &Enforcement) -> String {
    let listed =
        (!enforcement.gaps.is_empty()).then(|| format!("not enforced here: {}", enforcement.gaps.join("; ")));
    let uncounted = enforcement.processes.is_none().then(|| UNCOUNTED.to_owned());
    let restricted = (enforcement.isolation() != Isolation::A && restricts_namespaces(NAMESPACE_SETTING))
        .then(|| RESTRICTED.to_owned());
    listed.into_iter().chain(uncounted).chain(restricted).collect::<Vec<_>>().join("; ")
}

/// The setting by which `AppArmor` keeps ordinary users from namespaces with rights.
const NAMESPACE_SETTING: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

const RESTRICTED: &str = "AppArmor restricts namespaces here; the profile in `/usr/share/doc/taskpawl/apparmor` of the Debian package, or `packaging/apparmor` of the source, lifts that for taskpawl alone, as root";

fn restricts_namespaces(setting: &str) -> bool {
    std::fs::read_to_string(setting).is_ok_and(|value| value.trim() == "1")
}

/// Reports the restrictions that a program has on this machine.
fn of_sandbox(tried: Result<Option<Enforcement>, SpawnError>) -> Diagnostic {
    let diagnostic = |message: String, remedy: String| {
        Diagnostic::new("sandbox", Severity::Note, "programs", message, remedy)
    };
    match tried {
        Ok(Some(enforcement)) => {
            let network = match enforcement.network {
                NetworkWall::Namespace => "a network of their own with a loopback alone",
                NetworkWall::Filter => "no network",
                NetworkWall::Open => "your network",
            };
            let mounts = if enforcement.mounts {
                ", mounts (of the home tools and settings alone, a `/tmp` of the project)"
            } else {
                ""
            };
            let processes = if enforcement.own_processes { ", processes of their own" } else { "" };
            let landlock = enforcement.landlock;
            let isolation = enforcement.isolation().as_str();
            let outer = if is_in_sandbox() {
                ", and rely on the sandbox of the taskpawl around this one"
            } else {
                ""
            };
            let message = format!(
                "they run in a sandbox of level {isolation}: Landlock {landlock}{mounts}{processes}, {network}{outer}"
            );
            let gaps = gaps(&enforcement);
            diagnostic(message, if gaps.is_empty() { "it has no known gap".to_owned() } else { gaps })
        }
        Ok(None) => {
            let remedy = "`[sandbox] mode` in the configuration says so; `--sandbox on` puts a run into it";
            diagnostic("they run without a sandbox and may do whatever you may".to_owned(), remedy.to_owned())
        }
        Err(error @ SpawnError::Sandbox { .. }) => {
            diagnostic("none is started".to_owned(), error.to_string())
        }
        Err(error) => diagnostic("the sandbox cannot be tried".to_owned(), error.to_string()),
    }
}

/// Reports whether `--sandbox strict` works on this machine.
fn of_strict(tried: Result<(String, Enforcement), SpawnError>) -> Diagnostic {
    let (message, remedy) = match tried {
        Ok((version, enforcement)) => {
            let all = "in it other places do not exist, and no other process is seen";
            let gaps = enforcement.gaps.join("; ");
            let remedy =
                if gaps.is_empty() { all.to_owned() } else { format!("{all}; not enforced here: {gaps}") };
            (format!("`--sandbox strict` is possible: {version}"), remedy)
        }
        Err(SpawnError::Sandbox { missing, advice }) => {
            (format!("`--sandbox strict` is not possible: {missing}"), advice)
        }
        Err(error) => ("`--sandbox strict` cannot be tried".to_owned(), error.to_string()),
    };
    Diagnostic::new("sandbox", Severity::Note, "programs", message, remedy)
}

fn word(diagnostic: &Diagnostic) -> (&'static str, Style) {
    match diagnostic.severity {
        _ if diagnostic.is_repaired => ("fixed  ", style::DIM),
        Severity::Note => ("note   ", style::DIM),
        Severity::Repairable => ("found  ", style::WARNING),
        Severity::Damage | _ => ("damaged", style::ERROR),
    }
}

fn advice(diagnostic: &Diagnostic) -> String {
    match diagnostic.severity {
        Severity::Repairable if diagnostic.is_repaired => format!("done: {}", diagnostic.remedy),
        Severity::Repairable => format!("--fix would: {}", diagnostic.remedy),
        Severity::Note | Severity::Damage | _ => diagnostic.remedy.clone(),
    }
}

fn exit(found: &[Diagnostic]) -> ExitCode {
    let worst =
        found.iter().filter(|diagnostic| diagnostic.is_open()).map(|diagnostic| diagnostic.severity).max();
    match worst {
        None | Some(Severity::Note) => ExitCode::SUCCESS,
        Some(Severity::Repairable) => ExitCode::from(1),
        Some(_) => ExitCode::from(8),
    }
}
