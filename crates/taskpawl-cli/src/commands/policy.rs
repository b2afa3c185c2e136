use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use serde_json::{Map, Value, json};
use taskpawl::model::insight::CallAuthorization;
use taskpawl::model::rules::asks_by_itself;
use taskpawl::model::task::PolicyDecision;
use taskpawl::model::task::{CallSpec, Origin, UntrustedValue};
use taskpawl::model::value::CallId;
use taskpawl::tools::{
    CallOrigin, Decision, Explained, Layer, LayerKind, NamedGrant, Policy, PolicyCall, Power, PowerInForce,
    Rule, SandboxNeed,
};

use crate::app::App;
use crate::commands::{calls, parse};
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{Cell, Table, clean, style};

/// Show which calls run, ask, or are denied
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Three files are asked, and the strictest answer counts:
  /etc/taskpawl/policy.toml         of the machine: no other file lifts its rules
  ~/.config/taskpawl/policy.toml    of the user: it decides
  taskpawl-policy.toml              of the project: it only narrows
Without any file, calls of people and their plans run inside the sandbox, and calls of models ask, except for \
built-in tools that only read. A rule names calls and a decision:

  [[rules]]
  decision = \"ask\"                     allow, ask or deny
  argv = [\"git\", [\"push\", \"fetch\"]]    how the command begins; or: tool = \"github/*\"
  reason = \"others see it\"             shown with the question
  match = [\"git push\"]                 tests, checked when the file is read
  notMatch = [\"git status\"]

  [origins]
  agent = \"sandboxed\"                  allow, sandboxed, ask or deny calls without a rule

Examples:
  taskpawl policy check \"cargo test && git push\"
  taskpawl policy check --tool github/create_issue --origin mcp
  taskpawl policy list
  taskpawl policy effective")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Check(Box<CheckArgs>),
    /// Show the rules of every file
    List,
    /// Show what is in force about the sandbox and decisions, and which file says so
    Effective,
}

/// Say what would be decided about a call, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
One word is a command line for `shell`, several are the argv of a program. Of a tool that a configuration \
describes it is judged which program it would run with these arguments. Where an allow rule only lacks a key for \
the standard input, the directory or the variables of the call, that key is named.

Exit codes: 0 it runs · 3 it asks first · 7 it never runs

Examples:
  taskpawl policy check \"git push\"
  taskpawl policy check git push --origin agent
  taskpawl policy check \"make test\" --origin agent --cwd crates/a --stdin x
  taskpawl policy check --task deploy
  taskpawl policy check --tool write_file --args '{\"path\": \"a\"}' --origin mcp")]
struct CheckArgs {
    /// The command
    #[arg(value_name = "COMMAND", required_unless_present_any = ["tool", "task"], conflicts_with = "tool")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    command: Vec<String>,
    /// A call of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The calls of this task, with the values that decide about them
    #[arg(long, value_name = "ID", conflicts_with_all = ["command", "tool", "origin", "net", "read", "write"])]
    task: Option<String>,
    /// Its arguments
    #[arg(long = "args", value_name = "JSON", value_parser = parse::object, requires = "tool", conflicts_with = "command")]
    with: Option<Map<String, Value>>,
    /// The command reads this from its standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "tool")]
    stdin: Option<String>,
    /// The command runs in this directory, from the root of the project
    #[arg(long, value_name = "DIR", conflicts_with = "tool", value_parser = NonEmptyStringValueParser::new())]
    cwd: Option<String>,
    /// The command has this variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "tool", value_parser = parse::assignment)]
    env: Vec<(String, String)>,
    /// Origin of the call
    #[arg(long, value_name = "ORIGIN", value_enum, default_value_t = OriginWord::Plan)]
    origin: OriginWord,
    /// It asks for the network
    #[arg(long)]
    net: bool,
    /// It asks to read this
    #[arg(long, value_name = "PATH")]
    read: Vec<String>,
    /// It asks to write this
    #[arg(long, value_name = "PATH")]
    write: Vec<String>,
}

/// The author of a call, as a word of the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OriginWord {
    /// A person, on the command line
    Cli,
    /// A program that embeds the library
    Library,
    /// A plan file
    Plan,
    /// A client of the MCP server
    Mcp,
    /// An agent, through a tool call
    Agent,
}

impl OriginWord {
    fn origin(self) -> CallOrigin {
        match self {
            Self::Cli => CallOrigin::Cli,
            Self::Library => CallOrigin::Library,
            Self::Plan => CallOrigin::Plan,
            Self::Mcp => CallOrigin::Mcp,
            Self::Agent => CallOrigin::Agent,
        }
    }

    /// Returns the origin as the model has it. The policy and the plan have a type each.
    pub(crate) fn of_calls(self) -> Origin {
        match self {
            Self::Cli => Origin::Cli,
            Self::Library => Origin::Library,
            Self::Plan => Origin::Plan,
            Self::Mcp => Origin::Mcp,
            Self::Agent => Origin::Agent,
        }
    }
}

/// Lists the rules of the policy, or checks a call or a task against them.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::Check(args) => check(app, args),
        What::List => list(app),
        What::Effective => effective(app),
    }
}

