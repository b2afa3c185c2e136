//! A planner that is a program or a coding agent: it runs in an empty directory, in the sandbox. A program gets the prompt on standard
//! input, an agent over its protocol.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, Grant, NewCall, Status, TaskSpec};
use taskpawl::model::value::{ByteSize, Period};
use taskpawl::store::Location;
use taskpawl::{RunControl, RunOptions, RunSummary, SandboxSettings, Taskpawl};
use taskpawl_planner::{Kit, KitReply, Planner, PlannerError, Reply, Request, TokenUsage};
use taskpawl_text::{cut, duration, error_chain};
use tempfile::TempDir;

use crate::app::App;
use crate::commands::running::Signals;
use crate::error::CliError;
use crate::servers::private_directory;

/// The most bytes of an answer.
const MAX_ANSWER: ByteSize = ByteSize(1 << 20);

/// The most characters of a program's error in a message.
const MAX_SAID: usize = 600;

/// The time in which the run of a program ends by itself after its deadline.
const GRACE: Duration = Duration::from_secs(1);

/// The work of a planner's call.
pub(super) enum Work {
    /// A program with its arguments; the kit knows what some programs print.
    Command { argv: Vec<String>, kit: Option<Kit> },
    /// An agent, by its name.
    Agent(String),
}

impl Work {
    fn name(&self) -> String {
        match self {
            Self::Command { argv, .. } => argv[0].clone(),
            Self::Agent(name) => name.clone(),
        }
    }

    /// Returns the tool and the arguments of the call.
    fn call(&self, request: &Request<'_>) -> (&'static str, Value) {
        let prompt = literal(&request.as_text());
        match self {
            Self::Command { argv, kit } => {
                let more = kit.map(|kit| kit.arguments(request.schema)).unwrap_or_default();
                let argv: Vec<String> = argv.iter().chain(&more).map(|word| literal(word)).collect();
                ("exec", json!({"argv": argv, "stdin": prompt}))
            }
            // The planner repairs its answers itself, so that the agent gets no schema to repair them by.
            Self::Agent(name) => ("agent", json!({"using": literal(name), "prompt": prompt})),
        }
    }

    /// Returns the answer in the result of the call. The error is the reason why there is none.
    fn read(&self, result: &Value) -> Result<KitReply, String> {
        let (field, nothing) = match self {
            Self::Command { .. } => ("stdout", "it printed nothing"),
            Self::Agent(_) => ("text", "it answered nothing"),
        };
        let text = result[field].as_str().unwrap_or_default();
        if result["truncated"] == true {
            return Err("its answer is larger than 1 MiB".to_owned());
        }
        match self {
            _ if text.trim().is_empty() => Err(nothing.to_owned()),
            Self::Command { kit: Some(kit), .. } => kit.read(text),
            Self::Command { kit: None, .. } | Self::Agent(_) => Ok(KitReply::plain(text)),
        }
    }
}

/// A program or an agent that answers prompts.
pub(super) struct Program {
    work: Work,
    plans: Taskpawl,
    /// The empty directory, and the files of calls. Both are deleted with the planner.
    _directories: [TempDir; 2],
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("name", &self.work.name()).finish_non_exhaustive()
    }
}

impl Program {
    pub(super) fn new(app: &App, work: Work, settings: SandboxSettings) -> Result<Self, CliError> {
        let empty = private_directory("taskpawl-planner-").map_err(CliError::Runtime)?;
        let files = private_directory("taskpawl-planner-files-").map_err(CliError::Runtime)?;
        let builder = app.builder_at(Location::Memory, empty.path())?.files(files.path());
        let plans = app.held_with(builder, settings)?.open()?;
        Ok(Self { work, plans, _directories: [empty, files] })
    }

    fn failed(&self, problem: impl Into<String>) -> PlannerError {
        PlannerError::Failed { planner: self.name(), problem: problem.into() }
    }

