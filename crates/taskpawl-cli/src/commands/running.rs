//! A run from the command line: runtime, signals, output and exit code.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use taskpawl::model::advice::{Advice, Advised, Hint, PlanWords};
use taskpawl::model::plan::Budget;
use taskpawl::model::rules::Means;
use taskpawl::model::task::Status;
use taskpawl::model::value::Period;
use taskpawl::model::value::{Selector, TaskId, bounded};
use taskpawl::{
    Approver, Manager, Observer, RunControl, RunError, RunEvent, RunOptions, RunSummary, RunVariables,
    Taskpawl,
};
use taskpawl_report::Detail;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::App;
use crate::collector::Collector;
use crate::commands::engine::EngineArgs;
use crate::commands::parse;
use crate::commands::prompt::Prompt;
use crate::commands::prune::keep_quota;
use crate::commands::report::{self, Target};
use crate::commands::sandbox::SandboxArgs;
use crate::commands::variables::{VariableArgs, variables_text};
use crate::config::{Config, files};
use crate::error::CliError;
use crate::kits;
use crate::live_trace::LiveTrace;
use crate::report::{Format, Options, Ran, Reporter, summary_text};
use crate::run_log;
use crate::trust;

/// Flags of the commands that run tasks.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
pub(crate) struct RunArgs {
    /// Run at most so many tool calls at once [env: TASKPAWL_JOBS] [default: the number of cores + 2]
    #[arg(long, short, value_name = "N", value_parser = parse::at_least_one::<usize>)]
    jobs: Option<usize>,
    /// End after so long, such as 2h: nothing more starts, and what runs fails as timed out
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    timeout: Option<Duration>,
    /// Start nothing more once so many tasks have failed
    #[arg(long, value_name = "N", value_parser = parse::at_least_one::<usize>)]
    max_failures: Option<usize>,
    /// Start nothing more once a task has failed
    #[arg(long, conflicts_with = "max_failures")]
    fail_fast: bool,
    /// Start nothing more once so much is used up: calls=N, duration=TIME of all calls, cost=N as tools report it
    #[arg(long, value_name = "LIMITS", value_parser = parse::budget)]
    budget: Option<Budget>,
    /// Run tasks with a cache even if nothing that they depend on has changed
    #[arg(long)]
    no_cache: bool,
    /// Also wait for agents and people: end only when nothing is left that they could finish
    #[arg(long)]
    wait: bool,
    /// Output format of the run
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Write a report when the run has ended; may be given several times. `taskpawl report` makes one later
    #[arg(long = "report", value_name = "html=FILE|junit=FILE|md=FILE|github")]
    reports: Vec<Target>,
    /// Show these in reports and traces, too: output, errors, args, results, prompts, paths
    #[arg(long, value_name = "DETAILS", value_delimiter = ',')]
    include: Vec<Detail>,
    /// Send the trace of the run to this collector of your configuration while the run goes on
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    pub(super) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(super) variables: VariableArgs,
}

impl RunArgs {
    /// Returns these options as words of a command line.
    pub(super) fn words(&self) -> Vec<String> {
        let budget = self.budget.as_ref().map(parse::budget_text);
        let options = [
            ("--jobs", self.jobs.map(|jobs| jobs.to_string())),
            ("--timeout", self.timeout.map(|time| Period(time).to_string())),
            ("--max-failures", self.max_failures.map(|most| most.to_string())),
            ("--budget", budget),
        ];
        let flags = [("--fail-fast", self.fail_fast), ("--no-cache", self.no_cache), ("--wait", self.wait)];
        let options = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        let flags = flags.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name.to_owned());
        options
            .flatten()
            .chain(flags)
            .chain(self.engine.words())
            .chain(self.variables.words())
            .chain(self.sandbox.words())
            .collect()
    }

    /// Returns whether the run is taken along: as a report or a trace.
    pub(super) fn takes_along(&self) -> bool {
        !self.reports.is_empty() || self.otlp.is_some()
    }

    /// Returns the number of calls that run at once.
    pub(super) fn jobs(&self, app: &App) -> Result<usize, CliError> {
        let jobs = self.jobs.or(app.config()?.jobs);
        Ok(RunOptions { jobs, ..RunOptions::default() }.jobs())
    }
}

/// The flags of a run, with everything read that can be faulty. Commands prepare a run before they change anything, so that
/// a faulty flag changes nothing.
pub(super) struct PreparedRun<'a> {
    pub(super) args: &'a RunArgs,
    format: Format,
    pub(super) variables: RunVariables,
    /// Tasks of the plan that are gone from its file.
    pub(super) gone: Vec<TaskId>,
    collector: Option<Collector>,
}

