use std::process::ExitCode;

use taskpawl::digest::{Asleep, Failures, Held, Listed, NextAction, OnHold, Ready, RunNow, Running};
use taskpawl::model::advice::{Advice, Advised, CommandLine};
use taskpawl::model::insight::UnrunnableTask;
use taskpawl::model::task::Status;
use taskpawl::model::value::Timestamp;
use taskpawl::store::PlacementError;
use taskpawl::{Digest, RunState};

use crate::app::App;
use crate::commands::{print, running};
use crate::error::CliError;
use crate::output::{Output, say};
use crate::text::{clean, clean_block, count, cut, lease_end, time};

/// Summarize the plan for a model. Takes at most 1,000 tokens: for the start of a session, and after its context
/// was compacted
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Claims and advice are those of the actor: `--actor NAME` or TASKPAWL_ACTOR. A token is counted as 4 ASCII characters \
or as one other character. Where there is no project nothing is printed, and whatever goes wrong the exit code is 0:
it never disturbs the session that it is called by. `taskpawl init --agent claude --hooks` calls it from a hook.

Examples:
  taskpawl prime
  taskpawl prime --actor agent-7
  taskpawl prime --json")]
pub(crate) struct Args {}

/// Number of entries that are read for each list.
const MAX: usize = 10;

/// Prints a short status of the plan for the prompt of an agent.
pub(crate) fn run(app: &App, _: &Args) -> Result<ExitCode, CliError> {
    let out = app.out();
    match app.place() {
        Err(CliError::Placement(PlacementError::NoProject { .. })) if out.is_json => {
            return out.data(&None::<()>);
        }
        // Agents run this hook in every directory: outside of a project it prints nothing and succeeds.
        Err(CliError::Placement(PlacementError::NoProject { .. })) => return Ok(ExitCode::SUCCESS),
        Err(_) | Ok(_) => {}
    }
    match digest(app) {
        Ok(digest) if out.is_json => out.data(&digest),
        Ok(digest) => out.print(text(&digest, &out.line, None)),
        Err(error) => read_error(&out, &error),
    }
}

pub(super) fn digest(app: &App) -> Result<Digest, CliError> {
    let plans = app.reader()?;
    let mut digest = Digest::gather(plans.manager(), MAX, &running::means(app)?)?;
    let places = plans.engine().call_places();
    for call in &mut digest.running.items {
        call.worker = places.worker(&call.task, &call.call, call.start).map(str::to_owned);
    }
    let mut commands: Vec<Advised> = digest.next_actions.iter().map(|next| next.command.clone()).collect();
    app.write_advice(&mut commands)?;
    // Advice for a store in memory was dropped, because that store ends with this process.
    digest.next_actions.truncate(commands.len());
    for (next, command) in digest.next_actions.iter_mut().zip(commands) {
        next.command = command;
    }
    Ok(digest)
}

/// Reports that the plan cannot be read. On standard output, because that is the part that reaches the model.
fn read_error(out: &Output, error: &CliError) -> Result<ExitCode, CliError> {
    let line = format!("taskpawl: the plan cannot be read now: {}", error.message());
    if out.is_json {
        say(clean_block(&line));
        return out.data(&None::<()>);
    }
    out.print(format!("{}\n", cut(&clean(&line), 500)))
}

/// Maximum number of tokens of the text.
const BUDGET: usize = 1_000;

/// Estimates the number of tokens, rather too high than too low. Models take more than 4 characters of
/// ordinary ASCII text per token, but split other scripts into smaller pieces.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|c| !c.is_ascii()).count();
    ascii.div_ceil(4) + other
}

/// A list of the text: heading, entries, and the command that lists all.
struct Section {
    heading: &'static str,
    lines: Vec<String>,
    rest: String,
    /// True if more entries exist than were read.
    truncated: bool,
    /// Number of tasks, if it differs from the number of entries and is known.
    total: Option<u64>,
}

impl Section {
    fn new<T>(heading: &'static str, list: &Listed<T>, rest: String, line: impl Fn(&T) -> String) -> Self {
        let lines = list.items.iter().map(|item| format!("- {}", line(item))).collect();
        Self { heading, lines, rest, truncated: list.truncated, total: None }
    }

    /// Sets the number of tasks, for entries that stand for several.
    fn of_tasks(self, total: u64) -> Self {
        Self { total: Some(total), ..self }
    }

    /// Returns the one-line form, used if the entries do not fit.
    fn in_short(&self) -> Option<String> {
        let than = if self.truncated && self.total.is_none() { "more than " } else { "" };
        let count = self.total.unwrap_or(self.lines.len() as u64);
        (!self.lines.is_empty()).then(|| format!("{} {than}{count}, shown by `{}`", self.heading, self.rest))
    }

    /// Returns the number of tokens to reserve for the one-line form.
    fn least(&self) -> usize {
        self.in_short().map_or(0, |line| cost(&line))
    }
}

