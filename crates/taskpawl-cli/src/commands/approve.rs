mod always;

use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::model::task::{ApprovalRequest, ApprovalsAhead, CallSpec, LaterApproval, LaterReason, NewCall};
use taskpawl::model::value::Map;
use taskpawl::model::value::Selector;
use taskpawl::model::value::TaskId;
use taskpawl::{Approving, Manager};

use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::question::{self, Extent};
use crate::commands::{calls, parse, print, select};
use crate::error::CliError;
use crate::output::write_err;
use crate::person;
use crate::shown::shown;

/// Maximum number of remarks about questions that cannot be answered yet.
const MAX_LATER: usize = 10;

/// Approve tasks that wait for approval. Tasks that wait for a decision may start or continue
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
It takes a person at a terminal: a script or an agent approves nothing, and is refused with 7. \
Where a PIN is set (`taskpawl pin set`) it asks for it. A rule of the policy \
allows calls that need no approval each time: `taskpawl policy --help`.
An approval is for the call as it is shown: if its arguments change before it starts, it asks again.
With --always it is remembered: calls of this plan that do exactly the same run without asking. \
`taskpawl allow --list` lists these approvals. Questions of the plan's author are asked each time.
`taskpawl show ID` shows a question with everything that would run. With --only all of them are shown first,
and those that the policy will ask before the run: nothing stops at them later, unless their arguments change.

Examples:
  taskpawl approve deploy
  taskpawl approve paint --answer blue
  taskpawl approve test --always
  taskpawl approve deploy --args '{\"argv\": [\"./deploy\", \"staging\"]}'
  taskpawl approve --only plan:release")]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(false).args(["ids", "only"])))]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Those that wait or will ask of a plan, with a label, or of a task with all below it: shows them, and asks for a yes
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// The answer: an option, or any text for a question of a tool
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
    /// Run with these arguments instead, where one call is asked about
    #[arg(long = "args", value_name = "JSON", value_parser = parse::object, conflicts_with = "only")]
    instead: Option<Map>,
    /// Only if this is the hash of what is asked about, or the first 8 characters of it or more
    #[arg(long, value_name = "HASH", conflicts_with = "only")]
    hash: Option<String>,
    /// Also approve all later calls that do the same, in this project and this plan: same tool, same arguments
    #[arg(long, conflicts_with_all = ["only", "answer", "instead"])]
    always: bool,
    /// With --always: also if a model wrote the call
    #[arg(long, requires = "always")]
    agents: bool,
    /// With --always: in every plan of the project
    #[arg(long, requires = "always")]
    all_plans: bool,
    /// With --only: approve without asking
    #[arg(long, requires = "only", conflicts_with = "ids")]
    yes: bool,
    /// With --only: only show what would be approved
    #[arg(long, requires = "only", conflicts_with_all = ["ids", "yes"])]
    dry_run: bool,
}

/// Approves tasks by id, or with `--only` the ones that a search finds.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    // `--dry-run --only` only reads, so it needs no person; the approval itself does.
    let only_shows = args.dry_run && !args.only.is_empty();
    if only_shows {
        person::refuse_within_call(app, "approve")?;
    } else {
        person::refuse_without_person(app, "approve")?;
    }
    if !args.only.is_empty() {
        return found(app, args);
    }
    if args.always {
        let [id] = &args.ids[..] else {
            return Err(CliError::usage("`--always` is for one task"));
        };
        let extent = always::Extent { agents: args.agents, all_plans: args.all_plans };
        return always::run(app, id, args.hash.as_deref(), extent);
    }
    let manager = app.manager()?;
    if let (Some(instead), [id]) = (&args.instead, &args.ids[..]) {
        check_args(app, manager.approval_request(id)?, instead)?;
    }
    let approval = Approving { answer: answer(args), args: args.instead.clone(), hash: args.hash.clone() };
    let approved = manager.approve(&args.ids, approval)?;
    audit::record_tasks(app, Action::Approve, &approved)?;
    print::tasks(app, &approved)
}

/// Checks replaced arguments against the tool, if the request is about a single call.
fn check_args(app: &App, request: Option<ApprovalRequest>, instead: &Map) -> Result<(), CliError> {
    let calls = request.map(|request| request.calls).unwrap_or_default();
    let [call] = &calls[..] else { return Ok(()) };
    let spec = CallSpec { tool_name: call.tool.clone(), args: instead.clone(), ..CallSpec::default() };
    calls::check_all(app, &[NewCall { id: None, spec: spec.into() }])
}

fn answer(args: &Args) -> Option<Value> {
    args.answer.clone().map(Value::String)
}

/// The questions that `--only` finds.
#[derive(Default)]
struct Found {
    /// Those that tasks wait for.
    waiting: Vec<ApprovalRequest>,
    /// Those that tasks will ask.
    ahead: Vec<ApprovalRequest>,
    /// Those that need an answer, without `--answer`: "yes to all" cannot answer them.
    unanswered: Vec<ApprovalRequest>,
    /// Those that cannot be answered before they are asked.
    later: Vec<LaterApproval>,
}

