//! Allow rules and the start options of a call: a table of tools, fields, and keys of rules.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use taskpawl_tools::{
    CallContext, CallOrigin, CommandTool, Decision, LayerKind, NearRule, Policy, PolicyCall, Registry, Tool,
    ToolError, ToolSpec,
};

/// Words of the allow rule.
const WORDS: &str = "cargo test";

/// Tool of an MCP server: the policy knows its name and arguments, but no program.
#[derive(Debug)]
struct Foreign(ToolSpec);

#[async_trait]
impl Tool for Foreign {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: CallContext, _: Value) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

fn described(name: &str, more: &Value) -> Arc<dyn Tool> {
    let mut description = json!({
        "description": "Tests.",
        "argv": ["cargo", "test"],
        "params": {"value": {"description": "What.", "required": false}},
    });
    description.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Arc::new(CommandTool::new(name, &description).unwrap())
}

fn tools() -> Registry {
    let mut registry = Registry::builtin();
    for (name, more) in [
        ("plain", json!({"params": {}})),
        ("with_stdin", json!({"stdin": "{value}"})),
        ("with_cwd", json!({"cwd": "{value}"})),
        ("with_env", json!({"env": {"RUST_LOG": "{value}"}})),
        ("with_secret", json!({"env": {"RUST_LOG": "${secret:LOG}"}, "params": {}})),
    ] {
        registry.register(described(name, &more)).unwrap();
    }
    let schema = json!({"type": "object"});
    registry.register(Arc::new(Foreign(ToolSpec::new("server/test", "Tests.", schema)))).unwrap();
    registry
}

/// Call with one field, the same call without it, the key that a rule needs for it, and the key as explanations show
/// it.
struct Row {
    tool: &'static str,
    args: Value,
    without: Value,
    key: &'static str,
    /// Keys that the policy suggests to add; empty if no key allows the call.
    add: &'static [&'static str],
}

const STDIN: &[&str] = &["stdin = \"any\""];
const CWD: &[&str] = &["cwd = [\".\", \"crates/a\"]"];
const ENV: &[&str] = &["env = [\"RUST_LOG\"]"];
const STDIN_KEY: &str = "stdin = 'any'";
const CWD_KEY: &str = "cwd = ['.', 'crates/*']";
const ENV_KEY: &str = "env = ['RUST_LOG']";

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let exec = |more: Value| with(json!({"argv": ["cargo", "test"]}), &more);
    let shell = |line: &str, more: Value| with(json!({"command": line}), &more);
    let (bare, line) = (exec(json!({})), shell(WORDS, json!({})));
    let row = |tool, args, without: &Value, key, add| Row { tool, args, without: without.clone(), key, add };
    vec![
        row("exec", exec(json!({"stdin": "x"})), &bare, STDIN_KEY, STDIN),
        row("exec", exec(json!({"stdin": "${{ context.x }}"})), &bare, STDIN_KEY, STDIN),
        row("exec", exec(json!({"stdin": 1})), &bare, STDIN_KEY, STDIN),
        row("exec", exec(json!({"cwd": "crates/a"})), &bare, CWD_KEY, CWD),
        row("exec", exec(json!({"cwd": "/project/./crates/a/"})), &bare, CWD_KEY, CWD),
        row("exec", exec(json!({"env": {"RUST_LOG": "x"}})), &bare, ENV_KEY, ENV),
        row("shell", shell(WORDS, json!({"stdin": "x"})), &line, STDIN_KEY, STDIN),
        row("shell", shell("cargo test | cargo test", json!({})), &line, STDIN_KEY, STDIN),
        row("shell", shell("cargo test |\n\n cargo test", json!({})), &line, STDIN_KEY, STDIN),
        row("shell", shell(WORDS, json!({"cwd": "crates/a"})), &line, CWD_KEY, CWD),
        row("shell", shell("cd crates/a && cargo test", json!({})), &line, CWD_KEY, CWD),
        row("shell", shell("cd -- './crates' && cd a && cargo test", json!({})), &line, CWD_KEY, CWD),
        row("shell", shell("cd a && cargo test", json!({"cwd": "crates"})), &line, CWD_KEY, CWD),
        row("shell", shell("cd crates/a; cargo test", json!({})), &line, CWD_KEY, CWD),
        row("shell", shell("cd crates/a\ncargo test", json!({})), &line, CWD_KEY, CWD),
        row("shell", shell("cd crates/a || cargo test", json!({})), &line, CWD_KEY, CWD),
        row("shell", shell("cargo test && cd crates/a && cargo test", json!({})), &line, CWD_KEY, CWD),
        row("shell", shell(WORDS, json!({"env": {"RUST_LOG": "x"}})), &line, ENV_KEY, ENV),
        row("shell", shell("RUST_LOG=x cargo test", json!({})), &line, ENV_KEY, ENV),
        row("with_stdin", json!({"value": "x"}), &json!({}), STDIN_KEY, STDIN),
        row("with_cwd", json!({"value": "crates/a"}), &json!({}), CWD_KEY, CWD),
        row("with_env", json!({"value": "x"}), &json!({}), ENV_KEY, ENV),
    ]
}

