//! Tests of the tool `agent` with an agent that does what its scenario says.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Cli, Run, may_decide};

/// A project with the agent `scripted`. Without the sandbox's own directories its python needs nothing more.
struct Scene(Cli);

impl Scene {
    fn new(turns: &Value, more: &str) -> Self {
        let cli = Cli::new().with_programs();
        cli.file("agent.py", include_str!("../../../taskpawl-agent/tests/agent.py"));
        cli.file("scenario.json", &json!({"turns": turns}).to_string());
        let config =
            format!("[agents.scripted]\ncommand = [\"python3\", \"agent.py\", \"scenario.json\"]\n{more}");
        let directory = cli.path(".config/taskpawl");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("config.toml"), config).unwrap();
        Self(cli)
    }

    /// Runs a plan with one task, `t`, whose call has these arguments.
    fn call(&self, args: &Value) -> Run {
        let plan = json!({"name": "p", "tasks": [{"id": "t", "call": {"agent": args}}]});
        self.0.file("p.json", &plan.to_string());
        self.0.run(&["run-all-ready", "--plan", "p.json"])
    }

    fn tool_call(&self) -> Value {
        let shown = self.0.run(&["show", "t", "--json"]).ok().json()["data"].clone();
        shown["metadata"]["toolCalls"][0].clone()
    }
}

#[test]
fn an_agent_answers_in_the_form_of_a_schema_and_its_log_and_usage_are_kept() {
    let tokens = json!({"totalTokens": 7, "inputTokens": 4, "outputTokens": 3});
    let turns = json!([[{"say": "soon"}, {"cost": 0.25}], [{"say": "{\"n\": 3}"}, {"cost": 0.5}, {"tokens": tokens}]]);
    let scene = Scene::new(&turns, "");
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    scene.call(&json!({"prompt": "count", "schema": schema})).ok();
    let call = scene.tool_call();
    assert_eq!((&call["result"]["json"], &call["result"]["turns"]), (&json!({"n": 3}), &json!(2)));
    assert_eq!((&call["usage"]["cost"], &call["usage"]["tokens"]), (&json!(0.5), &json!(7)));
    let log = scene.0.run(&["logs", "t"]).ok().stdout;
    assert!(log.contains("[session s1]") && log.contains("[answer refused]"), "{log}");
}

#[test]
fn agents_are_listed_tried_and_named_by_the_user_alone() {
    let scene = Scene::new(&json!([]), "[agents.gone]\ncommand = [\"no-such-program\"]\n");
    let cli = &scene.0;
    let listed = cli.run(&["agents", "--json"]).ok().json()["data"].clone();
    let mine = listed.as_array().unwrap().iter().find(|agent| agent["name"] == "scripted").unwrap();
    assert_eq!((&mine["source"], &mine["granted"]), (&json!("configured"), &json!(true)));
    let checked = cli.run(&["agents", "--check", "--json"]);
    assert_eq!(checked.code, Some(1), "{checked}");
    let checked = checked.json()["data"].clone();
    let of = |name: &str| {
        checked.as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()["check"].clone()
    };
    assert_eq!(of("scripted")["name"], "scripted");
    assert!(of("gone")["error"].as_str().unwrap().contains("no-such-program"), "{checked}");
    assert!(cli.run(&["doctor"]).stdout.contains("calls of `agent` can use `gone`, `scripted`"));

    let plan =
        json!({"name": "p", "tasks": [{"id": "t", "call": {"agent": {"prompt": "x", "using": "scriptd"}}}]});
    cli.file("p.json", &plan.to_string());
    let said = cli.run(&["plan", "check", "p.json"]).to_string();
    assert!(said.contains("no agent `scriptd` is configured; did you mean `scripted`?"), "{said}");
    let said = scene.call(&json!({"prompt": "x"})).to_string();
    assert!(said.contains("there are several agents: name one with `using`"), "{said}");

    cli.file("taskpawl.toml", "[agents.scripted]\ncommand = [\"evil\"]\n");
    let refused = cli.run(&["agents"]).to_string();
    assert!(refused.contains("the user's own file alone names agents"), "{refused}");
}

