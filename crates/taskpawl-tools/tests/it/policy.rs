//! Tests of policies: decisions, explanations, and the precedence of layers and rules.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use taskpawl_tools::{
    CallOrigin, Decision, LayerKind, Policy, PolicyCall, PolicyFiles, Power, Registry, Ruling, SandboxNeed,
    SandboxSettings, policy_schema,
};

fn policy(text: &str) -> Policy {
    Policy::parse(&[(LayerKind::User, text)]).unwrap()
}

fn args(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("arguments are an object") };
    map
}

fn authorize(policy: &Policy, tool: &str, with: Value, origin: CallOrigin) -> (Decision, String) {
    let (decision, why) = policy.authorize(&PolicyCall { tool, args: &args(with), origin, sandbox: None });
    (decision, why.unwrap_or_default())
}

fn shell(policy: &Policy, command: &str, origin: CallOrigin) -> Decision {
    authorize(policy, "shell", json!({ "command": command }), origin).0
}

fn exec(policy: &Policy, argv: &[&str], origin: CallOrigin) -> Decision {
    authorize(policy, "exec", json!({ "argv": argv }), origin).0
}

/// A call that fails in any case is denied without asking. A path that may be beneath the root is asked about.
#[test]
fn a_file_outside_of_the_project_is_denied_without_asking() {
    let root = tempfile::tempdir().unwrap();
    let link = root.path().join("link");
    let real = root.path().join("project");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let policy = Policy::default().in_directory(&link).with_tools(Registry::builtin());
    let decided = |policy: &Policy, tool: &str, path: &str| {
        authorize(policy, tool, json!({"path": path, "content": "", "old": "a", "new": "b"}), AGENT)
    };
    let beneath = [&real, &link].map(|directory| directory.join("f").to_str().unwrap().to_owned());
    for tool in ["write_file", "edit_file"] {
        for path in ["/etc/motd", "../f", "./../f", "..", "/", root.path().to_str().unwrap()] {
            assert_eq!(decided(&policy, tool, path).0, Decision::Deny, "{tool} {path}");
        }
        for path in ["f", "a/../../f", "..f", "${{ item }}/f", "/${{ item }}", &beneath[0], &beneath[1]] {
            assert_eq!(decided(&policy, tool, path).0, Decision::Ask, "{tool} {path}");
        }
        for unknown in
            [Policy::default().in_directory(&link), Policy::default().with_tools(Registry::builtin())]
        {
            assert_eq!(
                decided(&unknown, tool, "/etc/motd").0,
                Decision::Ask,
                "an unknown root or tool leads to a question"
            );
        }
    }
    let (_, why) = decided(&policy, "write_file", "../f");
    insta::assert_snapshot!(why, @"`../f` leads out of the project root, where `write_file` has no access, even with an approval");
    let outside = args(json!({"path": "../f", "content": ""}));
    let call = PolicyCall { tool: "write_file", args: &outside, origin: AGENT, sandbox: None };
    let explained = policy.explain(&call);
    assert_eq!(
        (explained.decision, explained.in_vain),
        (Decision::Deny, Some(why)),
        "the explanation agrees with the decision"
    );
    let need = SandboxNeed { read: vec!["../data".to_owned()], ..SandboxNeed::default() };
    let wide = |path: &str| {
        let args = args(json!({"path": path}));
        let call =
            PolicyCall { tool: "read_file", args: &args, origin: CallOrigin::Cli, sandbox: Some(&need) };
        policy.authorize(&call).0
    };
    assert_eq!((wide("../data/f"), wide("data/f")), (Decision::Deny, Decision::Ask));
    assert_eq!(
        authorize(&policy, "read_file", json!({"path": "../f"}), AGENT).0,
        Decision::Allow,
        "a call that is allowed anyway fails by itself"
    );
}

/// Returns the error for an invalid policy, with its hint.
fn error(text: &str) -> String {
    let error = Policy::parse(&[(LayerKind::User, text)]).unwrap_err();
    let hint = error.hint().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    format!("{error}{hint}")
}

const AGENT: CallOrigin = CallOrigin::Agent;

#[test]
fn without_a_file_people_are_allowed_and_models_are_asked_about() {
    let policy = Policy::default();
    let decisions = |tool: &str, with: Value| {
        let of =
            |origin: &CallOrigin| format!("{origin}={}", authorize(&policy, tool, with.clone(), *origin).0);
        CallOrigin::ALL.iter().map(of).collect::<Vec<_>>().join(" ")
    };
    let all = "cli=allow library=allow plan=allow mcp=allow agent=allow";
    let asks = "cli=allow library=allow plan=allow mcp=ask agent=ask";
    assert_eq!(decisions("shell", json!({"command": "ls"})), asks);
    assert_eq!(decisions("exec", json!({"argv": ["ls"]})), asks);
    assert_eq!(decisions("write_file", json!({"path": "a", "content": ""})), asks);
    assert_eq!(decisions("http_request", json!({"url": "https://example.com"})), asks);
    assert_eq!(decisions("github/search", json!({})), asks);
    assert_eq!(decisions("read_file", json!({"path": "src/lib.rs"})), all);
    assert_eq!(decisions("read_file", json!({"path": "a/.env.local"})), asks);
    assert_eq!(decisions("grep", json!({"pattern": "x"})), all);
    insta::assert_snapshot!(authorize(&policy, "exec", json!({"argv": ["ls"]}), AGENT).1, @"calls added by agents need an approval unless a rule or `[origins] agent` of the user's policy allows them");
}