/// Returns the number of tokens of a line with its line break.
fn cost(line: &str) -> usize {
    tokens(line) + 1
}

/// A text that stays within its token budget.
struct Page {
    text: String,
    budget: usize,
    /// Tokens reserved for the lists that follow, so that each gets at least its one-line form.
    kept: usize,
}

impl Page {
    fn new(budget: usize, sections: &[&Section]) -> Self {
        Self { text: String::new(), budget, kept: sections.iter().map(|section| section.least()).sum() }
    }

    /// Adds a line if it fits, with `more` tokens left after it.
    fn line(&mut self, line: &str, more: usize) -> bool {
        let fits = tokens(&self.text) + cost(line) + more + self.kept <= self.budget;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// Adds a list with as many entries as fit, then the command for the rest.
    fn list(&mut self, section: &Section) {
        let Some(short) = section.in_short() else { return };
        self.kept = self.kept.saturating_sub(section.least());
        let rest = format!("- and more: `{}`", section.rest);
        let last = if section.truncated { usize::MAX } else { section.lines.len() - 1 };
        let behind = |index: usize| if index == last { 0 } else { cost(&rest) };
        if !self.line(&format!("{}\n{}", section.heading, section.lines[0]), behind(0)) {
            self.line(&short, 0);
            return;
        }
        let mut others = section.lines.iter().enumerate().skip(1);
        let is_whole = others.all(|(index, line)| self.line(line, behind(index)));
        if !is_whole || section.truncated {
            self.line(&rest, 0);
        }
    }
}

/// Formats the digest; commands in it have the flags of `line`, and times are relative to `now`.
pub(super) fn text(digest: &Digest, line: &CommandLine, now: Option<Timestamp>) -> String {
    if digest.total == 0 {
        return format!(
            "taskpawl: the plan has no tasks yet; `{}` or `{}` adds some.\n",
            line.with("apply FILE"),
            line.with("create NAME")
        );
    }
    let mine =
        Section::new("You hold:", &digest.mine, line.of(&list(Status::InProgress)), |held| mine(held, now));
    let lists = sections(digest, line);
    let all: Vec<&Section> = std::iter::once(&mine).chain(&lists).collect();
    let mut page = Page::new(BUDGET, &all);
    page.line(&summary(digest), 0);
    page.list(&mine);
    for run in &digest.runs {
        page.line(&run_line(run, now), 0);
    }
    for section in &lists {
        page.list(section);
    }
    if let Some(run) = digest.last_run.as_ref().filter(|_| digest.runs.is_empty()) {
        page.line(&run_line(run, now), 0);
    }
    page.text
}

fn list(status: Status) -> Advice {
    Advice::List { status: vec![status] }
}

fn sections(digest: &Digest, line: &CommandLine) -> [Section; 10] {
    let ready_list = || line.with("ready");
    let why_ready = || line.of(&Advice::ExplainReady {});
    let in_progress = || line.of(&list(Status::InProgress));
    let next = Listed { items: digest.next_actions.clone(), truncated: false };
    [
        Section::new("Next:", &next, why_ready(), next_line),
        Section::new(
            "Waits for a time or a signal:",
            &digest.asleep,
            line.of(&list(Status::InProgress)),
            asleep,
        ),
        Section::new("Waits for a decision:", &digest.on_hold, line.of(&list(Status::Blocked)), on_hold),
        // Each entry stands for a group of failures.
        Section::new("Failed:", &digest.failed, line.of(&list(Status::Failed)), failure)
            .of_tasks(digest.count(Status::Failed)),
        Section::new("Ready for you:", &digest.ready, ready_list(), ready),
        Section::new("Ready for a run:", &digest.ready_to_run, ready_list(), ready),
        Section::new("Ready, but for no run here:", &digest.unrunnable, why_ready(), unrunnable_line),
        Section::new("Runs now:", &digest.running, in_progress(), running_now),
        // No process of these calls is left, but the next run or command takes their tasks back.
        Section::new("Ran in a run that was killed:", &digest.lost, in_progress(), running_now),
        Section::new("Held by others:", &digest.held, in_progress(), theirs),
    ]
}

fn summary(digest: &Digest) -> String {
    let counts: Vec<String> = digest
        .counts
        .iter()
        .map(|(status, count)| format!("{count} {}", status.as_str().replace('_', " ")))
        .collect();
    let tasks = count(digest.total, "task");
    let is_over = digest.finished() == digest.total && digest.count(Status::Failed) == 0;
    let end = if is_over { ". Everything is finished." } else { "." };
    format!(
        "taskpawl, where the plan stands for {}: {tasks}: {}{end}",
        short(&digest.actor),
        counts.join(", ")
    )
}

/// Maximum width of a text, in columns.
const MAX_SHOWN: usize = 80;

fn short(text: &str) -> String {
    cut(&clean(text), MAX_SHOWN)
}

fn named(id: &str, name: &str) -> String {
    if id == name || name.is_empty() { clean(id) } else { format!("{} ({})", clean(id), short(name)) }
}

fn mine(held: &Held, now: Option<Timestamp>) -> String {
    let until = held.lease_until.map(|end| format!(", {}", lease_end(end, now))).unwrap_or_default();
    let over = if held.expired { " (that is over: `claim` it again)" } else { "" };
    let note = held.note.as_deref().map(|note| format!("; noted: {}", short(note))).unwrap_or_default();
    format!("{}{until}{over}{note}", named(held.task.as_str(), &held.name))
}

fn theirs(held: &Held) -> String {
    let over = if held.expired { ", whose claim is over" } else { "" };
    format!("{}: {}{over}", named(held.task.as_str(), &held.name), short(&held.actor))
}

fn next_line(next: &NextAction) -> String {
    format!("`{}`: {}", next.command, next.why)
}

fn asleep(task: &Asleep) -> String {
    format!(
        "{}: {}",
        named(task.task.as_str(), &task.name),
        short(&print::wait_text(&task.waiting_for, task.over))
    )
}

fn on_hold(held: &OnHold) -> String {
    format!("{}: {}", named(held.task.as_str(), &held.name), short(&print::reason(&held.reason)))
}

fn failure(group: &Failures) -> String {
    let more = if group.count > 1 { format!(" and {} like it", group.count - 1) } else { String::new() };
    format!("{}{more}: {}", clean(group.task.as_str()), short(&group.error))
}

fn ready(ready: &Ready) -> String {
    let assignee = ready.assignee.as_deref().map(|name| format!(", for {}", short(name))).unwrap_or_default();
    format!("{}{assignee}", named(ready.task.as_str(), &ready.name))
}

fn unrunnable_line(task: &UnrunnableTask) -> String {
    format!("{}: {}", named(task.task.as_str(), &task.name), short(&task.because))
}

fn running_now(running: &Running) -> String {
    let worker =
        running.worker.as_deref().map(|worker| format!(" on @{}", clean(worker))).unwrap_or_default();
    format!("{}: {}{worker}", named(running.task.as_str(), &running.name), clean(&running.tool))
}

fn run_line(run: &RunNow, now: Option<Timestamp>) -> String {
    let id: String = clean(run.run.as_str()).chars().take(8).collect();
    let state = match (run.state, run.exit) {
        (RunState::Running, _) => "goes on".to_owned(),
        (RunState::Finished, Some(exit)) => format!("ended with exit code {exit}"),
        (RunState::Killed | RunState::Finished, _) => "was killed".to_owned(),
    };
    let scope =
        if run.scope.is_empty() { String::new() } else { format!(" ({})", short(&run.scope.join(" "))) };
    format!("Run {id}{scope} by {}, started {}, {state}.", short(&run.actor), time(run.started_at, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_rather_over_than_underestimated() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("four"), 1);
        assert_eq!(tokens("five5"), 2);
        assert_eq!(tokens("漢字"), 2);
    }

    fn section(heading: &'static str, item: &'static str, truncated: bool) -> Section {
        let list = Listed { items: vec![item; 10], truncated };
        Section::new(heading, &list, "show".to_owned(), |item| (*item).to_owned())
    }

    #[test]
    fn a_page_stays_within_its_budget() {
        let list = section("Heading:", "word word", false);
        let mut page = Page::new(20, &[&list]);
        page.list(&list);
        assert!(tokens(&page.text) <= 20, "{}", page.text);
        assert!(page.text.starts_with("Heading:\n- word word\n"), "{}", page.text);
        assert!(page.text.ends_with("- and more: `show`\n"), "{}", page.text);
    }

    #[test]
    fn no_list_is_left_out_without_a_word() {
        let long = "漢字".repeat(20);
        let long: &'static str = Box::leak(long.into_boxed_str());
        for budget in [70, 150, 300, 1_000] {
            let lists = ["A:", "B:", "C:", "D:"].map(|heading| section(heading, long, heading != "B:"));
            let all: Vec<&Section> = lists.iter().collect();
            let mut page = Page::new(budget, &all);
            for list in &lists {
                page.list(list);
            }
            assert!(tokens(&page.text) <= budget, "{budget}: {}", page.text);
            for list in &lists {
                assert!(
                    page.text.lines().any(|line| line.starts_with(list.heading)),
                    "{budget}: {}",
                    page.text
                );
            }
        }
        let list = section("B:", long, false);
        assert_eq!(list.in_short().unwrap(), "B: 10, shown by `show`");
        let groups = section("Failed:", long, true).of_tasks(20);
        assert_eq!(groups.in_short().unwrap(), "Failed: 20, shown by `show`", "tasks, not groups");
    }
}
