use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl_process::{
    End, Isolation, Limits, NetworkWall, Outcome, OutputFiles, Program, Sandbox, SpawnError, Unfinished,
    is_in_sandbox,
};

use crate::builtin::common::parse;
use crate::builtin::silent::no_match_hint;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::foresee::{Foreseen, missing_program};
use crate::root::Root;
use crate::sandbox::{
    BeforeCall, ClosedPlaces, Hint, NamedAccess, NamedGrant, hidden_names, hint, hint_for_start,
    met_protected, named_access, of_hidden,
};
use crate::scan::ScanBounds;
use crate::text::last_line;
use crate::tool::{Hints, Tool, ToolSpec};

/// Tool that runs a program from its argv, without a shell.
#[derive(Debug)]
pub(super) struct Exec(ToolSpec);

impl Exec {
    pub(super) fn new() -> Self {
        let argv = json!({
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "The program and its arguments, without a shell.",
        });
        Self(program_spec("exec", "Runs a program.", [("argv", argv)]))
    }
}

#[derive(Deserialize)]
struct Args {
    argv: Vec<String>,
    #[serde(flatten)]
    options: Options,
}

#[async_trait]
impl Tool for Exec {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn foresee(&self, args: &Value) -> Vec<Foreseen> {
        let program = args.get("argv").and_then(|argv| argv.get(0)).and_then(Value::as_str);
        program.and_then(|program| missing_program(program, "argv[0]")).into_iter().collect()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let Args { argv, options } = parse("exec", args)?;
        let name = argv.first().cloned().unwrap_or_default();
        let silent = no_match_hint(&name);
        run(&cx, &name, argv, options).await.map_err(|error| error.with_hint_if_silent(silent))
    }
}

/// Arguments that `exec` and `shell` share.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Options {
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    stdin: Option<String>,
    parse: Option<Parse>,
    #[serde(default = "only_zero")]
    ok_exit_codes: Vec<i32>,
}

impl Options {
    /// Makes options for a call that does not get them as arguments.
    pub(crate) fn new(
        cwd: Option<String>,
        env: BTreeMap<String, String>,
        stdin: Option<String>,
        is_json: bool,
        ok_exit_codes: Vec<i32>,
    ) -> Self {
        Self { cwd, env, stdin, parse: is_json.then_some(Parse::Json), ok_exit_codes }
    }
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Parse {
    Json,
}

fn only_zero() -> Vec<i32> {
    vec![0]
}

/// Makes the description of a tool that runs a program. The first of its `own` arguments names the program.
pub(super) fn program_spec<const N: usize>(
    name: &str,
    description: &str,
    own: [(&'static str, Value); N],
) -> ToolSpec {
    let required = own.first().map(|(name, _)| *name);
    let mut properties = json!({
        "cwd": {"type": "string", "description": "Working directory, inside the project root."},
        "env": {
            "type": "object",
            "propertyNames": {"pattern": "^[^=\\x00]+$"},
            "additionalProperties": {"type": "string"},
            "description": "Variables to add or replace.",
        },
        "stdin": {"type": "string", "description": "The standard input of the program."},
        "parse": {"enum": ["json"], "description": "Parse standard output as JSON into `json`; its `usage` field is recorded as the usage of the call."},
        "okExitCodes": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 255},
            "minItems": 1,
            "default": [0],
            "description": "Exit codes that count as success; any other fails the call.",
        },
    });
    for (name, schema) in own {
        properties[name] = schema;
    }
    let args = json!({
        "type": "object",
        "properties": properties,
        "required": required.as_slice(),
        "additionalProperties": false,
    });
    let hints = Hints { destructive: true, open_world: true, ..Hints::default() };
    ToolSpec::new(name, description, args).with_result(result_schema()).with_hints(hints)
}

pub(crate) fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "sandbox": sandbox_schema(),
            "exitCode": {"type": "integer", "description": "128 plus the signal number if a signal ended the program."},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "json": {"description": "Standard output as JSON, with `parse`."},
            "truncated": {"type": "boolean", "description": "True if only the head and tail of the output are included."},
            "outputFile": {
                "type": "string",
                "description": "The path of the full output if it is truncated: standard output, or standard error if only that is.",
            },
        },
        "required": ["exitCode", "stdout", "stderr", "truncated", "sandbox"],
        "additionalProperties": false,
    })
}

