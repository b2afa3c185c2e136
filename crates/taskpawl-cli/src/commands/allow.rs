mod agent;
mod asked;
mod choose;
mod facts;
mod kit;
mod list;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::ArgGroup;
use taskpawl::tools::{HostGrant, NamedGrant, Power};

use self::asked::{Asked, LastRun};
use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::sandbox;
use crate::error::CliError;
use crate::grants::{self, Entry, Grants, Project, plan_text};
use crate::kits::Kit;
use crate::person;
use crate::remembered::Approval;
use crate::shown::Shown;
use crate::text::clean;

/// Name of the command in refusals.
const BY: &str = "allow";

/// Remember grants for programs. Shows what the last run was refused, and remembers what a person grants
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
Without options it shows the hosts, ports, sockets, variables and paths that the last run was refused: first those that a lock file, a setting \
of a registry or a git remote of the project names, then those that a program alone has asked for, which are typed out. \
Only a person at a terminal grants, and types the PIN if one is set. A grant holds for this project, in this directory, \
and for the plan that it was learned from, and not for calls that models add. It is kept in your state directory. \
`--allow-net` and `--sandbox off` are never remembered.

Examples:
  taskpawl allow
  taskpawl allow --host packages.example.org
  taskpawl allow --port 5432 --all-plans
  taskpawl allow kit:ssh-agent --task deploy
  taskpawl allow agent:claude
  taskpawl allow --list
  taskpawl allow --remove --port 5432")]
#[command(group(ArgGroup::new("instead").args(["list", "remove", "proposed"])))]
pub(crate) struct Args {
    /// A kit in place of single grants: kit:ssh-agent, kit:gpg-agent, kit:docker or kit:git-push for named tasks; agent:NAME, the hosts and settings of a coding agent, for its calls alone
    #[arg(value_name = "kit:NAME", conflicts_with_all = [
        "host", "port", "read", "write", "socket", "env", "plan", "all_plans", "list", "proposed", "approval",
    ])]
    kit: Option<AnyKit>,
    /// With a kit: the tasks that have it, as their calls are defined now
    #[arg(long, value_name = "ID", requires = "kit")]
    task: Vec<String>,
    /// Let programs reach this host on ports 443 and 80, or on the port given
    #[arg(long, value_name = "NAME[:PORT]", value_parser = sandbox::granted_host)]
    host: Vec<HostGrant>,
    /// Let programs connect to this port of localhost
    #[arg(long, value_name = "PORT", value_parser = sandbox::granted_port)]
    port: Vec<u16>,
    /// Let programs read this file or directory
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Let programs write to this file or directory
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Let programs connect to this unix socket of another program
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Let programs see this variable
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// For the calls of this plan [default: that of the last run, or the only one]
    #[arg(long, value_name = "NAME", conflicts_with = "all_plans")]
    plan: Option<String>,
    /// For the calls of every plan of the project
    #[arg(long)]
    all_plans: bool,
    /// For calls that models add as well
    #[arg(long)]
    agents: bool,
    /// Only show which grants are remembered, with their last use
    #[arg(long)]
    list: bool,
    /// Forget the grants and approvals that are named
    #[arg(long)]
    remove: bool,
    /// With --remove: a remembered approval, by the first 8 characters of its hash or more
    #[arg(long, value_name = "HASH", requires = "remove", value_parser = approval_hash)]
    approval: Vec<String>,
    /// Show what the project proposes (`[sandbox] wants` of taskpawl.toml), and ask for each
    #[arg(long)]
    proposed: bool,
}

/// A kit, or that of a coding agent.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AnyKit {
    Kit(Kit),
    Agent(String),
}

impl FromStr for AnyKit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("agent:").filter(|name| !name.is_empty()) {
            Some(name) => Ok(Self::Agent(name.to_owned())),
            None => text.parse().map(Self::Kit).map_err(|error: String| format!("{error}, or agent:NAME")),
        }
    }
}