#[test]
fn a_key_that_is_written_out_is_refused() {
    let scene = Scene::new(&json!([]), "env = { MY_KEY = \"abc\" }\n");
    let refused = scene.0.run(&["agents"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(refused.to_string().contains("a key, token or password is a secret"), "{refused}");
}

#[test]
fn what_an_agent_needs_is_granted_once_and_for_its_calls_alone() {
    if !may_decide() {
        return;
    }
    let scene =
        Scene::new(&json!([[{"make": "../settings/new"}, {"say": "done"}]]), "write = [\"~/settings\"]\n");
    let cli = &scene.0;
    fs::create_dir(cli.path("settings")).unwrap();
    let said = scene.call(&json!({"prompt": "go"})).to_string();
    let settings = cli.path("settings");
    let expected = "agent `scripted` needs `write:[HOME]/settings`; a person grants it once with `taskpawl allow agent:scripted`";
    assert!(said.contains("taskpawl allow agent:scripted"), "{said}");
    assert_eq!(scene.tool_call()["error"], expected);
    assert!(cli.run(&["agents"]).ok().stdout.contains("needs `taskpawl allow agent:scripted`"));
    assert_ne!(cli.run(&["allow", "agent:scripted"]).code, Some(0));
    let shown = cli.by_person_with(&["allow", "agent:scripted"], "y\n").ok();
    assert!(shown.stdout.contains("python3 agent.py scenario.json"), "{shown}");
    cli.run(&["run-all-ready", "--plan", "p.json", "--retry-failed"]).ok();
    assert!(settings.join("new").exists());
    assert!(cli.run(&["allow", "--list"]).ok().stdout.contains("agent:scripted"));

    // Programs of other calls do not have it.
    let plan = json!({"name": "q", "tasks": [{"id": "other", "run": "touch ../settings/other"}]});
    cli.file("q.json", &plan.to_string());
    cli.run(&["run-all-ready", "--plan", "q.json"]);
    assert!(!settings.join("other").exists());
    cli.by_person(&["allow", "--remove", "agent:scripted"]).ok();
    assert!(!cli.run(&["allow", "--list"]).ok().stdout.contains("agent:scripted"));
}

#[test]
fn a_permission_is_asked_of_a_person_and_the_session_goes_on() {
    if !may_decide() {
        return;
    }
    let push = json!({"toolCallId": "1", "title": "Push", "kind": "execute", "rawInput": {"command": "git push origin"}});
    let list = json!({"toolCallId": "2", "title": "List", "kind": "execute", "rawInput": {"command": "ls"}});
    let turns = json!([[{"permission": list}, {"permission": push}]]);
    let scene = Scene::new(&turns, "");
    let cli = &scene.0;
    cli.policy("[[rules]]\nargv = \"git push\"\ndecision = \"ask\"\n");
    let asked = scene.call(&json!({"prompt": "go"}));
    assert_eq!(asked.code, Some(3), "{asked}");
    assert!(asked.to_string().contains("git push origin"), "{asked}");
    cli.by_person(&["approve", "t", "--answer", "yes"]).ok();
    cli.run(&["run-all-ready"]).ok();
    let result = scene.tool_call()["result"].clone();
    assert_eq!((&result["text"], &result["session"]), (&json!("grantedgranted"), &json!("s1")));
}

#[test]
fn a_retry_goes_on_in_the_session_of_the_failed_call() {
    let scene = Scene::new(&json!([[{"make": "half"}, {"exit": 3}], [{"prompts": 1}]]), "");
    let failed = scene.call(&json!({"prompt": "build it"})).to_string();
    assert!(failed.contains("ended with exit code 3 before its turn was over"), "{failed}");
    assert_eq!(scene.tool_call()["errorClass"], "agent_ended");
    scene.0.run(&["run-all-ready", "--plan", "p.json", "--retry-failed"]).ok();
    let result = scene.tool_call()["result"].clone();
    assert_eq!((&result["session"], &result["turns"]), (&json!("s1"), &json!(2)));
    assert!(result["text"].as_str().unwrap().contains("You were interrupted"), "{result}");
}

#[test]
fn a_failed_verification_goes_back_to_the_agent_in_its_session() {
    let turns = json!([[{"make": "draft"}, {"say": "done"}], [{"make": "fixed"}, {"prompts": 1}]]);
    let scene = Scene::new(&turns, "");
    let cli = &scene.0;
    let check = "test -e draft; test -e fixed || { echo 'fixed is missing'; exit 1; }";
    let task = |id: &str, rework: u32| {
        let agent = json!({"agent": {"prompt": "write both"}});
        json!({"id": id, "call": agent, "verify": {"run": check}, "rework": rework})
    };
    cli.file("p.json", &json!({"name": "p", "tasks": [task("t", 1)]}).to_string());
    cli.run(&["run-all-ready", "--plan", "p.json"]).ok();
    let call = scene.tool_call();
    assert_eq!((&call["result"]["session"], &call["result"]["turns"]), (&json!("s1"), &json!(2)));
    let text = call["result"]["text"].as_str().unwrap();
    assert!(text.contains("write both") && text.contains("fixed is missing"), "{text}");
    assert_eq!(text.matches("write both").count(), 1, "the session has the prompt already: {text}");
    let history = cli.run(&["history", "t"]).ok().stdout;
    assert!(history.contains("sent back, call c1 goes on: rework 1 of at most 1"), "{history}");

    // A check that goes on failing fails the task with its text.
    fs::remove_file(cli.path("work/fixed")).unwrap();
    cli.file("scenario.json", &json!({"turns": [[{"say": "done"}]]}).to_string());
    cli.file("q.json", &json!({"name": "q", "tasks": [task("u", 1)]}).to_string());
    let failed = cli.run(&["run-all-ready", "--plan", "q.json"]);
    assert_eq!(failed.code, Some(1), "{failed}");
    let shown = cli.run(&["show", "u", "--json"]).ok().json()["data"].clone();
    assert_eq!(shown["metadata"]["toolCalls"][0]["attempts"], 2);
    let error = shown["error"].as_str().unwrap();
    assert!(error.starts_with("verification `c2` (shell): "), "{error}");
}

/// Runs a plan of three tasks, `a`, `b` and `c`, whose agents repeat all prompts of their session, and returns the results of the later ones.
fn prompts_of_sessions(more: &Value) -> [Value; 2] {
    let scene = Scene::new(&json!([]), "");
    let mut scenario = json!({"turns": [[{"prompts": 1}]]});
    for (name, value) in more.as_object().unwrap() {
        scenario[name] = value.clone();
    }
    scene.0.file("scenario.json", &scenario.to_string());
    let resumed = |id: &str| {
        let session = json!({"resume": "${{ tasks.a.result.session }}"});
        json!({"id": id, "needs": ["a"], "call": {"agent": {"prompt": id, "session": session}}})
    };
    let first = json!({"id": "a", "call": {"agent": {"prompt": "a", "session": "fresh"}}});
    let plan = json!({"name": "p", "tasks": [first, resumed("b"), resumed("c")]});
    scene.0.file("p.json", &plan.to_string());
    // The scripted agent keeps its sessions in one file.
    scene.0.run(&["run-all-ready", "--plan", "p.json", "--jobs", "1"]).ok();
    ["b", "c"].map(|id| {
        let shown = scene.0.run(&["show", id, "--json"]).ok().json()["data"].clone();
        shown["metadata"]["toolCalls"][0]["result"].clone()
    })
}

#[test]
fn a_call_goes_on_in_the_session_of_another_task_or_in_a_copy_of_it() {
    let [b, c] = prompts_of_sessions(&json!({"fork": true}));
    assert_eq!((&b["text"], &c["text"]), (&json!("[[\"a\"], [\"b\"]]"), &json!("[[\"a\"], [\"c\"]]")));
    assert_ne!(b["session"], c["session"]);
    let [b, c] = prompts_of_sessions(&json!({}));
    assert_eq!((&b["session"], &c["session"]), (&json!("s1"), &json!("s1")));
    let [b, _] = prompts_of_sessions(&json!({"loadSession": false}));
    assert_eq!(b["text"], "[[\"b\"]]", "an agent that cannot go on starts over");
}

#[test]
fn a_task_that_is_named_gives_its_session_and_a_shared_one_is_not_copied() {
    let scene = Scene::new(&json!([]), "");
    scene.0.file("scenario.json", &json!({"turns": [[{"prompts": 1}]], "fork": true}).to_string());
    let task = |id: &str, needs: &[&str], session: Value| {
        let agent = json!({"prompt": id, "session": session});
        json!({"id": id, "needs": needs, "calls": [{"agent": agent}, {"run": "true"}]})
    };
    let named = [task("a", &[], json!("fresh")), task("b", &["a"], json!({"resume": "a"}))];
    scene.0.file("p.json", &json!({"name": "p", "tasks": named}).to_string());
    scene.0.run(&["run-all-ready", "--plan", "p.json"]).ok();
    let result = |id: &str| {
        let shown = scene.0.run(&["show", id, "--json"]).ok().json()["data"].clone();
        shown["metadata"]["toolCalls"][0]["result"].clone()
    };
    assert_eq!((&result("b")["text"], &result("b")["session"]), (&json!("[[\"a\"], [\"b\"]]"), &json!("s2")));

    // Nothing orders them, and yet they work one after the other in one conversation.
    let shared = ["d", "e", "f"].map(|id| task(id, &[], json!("shared")));
    scene.0.file("q.json", &json!({"name": "q", "tasks": shared}).to_string());
    scene.0.run(&["run-all-ready", "--plan", "q.json", "--jobs", "3"]).ok();
    let results = ["d", "e", "f"].map(result);
    assert!(results.iter().all(|result| result["session"] == "s3"), "{results:?}");
    let longest = results.iter().map(|result| result["text"].as_str().unwrap().len()).max();
    let all = results.iter().find(|result| result["text"].as_str().map(str::len) == longest).unwrap();
    let prompts: Vec<Vec<String>> = serde_json::from_str(all["text"].as_str().unwrap()).unwrap();
    assert_eq!(prompts.len(), 3, "{prompts:?}");
}

#[test]
fn a_person_sends_a_result_back_to_the_agent_and_accepts_the_next_one() {
    if !may_decide() {
        return;
    }
    let turns =
        json!([[{"make": "draft"}, {"say": "the draft is there"}], [{"make": "final"}, {"prompts": 1}]]);
    let scene = Scene::new(&turns, "");
    let cli = &scene.0;
    let agent = json!({"agent": {"prompt": "write both"}});
    let task =
        json!({"id": "t", "call": agent, "verify": {"run": "test -e draft"}, "approval": {"after": true}});
    cli.file(
        "p.json",
        &json!({"name": "p", "tasks": [task, {"id": "u", "needs": "t", "run": "true"}]}).to_string(),
    );
    let asked = cli.run(&["run-all-ready", "--plan", "p.json"]);
    assert_eq!(asked.code, Some(3), "{asked}");
    let shown = cli.run(&["show", "t"]).ok().stdout;
    for part in ["Is the result accepted?", "the draft is there", "taskpawl reject t --rework TEXT"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_ne!(cli.run(&["reject", "t", "--rework", "x"]).code, Some(0), "it takes a person");
    cli.by_person(&["reject", "t", "--rework", "also write final"]).ok();
    assert_eq!(cli.run(&["run-all-ready", "--plan", "p.json"]).code, Some(3));
    let call = scene.tool_call();
    assert_eq!((&call["result"]["session"], &call["result"]["turns"]), (&json!("s1"), &json!(2)));
    let text = call["result"]["text"].as_str().unwrap();
    assert!(text.contains("a person read its result") && text.contains("also write final"), "{text}");
    cli.by_person(&["approve", "t"]).ok();
    let last = cli.run(&["run-all-ready", "--plan", "p.json"]).ok();
    let call = scene.tool_call();
    assert_eq!((&call["attempts"], &call["status"]), (&json!(2), &json!("succeeded")), "{last}");
    let history = cli.run(&["history", "t"]).ok().stdout;
    assert!(history.contains("sent back: also write final"), "{history}");
}

#[test]
fn an_agent_with_plan_access_reads_and_adds_as_its_call_and_no_more() {
    let add = json!({"name": "task_add", "arguments": {"name": "Found", "id": "found", "run": "echo found"}});
    let show = json!({"name": "plan_show", "arguments": {}});
    let claim = json!({"name": "task_update", "arguments": {"id": "hand", "action": "claim"}});
    let turns = json!([[{"mcp": [add, show, claim]}]]);
    let plan = |access: &str| {
        let calls = json!([{"agent": {"prompt": "look"}, "planAccess": access}]);
        json!({"name": "p", "tasks": [{"id": "t", "calls": calls}, {"id": "hand", "needs": "t"}]})
    };
    let run = |access: &str| {
        let scene = Scene::new(&turns, "");
        scene.0.file("p.json", &plan(access).to_string());
        let ran = scene.0.run(&["run-all-ready", "--plan", "p.json"]);
        let text = scene.tool_call()["result"]["text"].clone();
        let text = text.as_str().unwrap_or_else(|| panic!("{ran}: {}", scene.tool_call()));
        let answers: Vec<Value> = serde_json::from_str(text).unwrap();
        (scene, answers)
    };
    let (scene, answers) = run("add");
    assert_eq!(answers[0]["structuredContent"]["task"]["id"], "found", "{}", answers[0]);
    assert!(answers[1].to_string().contains("found"), "{}", answers[1]);
    assert_eq!(answers[2]["isError"], true, "{}", answers[2]);
    // It is a task of a model, in the plan of the call, and asks before it runs.
    let shown = scene.0.run(&["show", "found", "--json"]).ok().json()["data"].clone();
    assert_eq!(
        (&shown["plan"], &shown["blockedReason"]["type"]),
        (&json!("p"), &json!("approval")),
        "{shown}"
    );
    let (scene, answers) = run("read");
    assert_eq!((&answers[0]["isError"], answers[1]["isError"] != json!(true)), (&json!(true), true));
    assert_ne!(scene.0.run(&["show", "found"]).code, Some(0));
}