fn sandbox_schema() -> Value {
    json!({
        "type": "object",
        "description": "The sandbox of the program.",
        "properties": {
            "level": {"enum": ["off", "standard", "strict"]},
            "network": {"enum": ["loopback", "none", "full"], "description": "`loopback` is a private loopback network."},
            "gaps": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Requested restrictions that could not be enforced here.",
            },
            "created": {
                "type": "array",
                "items": {"type": "string"},
                "description": "New files that other programs run or load, which the sandbox could not protect: protected files, and hooks and settings of repositories.",
            },
            "protected": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Protected paths that the program failed to write although it succeeded.",
            },
            "hidden": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Paths in the command line that the sandbox hides; they look empty to programs.",
            },
        },
        "required": ["level"],
        "additionalProperties": false,
    })
}

/// Runs a program and converts its end into the result of the call. Errors call the program `name`.
pub(crate) async fn run(
    cx: &CallContext,
    name: &str,
    argv: Vec<String>,
    options: Options,
) -> Result<Value, ToolError> {
    let cwd = match options.cwd {
        Some(cwd) => directory(cx, cwd).await?,
        None => cx.dir.clone(),
    };
    let program = Program {
        argv,
        cwd,
        environment: cx.program_environment(options.env),
        stdin: options.stdin.map(String::into_bytes),
        output: OutputFiles { stdout: cx.stdout_path(), stderr: cx.stderr_path() },
        sandbox: cx.sandbox.clone(),
        handover: cx.handover(),
    };
    let limits = Limits {
        deadline: cx.deadline,
        output_bytes: cx.limits.output_bytes,
        keep_bytes: cx.limits.keep_bytes,
        grace: cx.limits.grace,
    };
    // Taken before the start, so that files created during the call can be told from older ones.
    let before = BeforeCall::of(cx).await?;
    let outcome = match cx.programs.run(&program, &limits, &cx.cancel).await {
        Ok(outcome) => outcome,
        Err(error) => return Err(not_ended(cx, error).await),
    };
    let mut report = report(&cx.sandbox, &outcome);
    for (pointer, stream) in [("/stdout", &outcome.stdout), ("/stderr", &outcome.stderr)] {
        if stream.truncated {
            cx.report_cut(pointer);
        }
    }
    let created = before.created(cx, Vec::new()).await;
    if let Some(Value::Object(sandbox)) = report.get_mut("sandbox") {
        created.tell(cx, sandbox);
    }
    let is_ok = options.ok_exit_codes.contains(&outcome.code);
    let (outcome, Met { hidden, protected, hint, named }) = met(cx, program, outcome, is_ok).await;
    if let Some((names, said)) = hidden {
        cx.warn(said);
        report["sandbox"]["hidden"] = json!(names);
    }
    tell_named(&named, &mut report);
    ended(cx, name, is_ok, &outcome, hint, &report)?;
    tell_protected(cx, &protected, &mut report);
    match options.parse {
        Some(Parse::Json) => {
            let result = with_json(name, &outcome, report)?;
            if let Some(usage) = result["json"].get("usage").filter(|usage| usage.is_object()) {
                cx.report_usage(usage.clone());
            }
            Ok(result)
        }
        None => Ok(report.into()),
    }
}

/// Resolves the working directory of a call on a thread that may block, because its file system may not answer.
async fn directory(cx: &CallContext, cwd: String) -> Result<PathBuf, ToolError> {
    let call = cx.clone();
    let resolve =
        move |_: &ScanBounds| Ok(Root::open(&call).and_then(|root| root.real_path(Path::new(&cwd))));
    ScanBounds::of_call(cx).run(resolve).await?
}

