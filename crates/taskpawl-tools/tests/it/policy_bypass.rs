//! Bypass cases: lines that run `git push` in disguise, and harmless lines that only look like it.

use serde_json::{Map, Value, json};
use taskpawl_tools::{CallOrigin, Decision, LayerKind, Policy, PolicyCall};

/// One expected decision and one command line per row.
const CASES: &str = include_str!("policy/bypass-cases.txt");

fn authorize(policy: &Policy, tool: &str, with: Value) -> (Decision, Decision) {
    let Value::Object(args) = with else { panic!("arguments are an object") };
    authorize_args(policy, tool, &args)
}

/// Returns the decision of a run, and that of `policy check`.
fn authorize_args(policy: &Policy, tool: &str, args: &Map<String, Value>) -> (Decision, Decision) {
    let call = PolicyCall { tool, args, origin: CallOrigin::Plan, sandbox: None };
    (policy.authorize(&call).0, policy.explain(&call).decision)
}

fn cases() -> impl Iterator<Item = (Decision, String)> {
    CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let (decision, command) = line.split_once(' ').unwrap();
        (Decision::from_word(decision).unwrap(), command.replace('⏎', "\n").replace('␍', "\r"))
    })
}

#[test]
fn bypass_cases_are_denied_and_harmless_lines_are_allowed() {
    for decision in [Decision::Ask, Decision::Deny] {
        let text = format!("[[rules]]\ndecision = '{decision}'\nargv = 'git push'\n");
        let policy = Policy::parse(&[(LayerKind::User, &text)]).unwrap();
        let wrong: Vec<String> = cases()
            .filter_map(|(expected, line)| {
                let expected = if expected == Decision::Allow { expected } else { decision };
                let decided = authorize(&policy, "shell", json!({ "command": line }));
                (decided != (expected, expected)).then(|| format!("{decided:?} of {line:?}"))
            })
            .collect();
        assert!(wrong.is_empty(), "{} lines: {}", wrong.len(), wrong.join("\n"));
    }
    assert!(cases().count() > 250);
}

/// Runs the same lines as an argument of a shell, and as its input.
#[test]
fn a_nested_shell_does_not_bypass_a_rule() {
    let policy =
        Policy::parse(&[(LayerKind::User, "[[rules]]\ndecision = 'deny'\nargv = 'git push'\n")]).unwrap();
    let denied = (Decision::Deny, Decision::Deny);
    for (_, line) in cases().filter(|(expected, _)| *expected == Decision::Deny) {
        assert_eq!(authorize(&policy, "exec", json!({"argv": ["bash", "-c", line]})), denied, "{line}");
        assert_eq!(
            authorize(&policy, "exec", json!({"argv": ["timeout", "9", "sh", "-c", line]})),
            denied,
            "{line}"
        );
        assert_eq!(authorize(&policy, "exec", json!({"argv": ["sh"], "stdin": line})), denied, "{line}");
    }
}

#[test]
fn variables_of_a_call_are_handled_like_those_of_its_line() {
    let policy =
        Policy::parse(&[(LayerKind::User, "[[rules]]\ndecision = 'deny'\nargv = 'git push'\n")]).unwrap();
    let with = |env: Value| {
        let by_argv = authorize(&policy, "exec", json!({"argv": ["git", "x"], "env": env}));
        assert_eq!(authorize(&policy, "shell", json!({"command": "git x", "env": env})), by_argv);
        by_argv.0
    };
    let config = |key: &str, value: &str| {
        with(json!({"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": value}))
    };
    assert_eq!(config("alias.x", "push"), Decision::Deny);
    assert_eq!(config("alias.x", "!git push"), Decision::Deny);
    assert_eq!(config("core.sshCommand", "git push; ssh"), Decision::Deny);
    assert_eq!(config("safe.directory", "push"), Decision::Allow);
    assert_eq!(with(json!({"GIT_CONFIG_PARAMETERS": "'alias.x'='push'"})), Decision::Deny);
    assert_eq!(with(json!({"GIT_EDITOR": "git push"})), Decision::Deny);
    assert_eq!(with(json!({"BASH_ENV": "$(git push)"})), Decision::Deny);
    assert_eq!(with(json!({"GIT_EDITOR": "true", "LANG": "C"})), Decision::Allow);
    for name in ["BASH_ENV", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "HOME", "XDG_CONFIG_HOME"] {
        assert_eq!(with(json!({name: "./x"})), Decision::Deny, "{name}");
        assert_eq!(with(json!({name: "/dev/null"})), Decision::Allow, "{name}");
    }
    assert_eq!(with(json!({"ENV": "./x", "IFS": " "})), Decision::Allow);
    let on_line =
        |command: &str, env: Value| authorize(&policy, "shell", json!({"command": command, "env": env})).0;
    let argv = json!({"argv": ["bash", "-c", "ls"], "env": {"BASH_FUNC_ls%%": "() { git push; }"}});
    assert_eq!(authorize(&policy, "exec", argv).0, Decision::Deny);
    assert_eq!(on_line("ls", json!({"BASH_FUNC_ls%%": "() { cat x; }"})), Decision::Allow);
    assert_eq!(on_line("sh -ic true", json!({"ENV": "./x"})), Decision::Deny);
    assert_eq!(on_line("ls", json!({"HOME": "./x"})), Decision::Allow);
    assert_eq!(on_line("$X/tool", json!({"X": "git push "})), Decision::Deny);
    assert_eq!(on_line("$X/tool", json!({"X": "/opt/x"})), Decision::Allow);
}
