//! Hostile input at what reads a policy, and at what it judges: refused or read, never a panic, and stricter is never laxer.

use serde_json::{Map, Value, json};
use taskpawl_fuzz::Target;
use taskpawl_tools::{CallOrigin, Decision, LayerKind, Policy, PolicyCall};

const FILE: Target<'_> = Target {
    name: "policies",
    corpus: &[
        "[[rules]]\ndecision = \"allow\"\ntool = \"exec\"\nargv = [\"git\", \"status\"]\nmatch = [\"git status -s\"]\nnotMatch = [\"git push\"]\n",
        "[[rules]]\ndecision = \"deny\"\nargv = [\"rm\"]\nreason = \"no\"\norigins = [\"agent\", \"mcp\"]\n[[rules]]\ndecision = \"ask\"\ntool = \"write_file\"\n",
        "[origins]\nagent = \"sandboxed\"\nmcp = \"deny\"\n",
        "rules = [{ decision = \"allow\", tool = \"http_request\", sandbox = { net = true, read = [\"/x\"], write = [\"y\"] } }]\n",
    ],
    words: &[
        "[[rules]]\n",
        "[origins]\n",
        "[sandbox]\n",
        "decision",
        "allow",
        "ask",
        "deny",
        "sandboxed",
        "tool",
        "argv",
        "match",
        "notMatch",
        "origins",
        "agent",
        "mcp",
        "plan",
        "cli",
        "reason",
        "env",
        "sandbox",
        "net",
        "read",
        "write",
        " = ",
        "\"",
        "\"*\"",
        "[\"",
        "\"]",
        "exec",
        "shell",
        "git",
        "rm -rf /",
        "{ ",
        " }",
        "true",
        "*",
        "github/",
    ],
};

const COMMAND: Target<'_> = Target {
    name: "commands under a policy",
    corpus: &[
        "git status -s",
        "git status && rm -rf x",
        "A=1 git status",
        "$(rm x)",
        "git status; `rm x`",
        "sh -c 'rm x'",
        "env -i rm x",
        "if true; then rm x; fi",
        "git status <<EOF\nrm\nEOF",
        "git \"status\" 'a;rm b'",
        "xargs rm",
        "{ rm x; }",
        "git status | tee >(rm x)",
        "r\\m x",
        "git status #; rm",
    ],
    words: &[
        "git",
        "status",
        "rm",
        "&&",
        "||",
        ";",
        "|",
        "&",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "\n",
        "<<EOF\n",
        ">(",
        "sh -c ",
        "env ",
        "A=1 ",
        "exec ",
        "$'\\x72m'",
        "{ ",
        "; }",
        "if ",
        "then ",
        "fi",
        "for ",
        "function ",
        "é",
    ],
};

const POLICY: &str = "[[rules]]\ndecision = \"allow\"\nargv = [\"git\", \"status\"]\n[[rules]]\ndecision = \"deny\"\nargv = [\"rm\"]\n[origins]\nagent = \"ask\"\n";

fn file(text: &str) -> bool {
    let all = [LayerKind::Ceiling, LayerKind::User, LayerKind::Project];
    let read: Vec<_> = all.into_iter().map(|kind| Policy::parse(&[(kind, text)])).collect();
    for policy in read.iter().flatten() {
        judge(policy, &json!({"command": "git status; rm x"}));
    }
    if let [_, Ok(_), Ok(_)] = &read[..] {
        // What a project says beside the user's own file takes away and grants nothing.
        let (args, origin) = (args(&json!({"argv": ["git", "status"]})), CallOrigin::Agent);
        let call = PolicyCall { tool: "exec", args: &args, origin, sandbox: None };
        let both = Policy::parse(&[(LayerKind::User, POLICY), (LayerKind::Project, text)])
            .map(|policy| policy.judge(&call).0);
        let alone = Policy::parse(&[(LayerKind::User, POLICY)]).map(|policy| policy.judge(&call).0);
        assert!(both.is_err() || both.ok() >= alone.ok(), "a project grants");
    }
    read.iter().any(Result::is_ok)
}

fn args(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn judge(policy: &Policy, value: &Value) -> Decision {
    let args = args(value);
    let call = PolicyCall { tool: "shell", args: &args, origin: CallOrigin::Agent, sandbox: None };
    let (decision, _) = policy.judge(&call);
    assert_eq!(policy.explain(&call).decision, decision, "the explanation is about another decision");
    decision
}

fn command(text: &str) -> bool {
    let policy = Policy::parse(&[(LayerKind::User, POLICY)]).unwrap();
    let decision = judge(&policy, &json!({ "command": text }));
    // Only what is git alone, in every simple command, is allowed.
    let is_suspicious =
        text.contains("rm") && text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "rm");
    assert!(decision != Decision::Allow || text.contains("git"), "{text:?}");
    decision == Decision::Allow || is_suspicious
}

#[test]
fn the_corpus_is_read_or_refused() {
    FILE.corpus(file);
    COMMAND.corpus(command);
}

#[test]
fn hostile_policies_panic_nothing() {
    FILE.fuzz_some(50_000, file);
}

#[test]
fn hostile_commands_are_judged() {
    COMMAND.fuzz(command);
}