/// The denials of its sandbox that a program met.
#[derive(Default)]
struct Met {
    /// Hidden files on its command line, and the warning about them. A program finds them empty and rarely reports that.
    hidden: Option<(Vec<String>, String)>,
    /// Protected paths that a successful program could not write.
    protected: Vec<(PathBuf, Hint)>,
    /// The option that would have allowed a failed program what it tried.
    hint: Option<Hint>,
    /// Access that the output of a failed program names.
    named: Vec<NamedAccess>,
}

impl Met {
    fn of(closed: &ClosedPlaces, program: &Program, outcome: &Outcome, is_ok: bool) -> Self {
        // Without mounts nothing is hidden; the gaps of the sandbox report that instead.
        let is_covered = outcome.enforcement.as_ref().is_some_and(|enforcement| enforcement.mounts);
        let names = if is_covered { hidden_names(program) } else { Vec::new() };
        let hidden = of_hidden(closed, &program.cwd, &names).map(|said| (names, said));
        match (outcome.end, is_ok) {
            (End::Exited, true) => {
                let protected = met_protected(program, outcome, closed);
                Self { hidden, protected, ..Self::default() }
            }
            (End::Exited, false) => {
                let refused = match &program.sandbox {
                    Sandbox::On(profile) => named_access(&outcome.stderr.text, profile, closed.unseen()),
                    Sandbox::Off => Vec::new(),
                };
                Self { hidden, protected: Vec::new(), hint: hint(program, outcome, closed), named: refused }
            }
            (End::TimedOut | End::Cancelled | End::OutputLimit, _) => Self { hidden, ..Self::default() },
        }
    }
}

/// Returns the denials that a program met. The paths that it names are looked up on a thread that may block; if that takes
/// too long the result is empty.
async fn met(cx: &CallContext, program: Program, outcome: Outcome, is_ok: bool) -> (Arc<Outcome>, Met) {
    let (outcome, closed) = (Arc::new(outcome), cx.closed.clone());
    if matches!(program.sandbox, Sandbox::Off) {
        return (outcome, Met::default());
    }
    let ended = Arc::clone(&outcome);
    let bounds = ScanBounds::after_call(cx);
    let met = bounds.run(move |_| Ok(Met::of(&closed, &program, &ended, is_ok))).await;
    (outcome, met.unwrap_or_default())
}

/// Warns about refused writes of a successful program: it may have skipped half of its work.
fn tell_protected(cx: &CallContext, met: &[(PathBuf, Hint)], report: &mut Map<String, Value>) {
    for (_, said) in met {
        cx.warn(format!("it succeeded, but reported a failed write: {said}"));
    }
    if !met.is_empty() {
        let paths: Vec<_> = met.iter().map(|(path, _)| path.to_string_lossy()).collect();
        report["sandbox"]["protected"] = json!(paths);
    }
}

/// Adds the refused access that the output of a failed program names.
fn tell_named(named: &[NamedAccess], report: &mut Map<String, Value>) {
    if named.is_empty() {
        return;
    }
    let refused = &mut report["sandbox"]["refused"];
    let mut known = refused.as_array().cloned().unwrap_or_default();
    for access in named.iter().map(|access| json!(access)) {
        // The supervisor may have recorded a socket already.
        if !known.contains(&access) {
            known.push(access);
        }
    }
    *refused = known.into();
}

async fn not_ended(cx: &CallContext, error: SpawnError) -> ToolError {
    if matches!(error, SpawnError::SupervisorLost) {
        cx.report(error.to_string());
        return ToolError::Lost { message: error.to_string() };
    }
    if let SpawnError::NotFoundInTime { why, .. } = error {
        return match why {
            Unfinished::Cancelled => ToolError::Cancelled { result: None },
            Unfinished::TimedOut => ToolError::Timeout { result: None },
        };
    }
    match hint_for_start(&cx.sandbox, &error).await {
        Some(hint) => ToolError::OutsideSandbox { source: error, hint: Box::new(hint) },
        None => error.into(),
    }
}

