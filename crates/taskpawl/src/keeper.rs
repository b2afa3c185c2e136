//! The policy adapter: connects the policy of `taskpawl-tools` to the policy hook of the model.
//!
//! The two crates do not know each other, so the conversions between their types are here.

use taskpawl_model::{Gatekeeper, Judgement, Map, Origin, Proposed, SandboxRequest};
use taskpawl_tools::{CallOrigin, Decision, Policy, PolicyCall, SandboxNeed};

/// Decides about calls by a policy before they start.
#[derive(Debug)]
pub(crate) struct PolicyKeeper(pub(crate) Policy);

impl Gatekeeper for PolicyKeeper {
    fn judge(&self, call: &Proposed<'_>) -> Judgement {
        let sandbox = call.sandbox.as_ref().map(need);
        let judged = self.0.judge(&PolicyCall {
            tool: call.tool,
            args: call.args,
            origin: origin(call.origin),
            sandbox: sandbox.as_ref(),
        });
        match judged {
            (Decision::Allow, _) => Judgement::Allow,
            (Decision::Ask, why) => Judgement::Ask { why: why.unwrap_or_default() },
            (Decision::Deny, why) => Judgement::Deny { why: why.unwrap_or_default() },
        }
    }

    fn version(&self) -> &str {
        self.0.version()
    }

    fn is_repeatable(&self, tool: &str, args: &Map) -> bool {
        self.0.is_repeatable(tool, args)
    }
}

pub(crate) fn need(request: &SandboxRequest) -> SandboxNeed {
    let SandboxRequest { net, read, write } = request.clone();
    SandboxNeed { net, read, write }
}

pub(crate) fn origin(origin: Origin) -> CallOrigin {
    match origin {
        Origin::Cli => CallOrigin::Cli,
        Origin::Library => CallOrigin::Library,
        Origin::Plan => CallOrigin::Plan,
        Origin::Mcp => CallOrigin::Mcp,
        Origin::Agent => CallOrigin::Agent,
    }
}