/// The read-only tools are those whose hints say so.
#[test]
fn built_in_tools_that_only_read_need_no_approval() {
    let policy = Policy::default();
    for tool in Registry::builtin().iter() {
        let (name, hints) = (tool.spec().name.as_str(), tool.spec().hints);
        let runs = authorize(&policy, name, json!({}), AGENT).0 == Decision::Allow;
        let is_harmless = hints.read_only && !hints.open_world;
        assert_eq!(runs, is_harmless, "{name}: {hints:?}");
    }
}

#[test]
fn a_user_may_allow_models_inside_the_sandbox() {
    let policy = policy("[origins]\nagent = 'sandboxed'\nmcp = 'allow'\nplan = 'ask'\nlibrary = 'deny'\n");
    assert_eq!(shell(&policy, "make", AGENT), Decision::Allow);
    assert_eq!(shell(&policy, "make", CallOrigin::Plan), Decision::Ask);
    assert_eq!(shell(&policy, "make", CallOrigin::Library), Decision::Deny);
    let bare = policy.confined_by(&SandboxSettings::off());
    assert_eq!(shell(&bare, "make", AGENT), Decision::Ask);
    assert_eq!(shell(&bare, "make", CallOrigin::Mcp), Decision::Allow);
    assert_eq!(authorize(&bare, "write_file", json!({}), AGENT).0, Decision::Allow);
    assert_eq!(shell(&bare, "make", CallOrigin::Cli), Decision::Allow);
}

const RULES: &str = r#"
[[rules]]
decision = "allow"
argv = ["cargo", ["test", "check"]]
env = ["RUST_LOG"]
match = ["cargo test --all", "RUST_LOG=debug cargo check && cargo test", ["cargo", "test"]]
notMatch = ["cargo publish", "cargo", "cargo test; rm x", "/tmp/cargo test", "cargo test > /tmp/x"]

[[rules]]
decision = "allow"
argv = "git status"

[[rules]]
decision = "ask"
argv = "git push"
reason = "it is seen by others"
match = ["git push", "git -C . push origin", "a && git push", "sudo git push", "git $VERB"]
notMatch = ["git commit -m push", "echo git push"]

[[rules]]
decision = "deny"
argv = ["rm"]
match = ["rm -rf x", "/bin/rm x", "sh -c 'rm x'", "$CMD x"]
"#;

#[test]
fn a_user_may_allow_models_inside_the_sandbox_when_starting_a_program() {
    let without = Policy::default();
    let opted = without.clone().sandboxing(CallOrigin::Mcp);
    assert_eq!(exec(&without, &["ls"], CallOrigin::Mcp), Decision::Ask);
    assert_eq!(exec(&opted, &["ls"], CallOrigin::Mcp), Decision::Allow);
    // This affects one origin only, and invalidates earlier approvals.
    assert_eq!(exec(&opted, &["ls"], CallOrigin::Agent), Decision::Ask);
    assert_ne!(opted.version(), without.version());
    assert_eq!(opted.holds_back(CallOrigin::Mcp), None);
    let said = policy("[origins]\nmcp = 'ask'\n").sandboxing(CallOrigin::Mcp);
    assert_eq!(exec(&said, &["ls"], CallOrigin::Mcp), Decision::Ask);
    insta::assert_snapshot!(said.holds_back(CallOrigin::Mcp).unwrap(), @"`user.toml` sets `mcp = \"ask\"`");
    let rules = policy("[[rules]]\ndecision = 'deny'\ntool = 'exec'\n").sandboxing(CallOrigin::Mcp);
    assert_eq!(exec(&rules, &["ls"], CallOrigin::Mcp), Decision::Deny);
}