impl RunArgs {
    /// Refuses `--include` where nothing is taken along.
    pub(super) fn check_include(&self) -> Result<(), CliError> {
        if self.include.is_empty() || self.takes_along() {
            return Ok(());
        }
        Err(CliError::usage("`--include` is about `--report` and `--otlp`, and none is given"))
    }

    pub(super) fn prepare(&self, app: &App) -> Result<PreparedRun<'_>, CliError> {
        self.check_include()?;
        let is_json = app.is_json() || self.format == Format::Ndjson;
        report::check(&self.reports, is_json)?;
        if self.engine.is_on() && self.variables.words().next().is_some() {
            return Err(CliError::usage_with(
                "values of variables do not leave this machine, and `--engine` sends calls to others",
                "set the variables where the worker runs",
            ));
        }
        // Refused before anything runs, and not at the end.
        run_log::included(app, &self.include)?;
        report::prepare(&self.reports)?;
        let collector = self.otlp.as_deref().map(|url| Collector::of(app, url)).transpose()?;
        let (format, variables) = (format(app, self)?, self.variables.read(app)?);
        Ok(PreparedRun { args: self, format, variables, gone: Vec::new(), collector })
    }
}

/// Returns the tools, capacities and jobs of a run of this program.
pub(super) fn means(app: &App) -> Result<Means, CliError> {
    let tools = app.toolbox()?.registry().names().map(str::to_owned).collect();
    let config = app.config()?;
    let jobs = RunOptions { jobs: config.jobs, ..RunOptions::default() }.jobs();
    Ok(Means {
        tools: Some(tools),
        found_later: app.servers()?.found_later(),
        capacities: config.run.resources.clone(),
        jobs: Some(jobs),
        absent: Some(app.absent_tools()?),
        given: Some(Arc::new(app.remembered_grants())),
    })
}

/// Scope of a run.
pub(super) enum What {
    /// All ready tasks that match any of the selectors; all if there is none.
    Ready(Vec<Selector>),
    /// One task, by id.
    Task(String),
}

/// End of a run.
enum End {
    /// The run ended by itself, or after a request to stop.
    Run(Box<Result<RunSummary, RunError>>),
    /// The third signal arrived before the run had ended.
    Left,
}