/// The decision about a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    #[serde(flatten)]
    explained: Explained,
    /// The reason why a call asks for approval although all policy files allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_itself: Option<String>,
}

impl Checked {
    /// Adds the built-in questions: a run asks about some calls even if all files allow them.
    fn of(mut explained: Explained, origin: Origin, spec: &CallSpec) -> Self {
        let is_allowed = explained.decision == Decision::Allow;
        // No untrusted values: a check runs nothing, so no expression has a value yet.
        let by_itself = asks_by_itself(origin, spec, &[]).filter(|_| is_allowed);
        if by_itself.is_some() {
            explained.decision = Decision::Ask;
        }
        Self { explained, by_itself }
    }
}

/// The decision about one call of a task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckedCall<'c> {
    call: &'c CallId,
    tool: &'c str,
    decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'c str>,
    origin: Origin,
    /// Values from models that count in the decision, besides the origin of the call.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    untrusted: &'c [UntrustedValue],
}

impl<'c> CheckedCall<'c> {
    fn of(decided: &'c CallAuthorization) -> Self {
        let (decision, why) = match &decided.decision {
            PolicyDecision::Allow => (Decision::Allow, None),
            PolicyDecision::Ask { why } => (Decision::Ask, Some(why.as_str())),
            PolicyDecision::Deny { why } => (Decision::Deny, Some(why.as_str())),
        };
        let CallAuthorization { call, tool, origin, untrusted, .. } = decided;
        Self { call, tool, decision, why, origin: *origin, untrusted }
    }
}

/// Checks the calls of a stored task.
fn check_task(app: &App, id: &str) -> Result<ExitCode, CliError> {
    let decided = app.reader()?.manager().call_authorizations(id)?;
    let checked: Vec<CheckedCall<'_>> = decided.iter().map(CheckedCall::of).collect();
    let out = app.out();
    let decision = checked.iter().map(|call| call.decision).max().unwrap_or(Decision::Allow);
    if out.is_json {
        out.data(&checked)?;
    } else {
        let mut table = Table::new(2);
        for call in &checked {
            let cells = [call.call.as_str(), call.tool, call.decision.as_str(), call.why.unwrap_or_default()];
            table.row(cells.into_iter().map(Cell::new).collect());
        }
        out.print(table.render(out.paint, None))?;
    }
    Ok(code_of(decision))
}

fn check(app: &App, args: &CheckArgs) -> Result<ExitCode, CliError> {
    if let Some(id) = &args.task {
        return check_task(app, id);
    }
    let (tool, with) = call(args);
    calls::require_tool(app, &tool)?;
    let need = SandboxNeed { net: args.net, read: args.read.clone(), write: args.write.clone() };
    let sandbox = (need != SandboxNeed::default()).then_some(&need);
    let call = PolicyCall { tool: &tool, args: &with, origin: args.origin.origin(), sandbox };
    let policy = app.policy()?.clone().with_tools(app.toolbox()?.registry().clone());
    let explained = policy.explain(&call);
    let spec = CallSpec { tool_name: tool, args: with, ..CallSpec::default() };
    let checked = Checked::of(explained, args.origin.of_calls(), &spec);
    let out = app.out();
    if out.is_json {
        out.data(&checked)?;
    } else {
        out.print(text(app, &spec.tool_name, &checked))?;
    }
    Ok(code_of(checked.explained.decision))
}

