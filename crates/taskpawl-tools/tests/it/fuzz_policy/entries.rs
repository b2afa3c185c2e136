//! Entry points for fuzzing policies and calls under a policy.

use serde_json::{Map, Value, json};
use taskpawl_tools::{CallOrigin, Decision, LayerKind, Policy, PolicyCall};

const POLICY: &str = "[[rules]]\ndecision = \"allow\"\nargv = [\"git\", \"status\"]\n[[rules]]\ndecision = \"deny\"\nargv = [\"rm\"]\n[origins]\nagent = \"ask\"\n";

pub(crate) fn file(text: &str) -> bool {
    let all = [LayerKind::Ceiling, LayerKind::User, LayerKind::Project];
    let read: Vec<_> = all.into_iter().map(|kind| Policy::parse(&[(kind, text)])).collect();
    for policy in read.iter().flatten() {
        authorize(policy, &json!({"command": "git status; rm x"}));
    }
    if let [_, Ok(_), Ok(_)] = &read[..] {
        // A project beside the user's own file restricts and never allows more.
        let (args, origin) = (args(&json!({"argv": ["git", "status"]})), CallOrigin::Agent);
        let call = PolicyCall { tool: "exec", args: &args, origin, sandbox: None };
        let both = Policy::parse(&[(LayerKind::User, POLICY), (LayerKind::Project, text)])
            .map(|policy| policy.authorize(&call).0);
        let alone = Policy::parse(&[(LayerKind::User, POLICY)]).map(|policy| policy.authorize(&call).0);
        assert!(both.is_err() || both.ok() >= alone.ok(), "a project allows more");
    }
    read.iter().any(Result::is_ok)
}

fn args(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn authorize(policy: &Policy, value: &Value) -> Decision {
    let args = args(value);
    let call = PolicyCall { tool: "shell", args: &args, origin: CallOrigin::Agent, sandbox: None };
    let (decision, _) = policy.authorize(&call);
    assert_eq!(policy.explain(&call).decision, decision, "the explanation has another decision");
    decision
}

pub(crate) fn command(text: &str) -> bool {
    let policy = Policy::parse(&[(LayerKind::User, POLICY)]).unwrap();
    let decision = authorize(&policy, &json!({ "command": text }));
    // A line is only allowed if every simple command in it is git.
    let is_suspicious =
        text.contains("rm") && text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "rm");
    // A shell joins what quotes and escapes divide: `g''it` is git.
    let joined = text.replace("\\\n", "").replace(['\'', '"', '\\'], "");
    assert!(decision != Decision::Allow || joined.contains("git"), "{text:?}");
    decision == Decision::Allow || is_suspicious
}