#[test]
fn an_allow_rule_covers_exactly_its_command() {
    let policy = policy(RULES);
    for command in
        ["cargo test", "cargo test && git status", "RUST_LOG=a cargo check", "git status -s; cargo test"]
    {
        assert_eq!(shell(&policy, command, AGENT), Decision::Allow, "{command}");
    }
    let others = [
        "cargo",
        "cargo build",
        "cargo test && make",
        "cargo test $X",
        "cargo test $(id)",
        "cargo test > out",
        "RUSTC_WRAPPER=./x cargo test",
        "PATH=. cargo test",
        "./cargo test",
        "env cargo test",
        "xargs cargo test",
        "cargo test &&",
        "git status -s | cargo test",
        "cd crates/a && cargo test",
        "(cargo test)",
        "cargo test\nmake",
        "cargo 'test' \"$(make)\"",
        "sudo cargo test",
        "cargotest",
        "cargo  tests",
        "if cargo test",
        "cargo test `make`",
        "cargo test <(make)",
    ];
    for command in others {
        assert_eq!(shell(&policy, command, AGENT), Decision::Ask, "{command}");
    }
    assert_eq!(exec(&policy, &["cargo", "test", "; make"], AGENT), Decision::Allow);
    assert_eq!(exec(&policy, &["cargo test"], AGENT), Decision::Ask);
    let with_env = |name: &str| {
        authorize(&policy, "exec", json!({"argv": ["cargo", "test"], "env": {name: "x"}}), AGENT).0
    };
    assert_eq!((with_env("RUST_LOG"), with_env("RUSTC_WRAPPER")), (Decision::Allow, Decision::Ask));
}

#[test]
fn an_allowed_command_has_no_input_and_runs_at_the_root_unless_the_rule_says_so() {
    let decided = |keys: &str, more: Value| {
        let policy = policy(&format!("[[rules]]\ndecision = 'allow'\nargv = ['cargo', 'test']\n{keys}\n"));
        let mut args = json!({"argv": ["cargo", "test"]});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        authorize(&policy, "exec", args, AGENT).0
    };
    let (allow, ask) = (Decision::Allow, Decision::Ask);
    for (keys, more, expected) in [
        ("", json!({}), allow),
        ("", json!({"stdin": ""}), allow),
        ("", json!({"stdin": "x"}), ask),
        ("stdin = 'any'", json!({"stdin": "x"}), allow),
        ("", json!({"cwd": "./"}), allow),
        ("", json!({"cwd": "crates/a"}), ask),
        ("cwd = ['crates/*']", json!({"cwd": "./crates/a/"}), allow),
        ("cwd = ['crates/*']", json!({"cwd": "crates/a/b"}), ask),
        ("cwd = ['crates/*']", json!({"cwd": "crates/a/../../b"}), ask),
        ("cwd = ['**']", json!({"cwd": "/etc"}), ask),
        ("cwd = ['crates/*']", json!({}), ask),
        ("cwd = ['.', 'crates/*']", json!({}), allow),
    ] {
        assert_eq!(decided(keys, more.clone()), expected, "{keys} {more}");
    }
}

#[test]
fn programs_in_variables_of_build_tools_are_recognised_by_pattern() {
    let policy = policy("[[rules]]\ndecision = 'deny'\nargv = ['rm']\n");
    for set in [
        "CARGO_BUILD_RUSTC_WRAPPER=rm",
        "CARGO_BUILD_RUSTC=rm",
        "CARGO_BUILD_RUSTDOC=rm",
        "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER=rm",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=rm",
        "RUSTC_WRAPPER=rm",
        "RUSTC=rm",
        "LD_PRELOAD=./x.so",
        "NODE_OPTIONS='--require ./x.js'",
    ] {
        assert_eq!(shell(&policy, &format!("{set} cargo test"), CallOrigin::Plan), Decision::Deny, "{set}");
    }
    for set in ["CARGO_TERM_COLOR=always", "NODE_OPTIONS=--max-old-space-size=4096", "LD_LIBRARY_PATH=lib"] {
        assert_eq!(shell(&policy, &format!("{set} cargo test"), CallOrigin::Plan), Decision::Allow, "{set}");
    }
}

#[test]
fn an_alias_does_not_bypass_a_rule() {
    let policy = policy("[[rules]]\ndecision = 'deny'\nargv = ['rm', '-rf']\n");
    for command in [
        "alias r=rm; r -rf x",
        "alias r='rm -rf'; r x",
        "alias r=rm\nr -rf x",
        "alias q=r r=rm; q -rf x",
        "alias s='sudo '; alias r=rm; s r -rf x",
        "alias r=$CMD; r -rf x",
        "alias \"$name=rm\"; r -rf x",
        "hash -p /bin/rm r; r -rf x",
        "f(){ rm \"$@\"; }; f -rf x",
        "f(){ rm \"$@\";};f -rf x",
        "f() { rm $1 $2; }; f -rf x",
        "function f { \"$@\"; }; f rm -rf x",
        "f(){ command \"${@}\"; }; f rm -rf x",
        "f(){ eval \"$1\"; }; f 'rm -rf x'",
        "f(){ sh -c \"$*\"; }; f rm -rf x",
        "set -- rm -rf x; \"$@\"",
        "a=(rm -rf x); \"${a[@]}\"",
        "x='rm -rf y'; eval \"$x\"",
    ] {
        for line in [command.to_owned(), format!("sh -c '{}'", command.replace('\'', "'\\''"))] {
            assert_eq!(shell(&policy, &line, CallOrigin::Plan), Decision::Deny, "{line}");
        }
    }
    for command in [
        "alias ls='ls --color'; ls -rf x",
        "alias ll='ls -l'; ll -rf rm",
        "alias; alias -p; ls -rf",
        "f(){ ls \"$@\";};f -rf x",
        "g() { grep -rf \"$1\" x; }; g rm",
        "bash build.sh \"$TARGET\"",
        "alias rm='rm -i'; rm x",
    ] {
        assert_eq!(shell(&policy, command, CallOrigin::Plan), Decision::Allow, "{command}");
    }
}