impl Found {
    fn of(app: &App, manager: &Manager, args: &Args) -> Result<Self, CliError> {
        let now = app.source()?.now();
        let open = manager.approval_requests(&args.only)?.into_iter().filter(|request| !request.is_over(now));
        let (waiting, unanswered) = open.partition(|request| request.is_plain() || args.answer.is_some());
        let ApprovalsAhead { requests: ahead, later, .. } = manager.approvals_ahead(&args.only)?;
        Ok(Self { waiting, ahead, unanswered, later })
    }

    fn count(&self) -> usize {
        self.waiting.len() + self.ahead.len()
    }

    /// Prints each question with everything that would run.
    fn print(&self, app: &App) -> Result<(), CliError> {
        let out = app.out();
        let parts = [(&self.waiting, ""), (&self.ahead, "  before it asks"), (&self.unanswered, "")];
        for (request, note) in
            parts.into_iter().flat_map(|(part, note)| part.iter().map(move |it| (it, note)))
        {
            let hash = &request.hash[..request.hash.len().min(12)];
            let text = question::text(request, Extent::Full, out.paint);
            out.print(shown![text, "  hash ", hash, note, "\n\n"].wrapped(out.width))?;
        }
        Ok(())
    }

    /// Says which questions stay open.
    fn remark(&self, app: &App) -> Result<(), CliError> {
        let out = app.out();
        for request in &self.unanswered {
            let mut advice = question::advice_of(request);
            app.write_advice(&mut advice)?;
            let commands: Vec<String> = advice.iter().map(ToString::to_string).collect();
            out.remark(&format!("`{}` needs an answer: {}", request.task, commands.join(", ")));
        }
        for LaterApproval { task, call, reason, .. } in self.later.iter().take(MAX_LATER) {
            let call = call.as_ref().map(|call| format!(" call `{call}`")).unwrap_or_default();
            let when = if *reason == LaterReason::Result { "has worked" } else { "starts" };
            out.remark(&format!("`{task}`{call} will ask when it {when}: {reason}"));
        }
        let more = self.later.len().saturating_sub(MAX_LATER);
        if more > 0 {
            out.remark(&format!(
                "{} will ask when they start",
                print::count(more as u64, "more task or call")
            ));
        }
        Ok(())
    }

    /// Returns the data of `--dry-run --json`: all questions that can be answered now.
    fn data(&self) -> Vec<Value> {
        let of = |requests: &[ApprovalRequest]| requests.iter().map(|it| json!(it)).collect::<Vec<_>>();
        let ahead = of(&self.ahead).into_iter().map(|mut request| {
            request["isAhead"] = json!(true);
            request
        });
        of(&self.waiting).into_iter().chain(ahead).chain(of(&self.unanswered)).collect()
    }
}

/// Shows the questions that `--only` finds, and approves them after a confirmation.
fn found(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let can_ask = app.terminal().can_ask() && !app.is_json();
    if !args.yes && !args.dry_run && !can_ask {
        let hint = "`--dry-run` shows what would be approved, `--yes` approves it";
        return Err(CliError::usage_with("there is no terminal here to ask whether all of it may run", hint));
    }
    let manager = if args.dry_run { app.reader()?.manager() } else { app.manager()? };
    let found = Found::of(app, manager, args)?;
    let out = app.out();
    if args.dry_run && out.is_json {
        return out.data(&found.data());
    }
    if !out.is_json {
        found.print(app)?;
    }
    found.remark(app)?;
    if found.count() == 0 {
        return select::nothing(app);
    }
    if args.dry_run || !(args.yes || is_wanted(found.count())) {
        out.remark("nothing was approved");
        return Ok(ExitCode::SUCCESS);
    }
    let approved = approve_all(app, manager, &found, answer(args).as_ref())?;
    audit::record_tasks(app, Action::Approve, &approved)?;
    print::tasks(app, &approved)
}

/// Approves the questions as they were shown. The hash of each makes the store refuse one that has changed
/// since.
fn approve_all(
    app: &App,
    manager: &Manager,
    found: &Found,
    answer: Option<&Value>,
) -> Result<Vec<TaskId>, CliError> {
    let waiting = found.waiting.iter().map(|request| {
        // A request without options is a yes/no question, and `--answer` does not apply to it.
        let answer = answer.filter(|_| !request.options.is_empty()).cloned();
        let approval = Approving { answer, args: None, hash: Some(request.hash.clone()) };
        (request, manager.approve(&[request.task.to_string()], approval))
    });
    let ahead = found.ahead.iter().map(|request| (request, manager.approve_ahead(request)));
    let (mut approved, mut refused) = (Vec::new(), None);
    for (request, answer) in waiting.chain(ahead) {
        match answer {
            Ok(ids) => approved.extend(ids),
            Err(error) => {
                app.out().warn(&format!("`{}` was not approved: {error}", request.task));
                // One refused request must not stop the rest; the command fails only if none was approved.
                refused = Some(error);
            }
        }
    }
    // Several calls of a task may have been approved, one after the other.
    approved.dedup();
    match refused {
        Some(error) if approved.is_empty() => Err(error.into()),
        _ => Ok(approved),
    }
}

fn is_wanted(count: usize) -> bool {
    let what = print::count(count as u64, "question");
    // If the question cannot be printed, the answer is no.
    let asked = write_err(&format!("Say yes to {what}, with everything that is listed? [y/N] ").into());
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    asked.is_ok() && read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
