//! `approve --always`: an approval that is remembered for calls which do the same work.

use std::process::ExitCode;

use taskpawl::model::rules::asks_by_itself;
use taskpawl::model::task::{ApprovalRequest, AskedCall, CallSpec};
use taskpawl::model::value::used_variables;
use taskpawl::tools::{CallOrigin, PolicyCall, Power, SandboxNeed};
use taskpawl::{Approving, SandboxMode, call_origin};

use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::print;
use crate::error::CliError;
use crate::grants::Grants;
use crate::person;
use crate::remembered::Approval;
use crate::text::clean;

/// The calls that a remembered approval holds for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) agents: bool,
    pub(super) all_plans: bool,
}

/// Approves a task that the policy asks about, and remembers the approval for calls that do the same work.
///
/// The caller has proved to be a person.
pub(super) fn run(app: &App, id: &str, hash: Option<&str>, extent: Extent) -> Result<ExitCode, CliError> {
    for power in [Power::Remembered, Power::Approvals] {
        person::refuse_never(app, power)?;
    }
    let manager = app.manager()?;
    let Some(request) = manager.approval_request(id)? else {
        // The store refuses it with the reason.
        let approved = manager.approve(&[id.to_owned()], Approving::default())?;
        return print::tasks(app, &approved);
    };
    if let Some(why) = obstacle(app, &request, extent)? {
        return Err(CliError::usage_with(
            format!("this approval cannot be remembered: {why}"),
            "leave `--always` out to approve it once",
        ));
    }
    let plan = (!extent.all_plans).then(|| request.plan.clone().unwrap_or_default());
    let calls = request.calls.iter();
    let approvals = calls.map(|call| Approval::of(app, call, plan.clone(), extent.agents));
    let approvals = approvals.collect::<Result<Vec<_>, _>>()?;
    // The hash makes the store refuse work that has changed since it was examined here.
    let other = hash.filter(|hash| !request.hash.starts_with(hash));
    let hash = other.map_or_else(|| request.hash.clone(), str::to_owned);
    let approving = Approving { answer: None, args: None, hash: Some(hash) };
    let approved = manager.approve(&[request.task.to_string()], approving)?;
    audit::record_tasks(app, Action::Approve, &approved)?;
    remember(app, &approvals)?;
    print::tasks(app, &approved)
}

fn remember(app: &App, approvals: &[Approval]) -> Result<(), CliError> {
    Grants::change_approvals(app, |own| {
        for approval in approvals {
            own.retain(|known| known.rule() != approval.rule());
            own.push(approval.clone());
        }
    })?;
    for approval in approvals {
        let about = format!("always {} `{}`, {}", approval.tool, approval.call, approval.holds_for());
        audit::record(app, Action::Grant, &format!("approval {}: {about}", approval.work))?;
        app.out().remark(&format!("remembered: {about}"));
    }
    Ok(())
}

/// Returns the reason why a question cannot be answered once for all.
fn obstacle(app: &App, request: &ApprovalRequest, extent: Extent) -> Result<Option<String>, CliError> {
    if app.config()?.sandbox().mode == SandboxMode::Off {
        return Ok(Some("the sandbox is off".to_owned()));
    }
    if request.ask.is_some() || request.why.is_none() {
        return Ok(Some("the author of the plan asks each time".to_owned()));
    }
    if request.items.is_some() {
        return Ok(Some("it is about a list, whose calls are known only when it is opened".to_owned()));
    }
    if request.calls.is_empty() {
        return Ok(Some("it is not about calls".to_owned()));
    }
    for call in &request.calls {
        if let Some(why) = obstacle_of_call(app, call, extent)? {
            return Ok(Some(format!("call `{}`: {why}", clean(call.call.as_str()))));
        }
    }
    Ok(None)
}

fn obstacle_of_call(app: &App, call: &AskedCall, extent: Extent) -> Result<Option<String>, CliError> {
    if !call.unknown.is_empty() {
        return Ok(Some(format!("not known yet: {}", clean(&call.unknown.join(", ")))));
    }
    if !used_variables(&call.args).is_empty() {
        return Ok(Some("it uses variables of the run".to_owned()));
    }
    if !call.trusts.is_empty() {
        return Ok(Some("approving it also trusts later values of other tasks".to_owned()));
    }
    let is_of_model = call.origin.is_of_model() || call.untrusted.iter().any(|value| !value.is_data);
    if is_of_model && !extent.agents {
        return Ok(Some(
            "a model wrote it or its values; `--agents` remembers it for models, too".to_owned(),
        ));
    }
    let sandbox = call.sandbox.clone();
    let need = sandbox.map(|asked| SandboxNeed { net: asked.net, read: asked.read, write: asked.write });
    let mut origins: Vec<CallOrigin> = vec![call_origin(call.origin)];
    origins.extend(call.untrusted.iter().map(|value| call_origin(value.origin)));
    for origin in origins {
        let proposed = PolicyCall { tool: &call.tool, args: &call.args, origin, sandbox: need.as_ref() };
        if let Some(why) = app.policy()?.why_not_remembered(&proposed) {
            return Ok(Some(why.to_owned()));
        }
    }
    // The expressions of the author decide about unquoted values, which the evaluated arguments no longer show.
    let spec = app.manager()?.read(|view| {
        let Some(key) = view.key(call.task.as_str())? else { return Ok(None) };
        Ok(view.calls(key)?.into_iter().find(|known| known.id == call.call).map(|known| known.spec))
    })?;
    let spec = spec.map_or_else(CallSpec::default, |spec| (*spec).clone());
    Ok(asks_by_itself(call.origin, &spec, &call.untrusted))
}