#[test]
fn a_relative_program_depends_on_the_directory() {
    let policy = policy("[[rules]]\ndecision = 'allow'\nargv = './deploy'\n");
    let at = |cwd: Option<&str>| {
        let mut with = json!({"argv": ["./deploy"]});
        if let Some(cwd) = cwd {
            with["cwd"] = cwd.into();
        }
        authorize(&policy, "exec", with, AGENT).0
    };
    assert_eq!((at(None), at(Some("sub"))), (Decision::Allow, Decision::Ask));
}

#[test]
fn ask_and_deny_rules_apply_to_possible_matches() {
    let policy = policy(RULES);
    for command in
        ["git push", "cargo test && git push", "git --no-pager push", "/usr/bin/git push", "git \"$X\""]
    {
        assert_eq!(shell(&policy, command, CallOrigin::Plan), Decision::Ask, "{command}");
    }
    for command in ["rm x", "git push && rm x", "find . -exec rm {} +", "echo x | sh", "$X", "eval \"$X\""] {
        assert_eq!(shell(&policy, command, CallOrigin::Plan), Decision::Deny, "{command}");
    }
    for command in ["echo rm", "cargo run", "git log push", "for a in b; do echo $a; done"] {
        assert_eq!(shell(&policy, command, CallOrigin::Plan), Decision::Allow, "{command}");
    }
    assert_eq!(exec(&policy, &["env", "-i", "rm", "x"], CallOrigin::Plan), Decision::Deny);
    let by_input = json!({"argv": ["sh", "-s"], "stdin": "rm x"});
    assert_eq!(authorize(&policy, "exec", by_input, CallOrigin::Plan).0, Decision::Deny);
    let why = authorize(&policy, "shell", json!({"command": "git push"}), CallOrigin::Plan).1;
    insta::assert_snapshot!(why, @"`user.toml` line 13 asks about `git push`: it is seen by others");
    let why = authorize(&policy, "shell", json!({"command": "rm x"}), CallOrigin::Plan).1;
    insta::assert_snapshot!(why, @"`user.toml` line 20 denies `rm`; change the rule there to allow it");
    let why = authorize(&policy, "shell", json!({"command": "cat x.sh | sh"}), CallOrigin::Plan).1;
    insta::assert_snapshot!(why, @"`user.toml` line 20 denies `rm`; it may match, because its commands cannot be determined with certainty; write its programs and arguments literally");
}

#[test]
fn an_option_in_a_rule_may_follow_other_arguments() {
    let deny = |argv: &str| policy(&format!("[[rules]]\ndecision = 'deny'\nargv = '{argv}'\n"));
    let force = deny("git push --force");
    for line in
        ["git push --force", "git push origin main --force", "git push origin --force=x", "git push $X"]
    {
        assert_eq!(shell(&force, line, CallOrigin::Plan), Decision::Deny, "{line}");
    }
    for line in ["git push origin main", "git push origin \"$BRANCH\"", "git fetch origin --force"] {
        assert_eq!(shell(&force, line, CallOrigin::Plan), Decision::Allow, "{line}");
    }
    let (rm, delete) = (deny("rm -rf"), deny("find -delete"));
    assert_eq!(shell(&rm, "rm x -rf", CallOrigin::Plan), Decision::Deny);
    assert_eq!(shell(&rm, "rm \"$TMP/x\"", CallOrigin::Plan), Decision::Allow);
    assert_eq!(shell(&delete, "find . -name x -delete", CallOrigin::Plan), Decision::Deny);
    assert_eq!(shell(&delete, "find . -name x", CallOrigin::Plan), Decision::Allow);
    assert_eq!(shell(&deny("git log --all"), "git log -c --all", CallOrigin::Plan), Decision::Deny);
    // For some programs the options with values are known.
    for (rule, line) in [
        ("cargo publish", "cargo --manifest-path \"$D/Cargo.toml\" test"),
        ("kubectl delete", "kubectl -n \"$NS\" get pods"),
        ("docker push", "docker --context \"$C\" ps"),
    ] {
        assert_eq!(shell(&deny(rule), line, CallOrigin::Plan), Decision::Allow, "{line}");
    }
}