fn code_of(decision: Decision) -> ExitCode {
    ExitCode::from(match decision {
        Decision::Allow => 0,
        Decision::Ask => 3,
        Decision::Deny => 7,
    })
}

fn call(args: &CheckArgs) -> (String, Map<String, Value>) {
    let one = |name: &str, value: Value| {
        let mut call = start_options(args);
        call.insert(name.to_owned(), value);
        call
    };
    match (&args.tool, &args.command[..]) {
        (Some(tool), _) => (tool.clone(), args.with.clone().unwrap_or_default()),
        (None, [line]) => ("shell".to_owned(), one("command", json!(line))),
        (None, words) => ("exec".to_owned(), one("argv", json!(words))),
    }
}

/// Returns the arguments of a command other than its words.
fn start_options(args: &CheckArgs) -> Map<String, Value> {
    let mut options = Map::new();
    options.extend(args.stdin.iter().map(|text| ("stdin".to_owned(), json!(text))));
    options.extend(args.cwd.iter().map(|path| ("cwd".to_owned(), json!(path))));
    if !args.env.is_empty() {
        let env: Map<String, Value> =
            args.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        options.insert("env".to_owned(), json!(env));
    }
    options
}

fn text(app: &App, tool: &str, checked: &Checked) -> Shown {
    let (out, explained) = (app.out(), &checked.explained);
    let look = match explained.decision {
        Decision::Allow => style::DIM,
        Decision::Ask => style::WARNING,
        Decision::Deny => style::ERROR,
    };
    let mut text = shown![out.paint.style(look, explained.decision.as_str()), "\n"];
    let mut table = Table::new(2);
    for step in &explained.steps {
        let cells = [step.layer.as_str(), step.decision.as_str(), step.why.as_str()];
        table.row(cells.into_iter().map(Cell::new).collect());
    }
    if let Some(why) = checked.by_itself.as_deref() {
        table.row(["call", "ask", why].into_iter().map(Cell::new).collect());
    }
    if let Some(why) = &explained.in_vain {
        table.row(["call", "deny", why].into_iter().map(Cell::new).collect());
    }
    text.push(table.render(out.paint, None));
    match &explained.commands {
        Some(commands) if commands.len() > 1 => {
            let lines = commands.iter().map(|argv| format!("  {}\n", clean(&argv.join(" "))));
            let _ = write!(text, "the commands of it:\n{}", lines.collect::<String>());
        }
        // For `exec` and `shell` the command line already shows this.
        Some(commands) if !matches!(tool, "exec" | "shell") => {
            let lines = commands.iter().map(|argv| format!("it runs: {}\n", clean(&argv.join(" "))));
            text.push(lines.collect::<String>());
        }
        _ if explained.is_plain == Some(false) => {
            text.push(
                "not all of it is plain: no rule allows it, and rules that ask or deny suspect the worst\n",
            );
        }
        _ => {}
    }
    text
}

/// A policy layer as listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    layer: LayerKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    origins: Map<String, Value>,
    /// Rulings on powers.
    #[serde(skip_serializing_if = "Map::is_empty")]
    powers: Map<String, Value>,
    /// Flags that coding agents may give.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    agents_may: &'a [NamedGrant],
    /// True if decisions require a PIN.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    requires_pin: bool,
    rules: Vec<ListedRule<'a>>,
}

#[derive(Serialize)]
struct ListedRule<'a> {
    line: usize,
    decision: Decision,
    about: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    origins: &'a [CallOrigin],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