/// Lists, gives or removes remembered grants.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    if args.list {
        return list::run(app);
    }
    if let Some(AnyKit::Agent(name)) = &args.kit {
        if !args.task.is_empty() {
            return Err(CliError::usage("the kit of an agent is for all of its calls, not for named tasks"));
        }
        return if args.remove { agent::remove(app, name) } else { agent::give(app, name, args.agents) };
    }
    if let Some(AnyKit::Kit(kit)) = args.kit {
        return if args.remove {
            kit::remove(app, kit)
        } else {
            kit::give(app, kit, &args.task, args.agents)
        };
    }
    let named = named(app, args)?;
    match (args.remove, args.proposed, named.is_empty()) {
        (true, _, true) if args.approval.is_empty() => Err(CliError::usage_with(
            "`--remove` removes grants that are named, and none is",
            "`--list` shows them",
        )),
        (true, ..) => remove(app, &named, &args.approval),
        (false, true, _) => proposed(app, args),
        (false, false, true) => refused(app, args),
        (false, false, false) => {
            give(app, args, &named, asked::of_last_run(app.reader()?.manager())?.as_ref())
        }
    }
}

/// Returns the grants that the options name.
fn named(app: &App, args: &Args) -> Result<Vec<NamedGrant>, CliError> {
    let paths = |flag, paths: &[PathBuf]| sandbox::places(flag, app.environment(), paths);
    let hosts = args.host.iter().cloned().map(NamedGrant::Host);
    let mut grants: Vec<NamedGrant> = hosts.chain(args.port.iter().copied().map(NamedGrant::Port)).collect();
    grants.extend(paths("--read", &args.read)?.into_iter().map(NamedGrant::Read));
    grants.extend(paths("--write", &args.write)?.into_iter().map(NamedGrant::Write));
    let sockets = paths("--socket", &args.socket)?;
    if let Some(other) = sockets.iter().find(|path| !is_socket(path)) {
        let path = clean(&other.display().to_string());
        return Err(CliError::usage_with(
            format!("`--socket` names `{path}`, which is no socket"),
            "`--read` and `--write` are for files and directories",
        ));
    }
    grants.extend(sockets.into_iter().map(NamedGrant::Socket));
    for name in &args.env {
        let grant = format!("env:{name}").parse();
        grants.push(grant.map_err(|_| {
            CliError::usage(format!("`--env {}` is not the name of a variable", clean(name)))
        })?);
    }
    Ok(grants)
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Remembers grants, after the caller proved to be a person.
fn give(app: &App, args: &Args, grants: &[NamedGrant], last: Option<&LastRun>) -> Result<ExitCode, CliError> {
    person::refuse_other_callers(app, BY)?;
    let new = grants.iter().map(|grant| Ok((grant.clone(), plan_of(app, args, grant, last)?)));
    let new = new.collect::<Result<Vec<_>, CliError>>()?;
    person::refuse_without_person(app, BY)?;
    for power in [Power::Remembered].into_iter().chain(grants.iter().filter_map(crate::grants::power_of)) {
        person::refuse_never(app, power)?;
    }
    let (project, now) = (Project::of(app)?, app.source()?.now());
    Grants::change(app, |own| {
        for (grant, plan) in &new {
            let entry = Entry::new(project.clone(), grant.clone(), plan.clone(), args.agents, now);
            own.retain(|known| !known.is_same(&entry));
            own.push(entry);
        }
    })?;
    for (grant, plan) in &new {
        let whom = if args.agents { ", also calls of models" } else { "" };
        audit::record(app, Action::Grant, &format!("{grant} {}{whom}", holds_for(plan.as_deref())))?;
        app.out().remark(&format!("remembered: {grant}, {}", holds_for(plan.as_deref())));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether a person wants to give a kit, which was shown, and may do so.
fn may_give(app: &App, question: &str) -> Result<bool, CliError> {
    let answer = choose::answer(&question.to_owned().into());
    if !answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")) {
        app.out().remark("nothing was granted");
        return Ok(false);
    }
    person::refuse_without_person(app, BY)?;
    for power in [Power::Remembered, Power::Kits] {
        person::refuse_never(app, power)?;
    }
    Ok(true)
}

/// Returns the plan that a grant holds for; `None` for all plans. It is the plan that asked for it in the last run, else that of the last
/// run, else the only one.
fn plan_of(
    app: &App,
    args: &Args,
    grant: &NamedGrant,
    last: Option<&LastRun>,
) -> Result<Option<String>, CliError> {
    if args.all_plans || args.plan.is_some() {
        return Ok(args.plan.clone());
    }
    let (asked, of_run) = last.map(|last| (&last.asked[..], Some(&last.plans))).unwrap_or_default();
    let learned = asked.iter().filter(|asked| asked.grant.covers(grant) || grant.covers(&asked.grant));
    let learned: BTreeSet<String> = learned.flat_map(|asked| asked.plans.iter().cloned()).collect();
    if let Some(only) = [Some(&learned), of_run].into_iter().flatten().find_map(only_one) {
        return Ok(Some(only.clone()));
    }
    let plans = app.reader()?.manager().read(|view| Ok(view.plans()?))?;
    match &plans[..] {
        [] => Ok(Some(String::new())),
        [only] => Ok(Some(only.name.clone())),
        _ => Err(CliError::usage_with(
            format!("it is not clear which plan {grant} is for"),
            "name it with `--plan NAME`, or add `--all-plans`",
        )),
    }
}

fn only_one(plans: &BTreeSet<String>) -> Option<&String> {
    plans.first().filter(|_| plans.len() == 1)
}

fn holds_for(plan: Option<&str>) -> String {
    format!("for {}", plan_text(plan))
}

fn approval_hash(text: &str) -> Result<String, &'static str> {
    let is_hash = (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_ascii_lowercase()).ok_or("a hash has 8 to 64 hexadecimal digits")
}

fn remove(app: &App, named: &[NamedGrant], approvals: &[String]) -> Result<ExitCode, CliError> {
    // Less access needs no PIN.
    person::refuse_other_callers(app, BY)?;
    let mut count = 0;
    Grants::change(app, |own| {
        let before = own.len();
        own.retain(|entry| !named.contains(&entry.grant));
        count = before - own.len();
    })?;
    let mut hashes = Vec::new();
    if !approvals.is_empty() {
        Grants::change_approvals(app, |own| {
            let is_named = |own: &Approval| approvals.iter().any(|hash| own.work.starts_with(hash));
            hashes =
                own.iter().filter(|own| is_named(own)).map(|own| format!("approval {}", own.work)).collect();
            own.retain(|own| !is_named(own));
        })?;
    }
    count += hashes.len();
    if count > 0 {
        let texts: Vec<String> = named.iter().map(ToString::to_string).chain(hashes).collect();
        audit::record(app, Action::Revoke, &texts.join(", "))?;
    }
    app.out().remark(if count == 0 { "none of it was remembered" } else { "it is no longer remembered" });
    Ok(ExitCode::SUCCESS)
}

fn refused(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let out = app.out();
    let Some(mut last) = asked::of_last_run(app.reader()?.manager())? else {
        out.remark("there was no run");
        return Ok(ExitCode::SUCCESS);
    };
    let LastRun { id, started_at, asked, addresses, .. } = &mut last;
    let known = Grants::of_project(app)?;
    asked.retain(|asked| !known.iter().any(|entry| entry.grant.covers(&asked.grant)));
    facts::add_places(asked, &app.place()?.root, *started_at);
    if out.is_json {
        return out.data(&serde_json::json!({"run": id, "asked": asked, "addresses": addresses}));
    }
    out.print(choose::addresses_text(addresses))?;
    if asked.is_empty() {
        out.remark("the last run was refused nothing that can be granted");
        return Ok(ExitCode::SUCCESS);
    }
    let (named, alone): (Vec<Asked>, Vec<Asked>) =
        asked.iter().cloned().partition(|asked| asked.place.is_some());
    out.print(choose::text(&named, &alone))?;
    if person::refuse_other_callers(app, BY).is_err() {
        out.remark("a person grants it at a terminal: `taskpawl allow`");
        return Ok(ExitCode::SUCCESS);
    }
    let grants = choose::chosen(&named, &alone);
    if grants.is_empty() {
        out.remark("nothing was granted");
        return Ok(ExitCode::SUCCESS);
    }
    give(app, args, &grants, Some(&last))
}

/// Shows what the project proposes, and remembers what a person grants of it.
fn proposed(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let open = grants::open_proposals(app)?;
    let out = app.out();
    if out.is_json {
        return out.data(&open);
    }
    if open.is_empty() {
        out.remark("the project proposes nothing that is not granted");
        return Ok(ExitCode::SUCCESS);
    }
    person::refuse_other_callers(app, BY)?;
    let mut grants = Vec::new();
    for grant in open {
        let question =
            Shown::from(format!("Let programs of this project have {}? [y/N] ", choose::shown(&grant)));
        if choose::answer(&question)
            .is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
        {
            grants.push(grant);
        }
    }
    if grants.is_empty() {
        out.remark("nothing was granted");
        return Ok(ExitCode::SUCCESS);
    }
    give(app, args, &grants, None)
}