#[test]
fn rules_can_name_tools_and_origins() {
    let policy = policy(
        "[[rules]]\ndecision = 'allow'\ntool = 'github/get_*'\norigins = ['mcp']\nmatch = ['github/get_issue']\nnotMatch = ['github/create']\n
         [[rules]]\ndecision = 'deny'\ntool = '*/delete_*'\n",
    );
    let decide = |tool: &str, origin| authorize(&policy, tool, json!({}), origin).0;
    assert_eq!(decide("github/get_issue", CallOrigin::Mcp), Decision::Allow);
    assert_eq!(decide("github/get_issue", AGENT), Decision::Ask);
    assert_eq!(decide("github/delete_repo", CallOrigin::Cli), Decision::Deny);
}

#[test]
fn more_permissions_than_the_sandbox_has_need_an_approval() {
    let text = "[[rules]]\ndecision = 'allow'\nargv = 'cargo fetch'\nsandbox = { net = true }\n";
    let with = args(json!({"command": "cargo fetch"}));
    let authorize = |policy: &Policy, need: SandboxNeed, origin| {
        policy.authorize(&PolicyCall { tool: "shell", args: &with, origin, sandbox: Some(&need) }).0
    };
    let net = || SandboxNeed { net: true, ..SandboxNeed::default() };
    let write = |path: &str| SandboxNeed { write: vec![path.to_owned()], ..SandboxNeed::default() };
    let plain = Policy::default();
    assert_eq!(authorize(&plain, net(), CallOrigin::Cli), Decision::Ask);
    assert_eq!(authorize(&plain, SandboxNeed::default(), CallOrigin::Cli), Decision::Allow);
    let wide = policy(text);
    assert_eq!(authorize(&wide, net(), AGENT), Decision::Allow);
    assert_eq!(authorize(&wide, write("/srv"), AGENT), Decision::Ask);
    let granted = SandboxSettings { net: true, write: vec!["/srv".into()], ..SandboxSettings::default() };
    let flags = Policy::default().confined_by(&granted);
    assert_eq!(authorize(&flags, net(), CallOrigin::Plan), Decision::Allow);
    assert_eq!(authorize(&flags, write("/srv/a"), CallOrigin::Plan), Decision::Allow);
    assert_eq!(authorize(&flags, write("/srv/../etc"), CallOrigin::Plan), Decision::Ask);
    assert_eq!(authorize(&flags, write("/srvx"), CallOrigin::Plan), Decision::Ask);
    let ceiling =
        Policy::parse(&[(LayerKind::Ceiling, "[sandbox]\nnet = 'deny'\n"), (LayerKind::User, text)]).unwrap();
    assert_eq!(authorize(&ceiling, net(), AGENT), Decision::Deny);
    let net = ceiling.ruling(Power::Net);
    assert_eq!(net.ruling, Ruling::Never);
    insta::assert_snapshot!(net.place.unwrap(), @"`ceiling.toml` line 2 (`[sandbox] net`)");
    assert_eq!(ceiling.ruling(Power::Off).ruling, Ruling::Allow);
}

#[test]
fn the_strictest_ruling_on_a_power_counts() {
    let texts = [
        (LayerKind::Ceiling, "[powers]\nhosts = 'ask'\nnet = 'ask'\n"),
        (LayerKind::User, "[powers]\nhosts = 'allow'\nports = 'never'\n"),
        (LayerKind::Project, "[powers]\nhosts = 'never'\n"),
    ];
    let policy = Policy::parse(&texts).unwrap();
    let of = |power| policy.ruling(power).ruling;
    assert_eq!(
        [Power::Hosts, Power::Ports, Power::Net, Power::Off].map(of),
        [Ruling::Never, Ruling::Never, Ruling::Ask, Ruling::Allow]
    );
    // A call that asks for such a power needs an approval, even if a rule allows it.
    let net = SandboxNeed { net: true, ..SandboxNeed::default() };
    let rule = "[[rules]]\ndecision = 'allow'\nargv = 'make'\nsandbox = {net = true}\n";
    let asks =
        Policy::parse(&[(LayerKind::Ceiling, "[powers]\nnet = 'ask'\n"), (LayerKind::User, rule)]).unwrap();
    let with = args(json!({"command": "make"}));
    let call = PolicyCall { tool: "shell", args: &with, origin: CallOrigin::Plan, sandbox: Some(&net) };
    assert_eq!(asks.authorize(&call).0, Decision::Ask);
    let error = Policy::parse(&[(LayerKind::User, "[powers]\nhost = 'ask'\n")]).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("did you mean `hosts`?"));
}