/// Runs tasks, shows the progress and returns the exit code.
///
/// `followed` is the plan file that the run applied before.
pub(super) fn run(
    app: &App,
    plans: &Taskpawl,
    what: What,
    run: PreparedRun<'_>,
    followed: Option<PlanWords>,
) -> Result<ExitCode, CliError> {
    let PreparedRun { args, format, variables, gone, collector } = run;
    kits::tell(app, plans.manager())?;
    let mut reporter = reporter(app, plans.manager(), &what, format)?;
    let included = run_log::included(app, &args.include)?;
    let trace =
        collector.map(|collector| LiveTrace::start(plans.manager(), collector, included)).transpose()?;
    let (control, begin) = (RunControl::default(), app.source()?.now());
    let options = RunOptions {
        approver: approver(app, args, reporter.as_ref()),
        wait: args.wait,
        observer: observer(reporter.as_ref(), trace.as_ref()),
        control: control.clone(),
        owns_thread: true,
        variables,
        ..limits(app, args)?
    };
    if let Some(text) = variables_text(&options.variables) {
        app.out().remark(&text);
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let files_remote = args.engine.files_remote(app)?;
    let elsewhere = runtime.block_on(args.engine.connect(app, options.observer.clone()))?;
    let options = RunOptions { elsewhere, files_remote, ..options };
    let mut signals = runtime.block_on(async { Signals::listen(control) }).map_err(CliError::Runtime)?;
    let end = runtime.block_on(watch(plans, what, options, &mut signals));
    // After the third signal, threads in blocking calls are abandoned.
    runtime.shutdown_background();
    let End::Run(ended) = end else { return Ok(ExitCode::from(signals.exit)) };
    let late = trace.and_then(LiveTrace::finish);
    let mut summary = (*ended)?;
    let took = (app.source()?.now() - begin).to_std().unwrap_or_default();
    // The exit code of the signal wins: scripts check it to learn that the run was interrupted.
    if signals.has_come() {
        summary.exit = signals.exit;
    }
    keep_quota(app, plans)?;
    let mut ran = Ran { took, of_file: followed.is_some(), ..Ran::default() };
    offer_endings_of_gone(plans.manager(), &gone, &mut summary.next_actions)?;
    app.write_advice_for_run(&mut summary.next_actions, args.words(), followed)?;
    if let Some(reporter) = &mut reporter {
        ran.shown = reporter.shown_failures();
        reporter.summary(&summary);
        reporter.finish();
    }
    let code = print(app, &summary, &ran, format)?;
    if let Some(late) = late {
        app.out().warn(&late);
    }
    take_along(app, plans, args, &summary).map(|()| code)
}

/// Offers to end failed tasks that are gone from the plan file: no edit of it lets them go on, and a run of the file starts none of them.
fn offer_endings_of_gone(
    manager: &Manager,
    gone: &[TaskId],
    offered: &mut Vec<Advised>,
) -> Result<(), CliError> {
    let only: Vec<Selector> = gone.iter().map(|id| Selector::Task(id.to_string())).collect();
    let failed = if gone.is_empty() { Vec::new() } else { manager.select(&only, &[Status::Failed])? };
    let Some(first) = failed.first() else { return Ok(()) };
    let plan = manager.get(first.as_str())?.plan;
    let of_plan: Vec<Selector> = plan.into_iter().map(Selector::Plan).collect();
    if manager.select(&of_plan, &[Status::Failed])?.len() == failed.len() {
        offered.retain(|advised| {
            !advised.advice().steps().iter().any(|step| matches!(step, Advice::RetryFailed { .. }))
        });
    }
    let skips = failed.into_iter().take(bounded::MAX_ITEMS).map(|id| Advice::skip(&TaskId::from(id)).into());
    offered.extend(skips);
    Ok(())
}

/// Writes the reports of the run.
fn take_along(app: &App, plans: &Taskpawl, args: &RunArgs, summary: &RunSummary) -> Result<(), CliError> {
    let written = report::write_all(app, plans, &summary.run, &args.reports, &args.include);
    // A failed run keeps its exit code: a missing report matters less.
    match written {
        Err(error) if summary.exit != 0 => {
            app.out().warn(&error.message());
            Ok(())
        }
        written => written,
    }
}

/// Returns the observer of the run: its reporter, and the trace that is sent while it goes on.
fn observer(reporter: Option<&Reporter>, trace: Option<&LiveTrace>) -> Option<Arc<dyn Observer>> {
    let trace = trace.map(|trace| Arc::new(trace.observer()) as Arc<dyn Observer>);
    let all: Vec<_> = reporter.map(Reporter::observer).into_iter().chain(trace).collect();
    if all.is_empty() { None } else { Some(Arc::new(Observers(all))) }
}

/// Several observers of one run.
#[derive(Debug)]
struct Observers(Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn event(&self, event: &RunEvent) {
        self.0.iter().for_each(|observer| observer.event(event));
    }
}

/// Returns the options of the run. Flags override the configuration.
fn limits(app: &App, args: &RunArgs) -> Result<RunOptions, CliError> {
    let options = configured(app)?;
    let most = if args.fail_fast { Some(1) } else { args.max_failures.map(|most| most as u64) };
    Ok(RunOptions {
        jobs: args.jobs.or(options.jobs),
        timeout: args.timeout.map(Period).or(options.timeout),
        max_failures: most.or(options.max_failures),
        budget: args.budget.clone(),
        no_cache: args.no_cache,
        ..options
    })
}

/// Returns the run options of the configuration alone.
pub(super) fn configured(app: &App) -> Result<RunOptions, CliError> {
    let config = app.config()?;
    // The user's own program runs with the user's rights. One that a project names needs trust, and the
    // sandbox.
    let is_of_project = config.is_notify_of_project(app.environment());
    Ok(RunOptions {
        jobs: config.jobs,
        timeout: config.run.timeout,
        max_failures: config.run.max_failures,
        retry: config.run.retry.clone(),
        task_timeout: config.run.task_timeout,
        resources: config.run.resources.clone(),
        tool_limits: config.run.tool_limits.clone(),
        notify: if is_of_project { trusted_notify(app, config)? } else { config.notify.clone() },
        notify_in_sandbox: is_of_project,
        ..RunOptions::default()
    })
}

/// Returns `run.notify` of the project's configuration, if the user trusts that file.
fn trusted_notify(app: &App, config: &Config) -> Result<Vec<String>, CliError> {
    let (Some(file), Some(hash)) = (files(app.environment()).project, config.project_hash()) else {
        return Ok(Vec::new());
    };
    if config.notify.is_empty() || trust::is_given(app, &file, hash)? {
        return Ok(config.notify.clone());
    }
    let off = Hint::new("`run.notify` is off: ").hint(trust::missing(&file));
    let out = app.out();
    out.warn(&off.format_with(&*out.line));
    Ok(Vec::new())
}

fn print(app: &App, summary: &RunSummary, ran: &Ran, format: Format) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        out.data(summary)?;
    } else if format != Format::Ndjson {
        out.print(summary_text(summary, ran, out.paint, out.width))?;
    }
    Ok(ExitCode::from(summary.exit))
}