fn report(sandbox: &Sandbox, outcome: &Outcome) -> Map<String, Value> {
    let mut report = Map::new();
    report.insert("exitCode".to_owned(), outcome.code.into());
    report.insert("stdout".to_owned(), outcome.stdout.text.clone().into());
    report.insert("stderr".to_owned(), outcome.stderr.text.clone().into());
    let truncated = [&outcome.stdout, &outcome.stderr].into_iter().find(|stream| stream.truncated);
    report.insert("truncated".to_owned(), truncated.is_some().into());
    if let Some(file) = truncated.and_then(|stream| stream.file.as_ref()) {
        report.insert("outputFile".to_owned(), file.to_string_lossy().into());
    }
    report.insert("sandbox".to_owned(), in_force(sandbox, outcome));
    report
}

/// Formats the enforced sandbox, and what it refused, as briefly as possible.
fn in_force(sandbox: &Sandbox, outcome: &Outcome) -> Value {
    let Some(enforcement) = outcome.enforcement.as_deref() else { return json!({"level": "off"}) };
    let network = match enforcement.network {
        NetworkWall::Namespace => "loopback",
        NetworkWall::Filter => "none",
        NetworkWall::Open => "full",
    };
    let mut said = json!({"level": enforcement.level, "network": network});
    if enforcement.isolation() != Isolation::A {
        said["isolation"] = json!(enforcement.isolation());
    }
    if is_in_sandbox() {
        said["nested"] = json!(true);
    }
    if !enforcement.gaps.is_empty() {
        said["gaps"] = json!(enforcement.gaps);
    }
    if let Sandbox::On(profile) = sandbox {
        let hosts = profile.hosts.iter().cloned().map(NamedGrant::Host);
        let granted: Vec<NamedGrant> =
            hosts.chain(profile.ports.iter().copied().map(NamedGrant::Port)).collect();
        if !granted.is_empty() {
            said["granted"] = json!(granted);
        }
    }
    if !outcome.refused.is_empty() {
        said["refused"] = json!(outcome.refused);
    }
    said
}

fn ended(
    cx: &CallContext,
    name: &str,
    is_ok: bool,
    outcome: &Outcome,
    hint: Option<Hint>,
    report: &Map<String, Value>,
) -> Result<(), ToolError> {
    let result = || Box::new(Value::Object(report.clone()));
    match outcome.end {
        End::Exited if is_ok => Ok(()),
        End::Exited => Err(ToolError::Exit {
            program: name.to_owned(),
            code: outcome.code,
            signal: outcome.signal,
            stderr: last_line(&outcome.stderr.text),
            hint: hint.map(Box::new),
            result: result(),
        }),
        End::TimedOut => Err(ToolError::Timeout { result: Some(result()) }),
        End::Cancelled => Err(ToolError::Cancelled { result: Some(result()) }),
        End::OutputLimit => {
            Err(ToolError::OutputLimit { limit_bytes: cx.limits.output_bytes, result: Some(result()) })
        }
    }
}

fn with_json(name: &str, outcome: &Outcome, mut report: Map<String, Value>) -> Result<Value, ToolError> {
    // The head and tail of truncated output could by chance be valid JSON of another meaning.
    let parsed = if outcome.stdout.truncated {
        Err(format!("its {} bytes exceed the size limit of a result", outcome.stdout.bytes))
    } else {
        taskpawl_json::read(&outcome.stdout.text).map_err(|error| error.to_string())
    };
    match parsed {
        Ok(json) => {
            report.insert("json".to_owned(), json);
            Ok(report.into())
        }
        Err(problem) => Err(ToolError::InvalidJson {
            what: format!("standard output of `{name}`"),
            problem,
            result: Box::new(report.into()),
        }),
    }
}