#[test]
fn agents_may_what_the_user_says_within_the_ceiling() {
    let may = |texts: &[(LayerKind, &str)], grant: &str| {
        Policy::parse(texts).unwrap().agents_may(&grant.parse().unwrap())
    };
    let user = (LayerKind::User, "agents_may = ['host:a.example', 'port:5432']\n");
    assert!(may(&[user], "host:a.example:443") && may(&[user], "port:5432"));
    assert!(!may(&[user], "host:b.example") && !may(&[user], "net") && !may(&[], "port:5432"));
    let ceiling = |text| (LayerKind::Ceiling, text);
    assert!(!may(&[ceiling("agents_may = ['port:5432']\n"), user], "host:a.example"));
    assert!(!may(&[ceiling("agents_may = ['port:5432']\n")], "port:5432"));
    assert!(!may(&[ceiling("[powers]\nagents = 'never'\n"), user], "port:5432"));
    let project = Policy::parse(&[(LayerKind::Project, "agents_may = ['net']\n")]).unwrap_err();
    assert!(project.to_string().contains("unknown key `agents_may`"), "{project}");
    Policy::parse(&[(LayerKind::User, "agents_may = ['everything']\n")]).unwrap_err();
}

#[test]
fn no_other_layer_overrides_the_ceiling() {
    let layers = [
        (
            LayerKind::Project,
            "[origins]\nagent = 'allow'\n[[rules]]\ndecision = 'allow'\nargv = 'git push'\n",
        ),
        (LayerKind::User, "[origins]\nagent = 'allow'\n[[rules]]\ndecision = 'allow'\nargv = 'git push'\n"),
        (LayerKind::Ceiling, "[[rules]]\ndecision = 'deny'\nargv = 'git push'\nreason = 'machine'\n"),
    ];
    let policy = Policy::parse(&layers).unwrap();
    let (decision, why) = authorize(&policy, "shell", json!({"command": "git push"}), AGENT);
    assert_eq!(decision, Decision::Deny);
    insta::assert_snapshot!(why, @"`ceiling.toml` line 1 denies `git push`: machine; a lower policy cannot allow it");
    assert_eq!(shell(&policy, "git status", AGENT), Decision::Allow);
    let explained = policy.explain(&PolicyCall {
        tool: "shell",
        args: &args(json!({"command": "git push"})),
        origin: AGENT,
        sandbox: None,
    });
    let steps: Vec<String> = explained.steps.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(steps.join("\n"), @r"
    ceiling: deny (`ceiling.toml` line 1 denies `git push`: machine)
    user: allow (`user.toml` line 3 allows `git push`)
    project: allow (`project.toml` line 3 allows `git push`)
    ");
}

#[test]
fn an_approval_is_for_one_policy_and_one_directory() {
    let versions = [
        Policy::default(),
        policy("# nothing\n"),
        Policy::parse(&[(LayerKind::Project, "# nothing\n")]).unwrap(),
        Policy::default().in_directory("/a"),
        Policy::default().in_directory("/b"),
    ];
    let mut words: Vec<&str> = versions.iter().map(Policy::version).collect();
    assert!(words.iter().all(|word| word.len() == 64));
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), versions.len());
    assert_eq!(Policy::default().version(), Policy::default().version());
}

#[test]
fn missing_files_are_ignored_and_unreadable_ones_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| Some(directory.path().join(name));
    let files = PolicyFiles { ceiling: path("none"), user: path("none"), project: path("none/none") };
    assert_eq!(Policy::load(&files).unwrap().version(), Policy::default().version());
    std::fs::create_dir(directory.path().join("ceiling")).unwrap();
    let error =
        Policy::load(&PolicyFiles { ceiling: path("ceiling"), ..PolicyFiles::default() }).unwrap_err();
    assert!(error.to_string().contains("failed to read the policy"), "{error}");
    std::fs::write(directory.path().join("user"), "[origins]\nagent = 'deny'\n").unwrap();
    let policy = Policy::load(&PolicyFiles { user: path("user"), ..PolicyFiles::default() }).unwrap();
    assert_eq!(shell(&policy, "ls", AGENT), Decision::Deny);
}

#[test]
fn errors_name_the_line() {
    let cases = [
        "orgins = {}",
        "\n[origins]\nagents = 'ask'",
        "[origins]\nagent = 'sandbox'",
        "[sandbox]\nnet = 'ask'",
        "[[rules]]\nargv = 'rm'",
        "[[rules]]\ndecision = 'allow'",
        "[[rules]]\ndecision = 'alow'\nargv = 'rm'",
        "[[rules]]\ndecision = 'deny'\nargv = []",
        "[[rules]]\ndecision = 'deny'\nargv = 'a; b'",
        "[[rules]]\ndecision = 'deny'\nargv = 'a'\nenv = ['X']",
        "[[rules]]\ndecision = 'deny'\ntool = 'read_file'\nargv = 'a'",
        "[[rules]]\ndecision = 'deny'\nargv = 'a'\nnotmatch = ['b']",
        "[[rules]]\ndecision = 'deny'\nargv = 'a'\norigins = []",
        "[[rules]]\ndecision = 'allow'\nargv = 'a'\nmatch = [\n  'a b',\n  'a > b',\n]",
        "[[rules]]\ndecision = 'deny'\nargv = 'rm'\nnotMatch = ['sudo rm']",
        "rules = 3",
        "[[rules]",
    ];
    let told: Vec<String> = cases.iter().map(|text| format!("{}\n", error(text))).collect();
    insta::assert_snapshot!(told.concat());
}