/// Returns the approver: the person at the terminal, unless a program reads the output of the run.
fn approver(app: &App, args: &RunArgs, reporter: Option<&Reporter>) -> Option<Arc<dyn Approver>> {
    let is_read_by_program = app.is_json() || args.format == Format::Ndjson;
    if is_read_by_program { None } else { Prompt::of_person(app, reporter.map(Reporter::pause)) }
}

fn format(app: &App, args: &RunArgs) -> Result<Format, CliError> {
    if app.is_json() && args.format == Format::Ndjson {
        let hint = "leave `--json` out: the last line of the stream is the summary";
        return Err(CliError::usage_with("`--json` is one document and `--format ndjson` is many", hint));
    }
    let is_dumb = app.environment().text("TERM").is_none_or(|term| term == "dumb");
    let has_bar = app.terminal().stderr && !is_dumb;
    match args.format {
        Format::Auto if has_bar => Ok(Format::Bar),
        Format::Auto => Ok(Format::Plain),
        Format::Bar if !app.terminal().stderr => {
            let hint = "use `--format plain`, or leave it to `auto`";
            Err(CliError::usage_with("`--format bar` needs a terminal on standard error", hint))
        }
        other @ (Format::Plain | Format::Bar | Format::Ndjson) => Ok(other),
    }
}

/// Returns the reporter. `--quiet` disables it, except for `ndjson`, where events are the result.
fn reporter(app: &App, manager: &Manager, what: &What, format: Format) -> Result<Option<Reporter>, CliError> {
    let out = app.out();
    if out.is_quiet && format != Format::Ndjson {
        return Ok(None);
    }
    // Only the bar shows totals, and counting a selection reads all of its tasks.
    let (total, over) = if format == Format::Bar { size(manager, what)? } else { (0, 0) };
    let paint = out.paint_err;
    Ok(Some(Reporter::start(Options { format, paint, source: app.source()?, total, over, replayed: None })))
}

/// Returns the number of tasks in the scope, and how many of them have finished.
fn size(manager: &Manager, what: &What) -> Result<(u64, u64), CliError> {
    let only = match what {
        What::Ready(only) if only.is_empty() => {
            let counts = manager.counts()?;
            let over = counts.iter().filter(|(status, _)| status.is_finished()).map(|(_, count)| count).sum();
            return Ok((counts.values().sum(), over));
        }
        What::Ready(only) => only.clone(),
        What::Task(id) => vec![Selector::Task(id.clone())],
    };
    let over: Vec<Status> = Status::ALL.iter().copied().filter(|status| status.is_finished()).collect();
    let count = |status: &[Status]| Ok::<_, CliError>(manager.select(&only, status)?.len() as u64);
    Ok((count(&[])?, count(&over)?))
}

async fn watch(plans: &Taskpawl, what: What, mut options: RunOptions, signals: &mut Signals) -> End {
    let run = async {
        match what {
            What::Ready(only) => {
                options.only = only;
                plans.run_all_ready(options).await
            }
            What::Task(id) => plans.execute_task(&id, options).await,
        }
    };
    tokio::select! {
        ended = run => End::Run(Box::new(ended)),
        () = signals.escalate() => End::Left,
    }
}

/// Signals that end a run. The first stops starting calls, the second kills running ones, the third does not
/// wait for the kill.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    control: RunControl,
    requests: u32,
    /// Exit code of the last signal.
    pub(crate) exit: u8,
}

impl Signals {
    pub(crate) fn listen(control: RunControl) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            control,
            requests: 0,
            exit: 130,
        })
    }

    /// Returns whether a signal arrived.
    pub(crate) fn has_come(&self) -> bool {
        self.requests > 0
    }

    /// Asks the run to stop once per signal, and returns at the third.
    pub(crate) async fn escalate(&mut self) {
        while self.requests < 3 {
            let least = tokio::select! {
                _ = self.interrupt.recv() => { self.exit = 130; self.requests + 1 }
                // The sender of these does not wait for calls that may take minutes, so they start at the
                // second step.
                _ = self.terminate.recv() => { self.exit = 143; (self.requests + 1).max(2) }
                _ = self.hang_up.recv() => { self.exit = 129; (self.requests + 1).max(2) }
            };
            while self.requests < least {
                self.requests += 1;
                self.control.stop_with(self.exit);
            }
        }
    }
}