fn list(app: &App) -> Result<ExitCode, CliError> {
    let layers: Vec<Listed<'_>> = app.policy()?.layers().iter().map(listed).collect();
    let out = app.out();
    if out.is_json {
        return out.data(&layers);
    }
    let mut text = Shown::new();
    for layer in &layers {
        let file = layer.file.as_ref().map_or("without a file".to_owned(), |file| file.display().to_string());
        text.push(shown![out.paint.style(style::BOLD, layer.layer.as_str()), "  ", clean(&file), "\n"]);
        for (origin, standing) in &layer.origins {
            let _ = writeln!(text, "  {origin}: {}", standing.as_str().unwrap_or_default());
        }
        for (power, ruling) in &layer.powers {
            let _ = writeln!(text, "  power {power}: {}", ruling.as_str().unwrap_or_default());
        }
        for grant in layer.agents_may {
            let _ = writeln!(text, "  agents may: {}", clean(&grant.to_string()));
        }
        if layer.requires_pin {
            text.push("  decisions: a PIN is required\n");
        }
        for rule in &layer.rules {
            let of = rule.origins.iter().map(|origin| origin.as_str()).collect::<Vec<_>>().join(", ");
            let of = if of.is_empty() { of } else { format!("  of {of}") };
            let reason = rule.reason.map(|reason| format!("  ({reason})")).unwrap_or_default();
            let _ = writeln!(
                text,
                "  line {}: {} {}{of}{}",
                rule.line,
                rule.decision,
                clean(&rule.about),
                clean(&reason)
            );
        }
    }
    out.print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The settings of all files together, about the sandbox and decisions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Effective {
    powers: Vec<PowerInForce>,
    /// Flags that coding agents may give.
    agents_may: Vec<NamedGrant>,
    least_level: InForce,
    pin: InForce,
    origins: Vec<OriginInForce>,
}

/// A setting with the place that makes it.
#[derive(Serialize)]
struct InForce {
    value: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

/// The default for the calls of an origin to which no rule applies.
#[derive(Serialize)]
struct OriginInForce {
    origin: CallOrigin,
    #[serde(flatten)]
    setting: InForce,
}

impl Effective {
    fn of(policy: &Policy) -> Self {
        let granted = policy.layers().iter().flat_map(Layer::agent_grants);
        let origin = |origin: &CallOrigin| {
            let (standing, place) = policy.standing(*origin);
            OriginInForce { origin: *origin, setting: InForce { value: standing.as_str(), place } }
        };
        let least = policy.least_level();
        let pin = policy.requires_pin();
        Self {
            powers: Power::ALL.iter().map(|power| policy.ruling(*power)).collect(),
            agents_may: granted.filter(|grant| policy.agents_may(grant)).cloned().collect(),
            least_level: InForce {
                value: least.as_ref().map_or("D", |(least, _)| least.as_str()),
                place: least.map(|(_, place)| place),
            },
            pin: InForce { value: if pin.is_some() { "required" } else { "optional" }, place: pin },
            origins: CallOrigin::ALL.iter().map(origin).collect(),
        }
    }
}

/// Shows the strictest of all files, and where it comes from.
fn effective(app: &App) -> Result<ExitCode, CliError> {
    let effective = Effective::of(app.policy()?);
    let out = app.out();
    if out.is_json {
        return out.data(&effective);
    }
    let mut table = Table::new(2);
    let mut row = |name: String, value: &str, place: Option<&str>| {
        let place = place.unwrap_or("by default");
        table.row([name.as_str(), value, place].into_iter().map(Cell::new).collect());
    };
    for power in &effective.powers {
        row(format!("powers.{}", power.power), power.ruling.as_str(), power.place.as_deref());
    }
    for grant in &effective.agents_may {
        row("agents_may".to_owned(), &grant.to_string(), Some("of the user's policy"));
    }
    row("least_level".to_owned(), effective.least_level.value, effective.least_level.place.as_deref());
    row("decisions.pin".to_owned(), effective.pin.value, effective.pin.place.as_deref());
    for OriginInForce { origin, setting } in &effective.origins {
        row(format!("origins.{origin}"), setting.value, setting.place.as_deref());
    }
    out.print(table.render(out.paint, out.width))?;
    Ok(ExitCode::SUCCESS)
}

fn listed(layer: &Layer) -> Listed<'_> {
    let standing = |origin: &CallOrigin| {
        layer.standing(*origin).map(|standing| (origin.to_string(), json!(standing.as_str())))
    };
    Listed {
        layer: layer.kind(),
        file: layer.path().map(ToOwned::to_owned),
        origins: CallOrigin::ALL.iter().filter_map(standing).collect(),
        powers: layer.rulings().map(|(power, ruling)| (power.to_string(), json!(ruling))).collect(),
        agents_may: layer.agent_grants(),
        requires_pin: layer.requires_pin().is_some(),
        rules: layer.rules().iter().map(listed_rule).collect(),
    }
}

fn listed_rule(rule: &Rule) -> ListedRule<'_> {
    ListedRule {
        line: rule.line(),
        decision: rule.decision(),
        about: rule.to_string(),
        origins: rule.origins(),
        reason: rule.reason(),
    }
}