fn with(mut args: Value, more: &Value) -> Value {
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

fn policy(keys: &str) -> Policy {
    let text = format!("[[rules]]\ndecision = 'allow'\nargv = '{WORDS}'\n{keys}\n");
    let policy = Policy::parse(&[(LayerKind::User, &text)]).unwrap();
    policy.with_tools(tools()).in_directory("/project")
}

fn args(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn decide(policy: &Policy, tool: &str, value: &Value) -> Decision {
    let args = args(value);
    policy.authorize(&PolicyCall { tool, args: &args, origin: CallOrigin::Agent, sandbox: None }).0
}

fn near(policy: &Policy, tool: &str, value: &Value) -> Vec<NearRule> {
    let args = args(value);
    let explained =
        policy.explain(&PolicyCall { tool, args: &args, origin: CallOrigin::Agent, sandbox: None });
    explained.steps.into_iter().flat_map(|step| step.near).collect()
}

#[test]
fn a_field_needs_an_approval_unless_the_rule_has_its_key() {
    for Row { tool, args, without, key, add } in rows() {
        let decided = |keys: &str, args: &Value| decide(&policy(keys), tool, args);
        assert_eq!(decided("", &args), Decision::Ask, "{tool} {args}");
        assert_eq!(decided(key, &args), Decision::Allow, "{tool} {args} with {key}");
        for other in [STDIN_KEY, CWD_KEY, ENV_KEY].into_iter().filter(|other| *other != key) {
            assert_eq!(decided(other, &args), Decision::Ask, "{tool} {args} with {other}");
        }
        let said = near(&policy(""), tool, &args);
        assert_eq!(said.len(), 1, "{tool} {args}");
        assert_eq!(said[0].line, 1, "{tool} {args}");
        assert_eq!(said[0].add, add, "{tool} {args}");
        // Positive control: the calls are only asked about because of the field.
        assert_eq!(decided("", &without), Decision::Allow, "{tool} {without}");
        assert!(near(&policy(""), tool, &without).is_empty(), "{tool} {without}");
    }
    assert!(rows().len() > 20);
}

/// These calls need an approval under every possible key.
#[test]
fn no_key_allows_a_directory_outside_of_the_project() {
    let all = policy("stdin = 'any'\ncwd = ['**']\nenv = ['RUST_LOG']");
    let star = policy("cwd = ['*']");
    let exec = |cwd: Value| json!({"argv": ["cargo", "test"], "cwd": cwd});
    let line = |line: &str| json!({ "command": line });
    let calls = [
        ("exec", exec(json!("/etc"))),
        ("exec", exec(json!("/projects"))),
        ("exec", exec(json!("/project/../etc"))),
        ("exec", exec(json!(".."))),
        ("exec", exec(json!("a/../.."))),
        ("exec", exec(json!("~"))),
        ("exec", exec(json!("${{ item }}"))),
        ("exec", exec(json!(["a"]))),
        ("shell", line("cd /etc && cargo test")),
        ("shell", line("cd .. && cargo test")),
        ("shell", line("cd - && cargo test")),
        ("shell", line("cd && cargo test")),
        ("shell", line("cd '' && cargo test")),
        ("shell", line("cd a b && cargo test")),
        ("shell", line("CDPATH=/etc cd a && cargo test")),
        ("shell", line("cd /etc; cargo test")),
        ("shell", line("cargo test || cd /etc && cargo test")),
        ("with_cwd", json!({"value": "../x"})),
    ];
    for (tool, args) in &calls {
        assert_eq!(decide(&all, tool, args), Decision::Ask, "{tool} {args}");
        assert_eq!(decide(&star, tool, args), Decision::Ask, "{tool} {args}");
        let said = near(&all, tool, args);
        assert_eq!(said.len(), 1, "{tool} {args}");
        assert_eq!((said[0].add.len(), &said[0].never[..]), (0, &["it may run outside the project"][..]));
    }
    // `*` matches the root and its direct subdirectories, `**` all directories.
    for (cwd, by_star) in [(".", Decision::Allow), ("a", Decision::Allow), ("a/b", Decision::Ask)] {
        assert_eq!(decide(&star, "exec", &exec(json!(cwd))), by_star, "{cwd}");
        assert_eq!(decide(&all, "exec", &exec(json!(cwd))), Decision::Allow, "{cwd}");
    }
}

#[test]
fn an_env_that_is_no_object_needs_an_approval() {
    let all = policy("stdin = 'any'\ncwd = ['**']\nenv = ['RUST_LOG']");
    for env in [json!("RUST_LOG=x"), json!(["RUST_LOG=x"]), json!(null), json!("${{ context.env }}")] {
        for (tool, mut call) in
            [("exec", json!({"argv": ["cargo", "test"]})), ("shell", json!({"command": WORDS}))]
        {
            call["env"] = env.clone();
            assert_eq!(decide(&all, tool, &call), Decision::Ask, "{tool} {call}");
            assert_eq!(near(&all, tool, &call)[0].never, ["its `env` is not an object"], "{tool} {call}");
        }
    }
}

#[test]
fn a_command_after_cd_may_run_in_both_directories() {
    let only = policy("cwd = ['crates/a']");
    let decided = |line: &str| decide(&only, "shell", &json!({ "command": line }));
    assert_eq!(decided("cd crates/a && cargo test && cargo test"), Decision::Allow);
    for line in
        ["cd crates/a; cargo test", "cd crates/a & cargo test", "cd crates/a | cargo test", "cd crates/a"]
    {
        assert_eq!(decided(line), Decision::Ask, "{line}");
    }
    // A `cd` without a following command needs its own rule, as any command does.
    let moves = Policy::parse(&[(LayerKind::User, "[[rules]]\ndecision = 'allow'\nargv = 'cd'\n")]).unwrap();
    assert_eq!(decide(&moves, "shell", &json!({"command": "cd crates"})), Decision::Allow);
    assert_eq!(decide(&moves, "shell", &json!({"command": "cd crates && make"})), Decision::Ask);
}

#[test]
fn a_relative_program_is_allowed_in_the_directories_of_the_rule() {
    let rule = |keys: &str| {
        let text = format!("[[rules]]\ndecision = 'allow'\nargv = './deploy'\n{keys}\n");
        Policy::parse(&[(LayerKind::User, &text)]).unwrap()
    };
    let call = json!({"argv": ["./deploy"], "cwd": "sub"});
    assert_eq!(decide(&rule(""), "exec", &call), Decision::Ask);
    assert_eq!(decide(&rule("cwd = ['sub']"), "exec", &call), Decision::Allow);
}

#[test]
fn a_defined_tool_is_allowed_by_the_program_that_it_runs() {
    let none = policy("");
    assert_eq!(decide(&none, "plain", &json!({})), Decision::Allow);
    assert_eq!(decide(&none, "with_secret", &json!({})), Decision::Ask);
    assert_eq!(decide(&policy(ENV_KEY), "with_secret", &json!({})), Decision::Allow);
    // A deny rule also covers the variables of a defined tool.
    let text = "[[rules]]\ndecision = 'deny'\nargv = 'rm'\n";
    let mut registry = Registry::new();
    registry.register(described("wrapped", &json!({"env": {"RUSTC_WRAPPER": "{value}"}}))).unwrap();
    let denies = Policy::parse(&[(LayerKind::User, text)]).unwrap().with_tools(registry);
    assert_eq!(decide(&denies, "wrapped", &json!({"value": "rm"})), Decision::Deny);
    assert_eq!(decide(&denies, "wrapped", &json!({"value": "sccache"})), Decision::Ask);
}

#[test]
fn a_tool_of_a_server_is_allowed_by_its_name_alone() {
    let fields = [
        json!({}),
        json!({"stdin": "x"}),
        json!({"cwd": "a"}),
        json!({"env": {"A": "x"}}),
        json!({"argv": ["cargo", "test"]}),
    ];
    let named = "[[rules]]\ndecision = 'allow'\ntool = 'server/*'\n";
    let named = Policy::parse(&[(LayerKind::User, named)]).unwrap().with_tools(tools());
    let all = policy("stdin = 'any'\ncwd = ['**']\nenv = ['A']");
    for args in &fields {
        assert_eq!(decide(&all, "server/test", args), Decision::Ask, "{args}");
        assert_eq!(decide(&named, "server/test", args), Decision::Allow, "{args}");
        assert!(near(&all, "server/test", args).is_empty(), "{args}");
    }
}

#[test]
fn a_question_names_the_missing_keys_of_a_rule() {
    let why = |keys: &str, tool: &str, value: &Value| {
        let args = args(value);
        let call = PolicyCall { tool, args: &args, origin: CallOrigin::Agent, sandbox: None };
        let why = policy(keys).authorize(&call).1.unwrap();
        why.split_once("; ").map(|(_, near)| near.to_owned()).unwrap_or_default()
    };
    let several = json!({"command": "cd a && B=1 cargo test | cargo test", "env": {"A": "x"}});
    insta::assert_snapshot!(why("cwd = ['crates/*']", "shell", &several), @r#"the rule `cargo test` in `user.toml` line 1 lacks `stdin = "any"` and `cwd = ["crates/*", ".", "a"]` and `env = ["A", "B"]`"#);
    insta::assert_snapshot!(why("", "exec", &json!({"argv": ["cargo", "test"], "cwd": "/etc", "stdin": "x"})), @r#"the rule `cargo test` in `user.toml` line 1 lacks `stdin = "any"`, and does not cover it: it may run outside the project"#);
    insta::assert_snapshot!(why("", "exec", &json!({"argv": ["cargo", "run"], "stdin": "x"})), @"");
}
