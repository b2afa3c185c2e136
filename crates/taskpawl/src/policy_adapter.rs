//! The policy adapter: connects the policy of `taskpawl-tools` to the policy hook of the model.
//!
//! The two crates do not know each other, so the conversions between their types are here.

use taskpawl_model::task::{AGENT_TOOL, MERGE_TOOL, Origin, SandboxRequest};
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};
use taskpawl_model::value::Map;
use taskpawl_tools::{CallOrigin, Decision, Policy, PolicyCall, Power, Ruling, SandboxNeed};

/// Decides about calls by a policy before they start.
#[derive(Debug)]
pub(crate) struct PolicyAdapter(pub(crate) Policy);

impl PolicyHook for PolicyAdapter {
    fn authorize(&self, call: &ProposedCall<'_>) -> PolicyDecision {
        // The check of a merge is a command, and an agent may work on its conflicts: rules for both hold for it, too.
        inner_calls(call).iter().fold(self.decide(call), |decision, (tool, args)| {
            let ProposedCall { origin, sandbox, plan, .. } = call;
            let inner = ProposedCall { tool, args, origin: *origin, sandbox: sandbox.clone(), plan: *plan };
            stricter(decision, self.decide(&inner))
        })
    }

    fn version(&self) -> &str {
        self.0.version()
    }

    fn trusts_inputs(&self) -> bool {
        self.0.ruling(Power::TrustInputs).ruling != Ruling::Never
    }

    fn is_repeatable(&self, tool: &str, args: &Map) -> bool {
        self.0.is_repeatable(tool, args)
    }
}

impl PolicyAdapter {
    fn decide(&self, call: &ProposedCall<'_>) -> PolicyDecision {
        let sandbox = call.sandbox.as_ref().map(need);
        let decided = self.0.authorize_work(
            &PolicyCall {
                tool: call.tool,
                args: call.args,
                origin: call_origin(call.origin),
                sandbox: sandbox.as_ref(),
            },
            call.plan.unwrap_or_default(),
            || call.work_hash(),
        );
        match decided {
            (Decision::Allow, _) => PolicyDecision::Allow,
            (Decision::Ask, why) => PolicyDecision::Ask { why: why.unwrap_or_default() },
            (Decision::Deny, why) => PolicyDecision::Deny { why: why.unwrap_or_default() },
        }
    }
}

/// Returns the tools that a merge uses, with their arguments.
fn inner_calls(call: &ProposedCall<'_>) -> Vec<(&'static str, Map)> {
    let argument = |name: &str| call.args.get(name).filter(|_| call.tool == MERGE_TOOL);
    let check =
        argument("check").map(|check| ("shell", Map::from_iter([("command".to_owned(), check.clone())])));
    let agent = argument("onConflict").and_then(|way| {
        let named = way.get("agent").map(|name| Map::from_iter([("using".to_owned(), name.clone())]));
        named.or_else(|| (way == "agent").then(Map::new))
    });
    check.into_iter().chain(agent.map(|args| (AGENT_TOOL, args))).collect()
}

fn stricter(one: PolicyDecision, other: PolicyDecision) -> PolicyDecision {
    let rank = |decision: &PolicyDecision| match decision {
        PolicyDecision::Allow => 0,
        PolicyDecision::Ask { .. } => 1,
        PolicyDecision::Deny { .. } => 2,
    };
    if rank(&other) > rank(&one) { other } else { one }
}

pub(crate) fn need(request: &SandboxRequest) -> SandboxNeed {
    let SandboxRequest { net, read, write } = request.clone();
    SandboxNeed { net, read, write }
}

/// Returns an origin as policies have it.
pub fn call_origin(origin: Origin) -> CallOrigin {
    match origin {
        Origin::Cli => CallOrigin::Cli,
        Origin::Library => CallOrigin::Library,
        Origin::Plan => CallOrigin::Plan,
        Origin::Mcp => CallOrigin::Mcp,
        Origin::Agent => CallOrigin::Agent,
    }
}