#[test]
fn the_schema_has_the_keys_of_the_parser() {
    let schema = policy_schema();
    let keys =
        |at: &Value| at["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&schema), "agents_may decisions least_level origins powers rules sandbox");
    let mut rule =
        keys(&schema["properties"]["rules"]["items"]).split(' ').map(str::to_owned).collect::<Vec<_>>();
    rule.sort_unstable();
    assert_eq!(rule.join(" "), "argv cwd decision env match notMatch origins reason sandbox stdin tool");
}

// Properties that hold for every policy.

const COMMANDS: [&str; 6] = ["git push", "git status", "rm x", "git push && rm x", "sudo rm x", "git $X > y"];
const ARGVS: [&str; 4] = ["git", "git push", "rm", "git status"];

fn rule_text() -> impl Strategy<Value = String> {
    let decision = prop::sample::select(&["allow", "ask", "deny"][..]);
    let origins = prop::sample::select(&["", "origins = ['agent']\n", "origins = ['cli', 'mcp']\n"][..]);
    let about = prop::sample::select(&ARGVS[..]).prop_map(|argv| format!("argv = '{argv}'\n"));
    let about = prop_oneof![3 => about, 1 => Just("tool = '*'\n".to_owned())];
    (decision, about, origins).prop_map(|(decision, about, origins)| {
        format!("[[rules]]\ndecision = '{decision}'\n{about}{origins}")
    })
}

fn head_text() -> impl Strategy<Value = String> {
    prop::option::of(prop::sample::select(&["allow", "sandboxed", "ask", "deny"][..]))
        .prop_map(|word| word.map(|word| format!("[origins]\nagent = '{word}'\n")).unwrap_or_default())
}

fn file() -> impl Strategy<Value = (String, Vec<String>)> {
    (head_text(), prop::collection::vec(rule_text(), 0..5))
}

fn decisions(layers: &[(LayerKind, &str)]) -> Vec<Decision> {
    let policy = Policy::parse(layers).unwrap();
    let origins = [CallOrigin::Agent, CallOrigin::Cli];
    let all =
        origins.iter().flat_map(|origin| COMMANDS.iter().map(|command| shell(&policy, command, *origin)));
    all.collect()
}

proptest! {
    #[test]
    fn the_order_of_rules_does_not_matter((head, mut rules) in file(), seed in any::<usize>()) {
        let text = format!("{head}{}", rules.concat());
        let before = decisions(&[(LayerKind::User, &text)]);
        if !rules.is_empty() {
            let middle = seed % rules.len();
            rules.rotate_left(middle);
            rules.reverse();
        }
        let text = format!("{head}{}", rules.concat());
        prop_assert_eq!(before, decisions(&[(LayerKind::User, &text)]));
    }

    #[test]
    fn the_order_of_layers_does_not_matter(a in file(), b in file(), c in file()) {
        let text = |(head, rules): &(String, Vec<String>)| format!("{head}{}", rules.concat());
        let (a, b, c) = (text(&a), text(&b), text(&c));
        let mut layers = [(LayerKind::Ceiling, a.as_str()), (LayerKind::User, b.as_str()), (LayerKind::Project, c.as_str())];
        let before = decisions(&layers);
        layers.reverse();
        prop_assert_eq!(&before, &decisions(&layers));
        // The strictest decision of the layers counts. A ceiling or project without a matching rule allows.
        let alone = |kind, text| decisions(&[(LayerKind::User, "[origins]\ncli = 'allow'\nagent = 'allow'\n"), (kind, text)]);
        let (ceiling, user, project) = (alone(LayerKind::Ceiling, &a), decisions(&[(LayerKind::User, &b)]), alone(LayerKind::Project, &c));
        for (position, decision) in before.iter().enumerate() {
            prop_assert_eq!(*decision, ceiling[position].max(user[position]).max(project[position]));
        }
    }

    #[test]
    fn a_project_only_restricts(user in file(), project in file()) {
        let text = |(head, rules): &(String, Vec<String>)| format!("{head}{}", rules.concat());
        let (user, project) = (text(&user), text(&project));
        let without = decisions(&[(LayerKind::User, &user)]);
        let with = decisions(&[(LayerKind::User, &user), (LayerKind::Project, &project)]);
        prop_assert!(with.iter().zip(&without).all(|(with, without)| with >= without));
    }

    #[test]
    fn an_additional_strict_rule_never_allows_more((head, rules) in file(), more in rule_text()) {
        prop_assume!(!more.contains("'allow'"));
        let text = format!("{head}{}", rules.concat());
        let before = decisions(&[(LayerKind::User, &text)]);
        let after = decisions(&[(LayerKind::User, &format!("{text}{more}"))]);
        let is_kept = before.iter().zip(&after).all(|(before, after)| after >= before || *before == Decision::Deny);
        prop_assert!(is_kept, "{:?} {:?}", before, after);
    }

    #[test]
    fn arbitrary_text_is_handled(text in ".{0,200}", command in "[a-z $`'\"(){};&|<>\\\\#=*~!\n-]{0,80}") {
        drop(Policy::parse(&[(LayerKind::User, &text)]));
        let policy = policy(RULES);
        shell(&policy, &command, AGENT);
        shell(&policy, &text, AGENT);
    }

    /// A literally named program is found regardless of the text around it.
    #[test]
    fn a_denied_command_is_found_after_any_text(before in "[a-z ]{0,8}", joint in prop::sample::select(&[";", "&&", "||", "|", "\n", "&", "$(", "`", "("][..])) {
        let policy = policy(RULES);
        prop_assert_eq!(shell(&policy, &format!("{before}{joint} rm x"), CallOrigin::Plan), Decision::Deny);
    }
}

/// Words that `xargs` and similar programs append are unknown.
#[test]
fn appended_words_may_match_a_rule() {
    let deny = |argv: &str| policy(&format!("[[rules]]\ndecision = 'deny'\nargv = '{argv}'\n"));
    let push = deny("git push");
    let denied = [
        "printf push | xargs git",
        "printf push | sudo xargs -n1 git",
        "printf push | timeout 5 xargs git -C .",
        "printf push | xargs -I % git %",
        "printf push | xargs -I% sh -c 'git %'",
        "echo git push | xargs env",
        "echo git push | xargs sudo -u x",
        "echo push | parallel git",
        "parallel git ::: push",
        "parallel < lines",
        "fd push -x git",
        "prlimit --nofile=10 git push",
        "setarch x86_64 git push",
        "linux64 git push",
        "numactl -N 0 git push",
        "dbus-run-session -- git push",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
        "/lib/ld-musl-x86_64.so.1 /usr/bin/git push",
        "direnv exec . git push",
        "git rebase -x 'git push' main",
        "git rebase --exec='a && git push' main",
        "git submodule foreach git push",
        "git submodule foreach --recursive 'git push'",
        "git bisect run git push",
        "sudo git bisect run sh -c 'git push'",
        "timeout 5 git -c alias.x='!git push' x",
        "git -c alias.x='!git push' x",
        "git -c alias.x=push x",
        "git -c alias.x=\"$A\" x",
        "git config alias.x 'push --force'",
        "git -c core.pager='git push' log",
    ];
    for line in denied {
        assert_eq!(shell(&push, line, CallOrigin::Cli), Decision::Deny, "{line}");
    }
    for argv in [
        &["xargs", "git"][..],
        &["find", "push", "-exec", "git", "{}", "+"],
        &["find", ".", "-exec", "sh", "-c", "git {}", ";"],
        &["xargs", "-I", "{}", "git", "{}"],
    ] {
        assert_eq!(exec(&push, argv, CallOrigin::Cli), Decision::Deny, "{argv:?}");
    }
    assert_eq!(exec(&deny("rm"), &["find", ".", "-exec", "{}", ";"], CallOrigin::Cli), Decision::Deny);
    let with_input = json!({"argv": ["xargs", "git"], "stdin": "push"});
    assert_eq!(authorize(&push, "exec", with_input, CallOrigin::Cli).0, Decision::Deny);
    assert_eq!(shell(&deny("rm -rf"), "echo -rf x | xargs rm", CallOrigin::Cli), Decision::Deny);
    assert_eq!(shell(&deny("rm"), "ls | xargs rm", CallOrigin::Cli), Decision::Deny);
}

/// Only the appended words are unknown: a literal command in front of them is certain.
#[test]
fn appended_words_do_not_change_a_literal_command() {
    let policy = policy("[[rules]]\ndecision = 'deny'\nargv = 'git push'\n");
    for line in [
        "ls | xargs cat",
        "ls | xargs -n1 git add",
        "ls | xargs sh -c 'cat x'",
        "ls | parallel cat",
        "git clean -x push",
        "git rebase main",
        "git -c user.name=a commit -m 'git push'",
        "git commit -m 'alias.x=push'",
        "numactl -N 0 git status",
    ] {
        assert_eq!(shell(&policy, line, CallOrigin::Cli), Decision::Allow, "{line}");
    }
    for argv in [&["find", ".", "-exec", "cat", "{}", "+"][..], &["xargs", "-I", "{}", "cat", "{}"]] {
        assert_eq!(exec(&policy, argv, CallOrigin::Cli), Decision::Allow, "{argv:?}");
    }
}