    /// Runs the program once, and returns the result of the call with the consumption that it reports.
    fn run(&self, request: &Request<'_>) -> Result<(Value, TokenUsage), PlannerError> {
        let given = request.time_left();
        let (tool, arguments) = self.work.call(request);
        let spec = CallSpec {
            tool_name: tool.to_owned(),
            args: arguments.as_object().cloned().unwrap_or_default(),
            keep: Some(MAX_ANSWER),
            timeout: Some(Period(given.max(Duration::from_millis(1)))),
            ..CallSpec::default()
        };
        let call = NewCall { id: None, spec: spec.into() };
        let spec = TaskSpec { name: "planner".to_owned(), ..TaskSpec::default() };
        let new = NewTask { spec, calls: vec![call], ..NewTask::default() };
        let failed = |error: taskpawl::Error| self.failed(error_chain(&error));
        let id = self.plans.blocking().create_task(new).map_err(failed)?.id;
        self.drive(id.as_str(), given + GRACE, request.limit)?;
        let mut task = self.plans.blocking().get_task(id.as_str()).map_err(failed)?;
        let call = task.metadata.tool_calls.swap_remove(0);
        if let Some(error) = &call.error {
            if call.error_class.as_deref() == Some("timeout") {
                return Err(PlannerError::Timeout { planner: self.name(), after: duration(request.limit) });
            }
            let remedy = self.remedy(id.as_str()).map_err(failed)?.unwrap_or_default();
            return Err(self.failed(cut(error, MAX_SAID) + &remedy));
        }
        match (task.status, call.result) {
            (Status::Done, Some(result)) => Ok((result, usage_of(call.usage.as_ref()))),
            (status, _) => Err(self.failed(format!(
                "its program was not run, its task is {status}: `taskpawl policy explain` tells why"
            ))),
        }
    }

    /// Returns the setting that would have let the program go on, as far as the sandbox stopped it: the flags that its error may name are
    /// those of runs.
    fn remedy(&self, task: &str) -> Result<Option<String>, taskpawl::Error> {
        let error = self.plans.manager().read(|view| {
            let Some(key) = view.key(task)? else { return Ok(None) };
            Ok(view.calls(key)?.into_iter().find_map(|call| call.body.error.clone()))
        })?;
        let setting = match error.and_then(|error| error.grant) {
            Some(Grant::Read(path)) => ("read", path),
            Some(Grant::Write(path)) => ("write", path),
            Some(Grant::Host(host)) => ("hosts", host),
            Some(Grant::Network | Grant::Port(_) | _) | None => return Ok(None),
        };
        let (name, value) = setting;
        Ok(Some(format!(
            "; for a planner, `{name} = [{}]` in `[planner]` of your configuration lets it",
            json!(value)
        )))
    }

    fn drive(&self, task: &str, longest: Duration, limit: Duration) -> Result<(), PlannerError> {
        let control = RunControl::default();
        let options = RunOptions { control: control.clone(), ..RunOptions::default() };
        let failed = |error: std::io::Error| self.failed(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let mut signals = runtime.block_on(async { Signals::listen(control) }).map_err(failed)?;
        let ended: Option<Result<RunSummary, _>> = runtime.block_on(async {
            tokio::select! {
                ended = tokio::time::timeout(longest + Duration::from_secs(10), self.plans.execute_task(task, options)) => ended.ok(),
                () = signals.escalate() => None,
            }
        });
        runtime.shutdown_background();
        if signals.has_come() {
            return Err(PlannerError::Interrupted { planner: self.name(), exit: signals.exit });
        }
        match ended {
            Some(summary) => summary.map(drop).map_err(|error| self.failed(error_chain(&error))),
            None => Err(PlannerError::Timeout { planner: self.name(), after: duration(limit) }),
        }
    }
}

/// Returns the consumption that a call reported.
fn usage_of(usage: Option<&Value>) -> TokenUsage {
    let number = |name: &str| usage.and_then(|usage| usage.get(name));
    let tokens = |name: &str| number(name).and_then(Value::as_u64).unwrap_or_default();
    let cost = number("cost").and_then(Value::as_f64);
    TokenUsage { input: tokens("inputTokens"), output: tokens("outputTokens"), cost }
}

/// Returns a text that arguments of a call take as it is: the prompt explains expressions, and a goal may name secrets.
fn literal(text: &str) -> String {
    text.replace("${{", "$${{").replace("${secret:", "$${secret:")
}

impl Planner for Program {
    fn name(&self) -> String {
        self.work.name()
    }

    fn ask(&self, request: &Request<'_>) -> Result<Reply, PlannerError> {
        let (result, reported) = self.run(request)?;
        let read = self.work.read(&result);
        let KitReply { text, ending, mut usage } =
            read.map_err(|problem| self.failed(cut(&problem, MAX_SAID)))?;
        usage.add(reported);
        Ok(Reply { text, ending, usage, requests: 1 })
    }
}
