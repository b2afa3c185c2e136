use rmcp::ServiceError;
use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, ClientRequest, CompleteRequestParams, CustomRequest, ErrorCode,
    GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams, Reference, ServerNotification,
    SubscribeRequestParams, SubscriptionFilter,
};
use serde_json::{Value, json};
use taskpawl_mcp::{McpServer, PromptText, ServerOptions, ToolSet};

use super::support::{Client, ERAS, Ears, Era, Scene, connect, connect_as};

async fn read(client: &Client, uri: &str) -> Value {
    let read = client.running.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
    let content = serde_json::to_value(&read.contents[0]).unwrap();
    assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("application/json")));
    serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn the_plan_can_be_read() {
    for era in ERAS {
        let scene = Scene::new();
        let client = connect(&scene.server(), era).await;
        client.call("plan_write", json!({"name": "site", "plan": {"tasks": [{"id": "a", "name": "A"}, {"id": "b", "needs": ["a"], "call": {"log": {"message": "x"}}}]}})).await;
        let run = client.run(json!({})).await;
        let uris: Vec<String> = client
            .running
            .list_all_resources()
            .await
            .unwrap()
            .into_iter()
            .map(|resource| resource.uri)
            .collect();
        let page = "ui://taskpawl/checklist.html";
        assert_eq!(uris, ["taskpawl://digest", "taskpawl://ready", "taskpawl://plan/site", page]);
        let templates = client.running.list_all_resource_templates().await.unwrap();
        let templates: Vec<&str> = templates.iter().map(|template| template.uri_template.as_str()).collect();
        assert_eq!(templates, ["taskpawl://task/{id}", "taskpawl://plan/{name}", "taskpawl://run/{id}"]);
        assert_eq!(read(&client, "taskpawl://digest").await["counts"], json!({"todo": 2}));
        assert_eq!(read(&client, "taskpawl://ready").await["byHand"][0]["task"], "a");
        assert_eq!(read(&client, "taskpawl://task/a").await["name"], "A");
        assert_eq!(read(&client, "taskpawl://plan/site").await["tasks"][1]["id"], "b");
        let address = format!("taskpawl://run/{}", run["run_id"].as_str().unwrap());
        assert_eq!(read(&client, &address).await["exit"], 3);
        for missing in
            ["taskpawl://task/none", "taskpawl://plan/none", "taskpawl://run/none", "file:///etc/passwd"]
        {
            client.running.read_resource(ReadResourceRequestParams::new(missing)).await.unwrap_err();
        }
    }
}

/// Returns the size of the whole answer to a read, in bytes.
async fn size(client: &Client, uri: &str) -> usize {
    let read = client.running.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
    serde_json::to_string(&read).unwrap().len()
}

#[tokio::test]
async fn what_lists_is_short_and_says_which_call_goes_on() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    let name = "long-\"name\"".repeat(20);
    let hand = |n: usize| json!({"id": format!("h{n:03}"), "name": name});
    let call = |n: usize| json!({"id": format!("c{n:03}"), "name": name, "call": {"log": {"message": "x"}}});
    let lost = |n: usize| json!({"id": format!("u{n:03}"), "name": name, "call": {"nonsense": {}}});
    let tasks: Vec<Value> = (0..60).flat_map(|n| [hand(n), call(n), lost(n)]).collect();
    client
        .call("plan_write", json!({"name": "my.plan", "plan": {"tools": ["nonsense"], "tasks": tasks}}))
        .await;
    let uri = "taskpawl://plan/my.plan";
    for uri in ["taskpawl://digest", "taskpawl://ready", uri] {
        assert!(size(&client, uri).await <= 8_000, "{uri}");
    }
    let plan = read(&client, uri).await;
    let shown = plan["tasks"].as_array().unwrap().len();
    assert_eq!((&plan["total"], &plan["leftOut"]["tasks"]), (&json!(180), &json!(180 - shown)), "{plan}");
    let next = &plan["nextActions"][0];
    assert_eq!(*next, json!({"tool": "plan_show", "arguments": {"plan": "my.plan", "offset": shown}}));
    let rest = client.call("plan_show", next["arguments"].clone()).await;
    assert_eq!(rest["tasks"][0]["id"], tasks[shown]["id"]);
    assert_eq!(rest["nextActions"][0]["arguments"]["offset"], rest["nextOffset"]);

    let ready = read(&client, "taskpawl://ready").await;
    for list in ["forRuns", "byHand", "forNobody"] {
        let listed = ready[list].as_array().unwrap().len();
        assert_eq!(ready["leftOut"][list], json!(60 - listed), "{ready}");
    }
    let actions = ready["nextActions"].as_array().unwrap();
    assert!(
        actions.contains(&json!({"tool": "ready_list", "arguments": {"limit": 60, "max_bytes": 16_000}})),
        "{ready}"
    );
    assert!(actions.iter().all(|action| action.get("tool").is_some()), "{ready}");
    let more = client.call("ready_list", json!({"limit": 60, "max_bytes": 16_000})).await;
    let listed = more["byHand"].as_array().unwrap().len();
    assert!(listed > 15 && more["leftOut"]["byHand"] == 60 - listed, "{more}");

    let text = "word ".repeat(20_000);
    client.call("task_add", json!({"name": "long", "id": "long", "description": text})).await;
    assert!(size(&client, "taskpawl://task/long").await <= 8_000);
    let task = read(&client, "taskpawl://task/long").await;
    let pages = json!({"tool": "task_get", "arguments": {"id": "long", "part": "description"}});
    assert!(task["shortened"] == true && task["nextActions"].as_array().unwrap().contains(&pages), "{task}");
}

#[tokio::test]
async fn every_plan_is_listed_page_by_page() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    for n in 0..60 {
        let plan = json!({"tasks": [{"id": format!("t{n}")}]});
        client.call("plan_write", json!({"name": format!("p.{n:02}"), "plan": plan})).await;
    }
    let first = client.running.list_resources(None).await.unwrap();
    assert!(serde_json::to_string(&first).unwrap().len() <= 8_000, "{first:?}");
    let all = client.running.list_all_resources().await.unwrap();
    let plans: Vec<&str> =
        all.iter().filter_map(|found| found.uri.strip_prefix("taskpawl://plan/")).collect();
    assert_eq!((plans.len(), plans[7]), (60, "p.07"));
}

#[tokio::test]
async fn a_cursor_that_no_list_gave_is_refused_by_name() {
    let scene = Scene::new();
    for era in ERAS {
        let client = connect(&scene.server(), era).await;
        let wrong = || Some(PaginatedRequestParams::default().with_cursor(Some("zzz".to_owned())));
        for refused in [
            client.running.list_tools(wrong()).await.unwrap_err(),
            client.running.list_prompts(wrong()).await.unwrap_err(),
            client.running.list_resources(wrong()).await.unwrap_err(),
            client.running.list_resource_templates(wrong()).await.unwrap_err(),
        ] {
            let rmcp::ServiceError::McpError(error) = refused else { panic!("{refused:?}") };
            assert_eq!(error.code, rmcp::model::ErrorCode::INVALID_PARAMS);
            assert_eq!(
                error.message,
                "argument `cursor`: no list of this server goes on there; begin without one"
            );
        }
    }
}

#[tokio::test]
async fn errors_do_not_repeat_long_names() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let long = "x".repeat(100_000);
    let tool = client.running.call_tool(CallToolRequestParams::new(long.clone())).await.unwrap_err();
    let prompt = client.running.get_prompt(GetPromptRequestParams::new(&long)).await.unwrap_err();
    let mut errors = vec![tool, prompt];
    for uri in [long.clone(), format!("taskpawl://task/{long}"), format!("taskpawl://run/{long}")] {
        errors.push(client.running.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap_err());
    }
    let method = ClientRequest::CustomRequest(CustomRequest::new(long, None));
    errors.push(client.running.send_request(method).await.unwrap_err());
    for error in errors {
        let ServiceError::McpError(error) = error else { panic!("{error:?}") };
        let bytes = serde_json::to_string(&error).unwrap().len();
        assert!(bytes <= 2_000 && error.message.contains("xxx"), "{bytes}");
    }
    // Invalid parameters must not be reported as an unknown method.
    let call = CustomRequest::new("tools/call", Some(json!({"name": "plan_show", "arguments": "{}"})));
    let error = client.running.send_request(ClientRequest::CustomRequest(call)).await.unwrap_err();
    let ServiceError::McpError(error) = error else { panic!("{error:?}") };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.contains("argument `arguments`: expected an object, not \"{}\""), "{error:?}");
}

#[tokio::test]
async fn ids_and_names_are_completed() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let tasks: Vec<Value> = (0..150).map(|n| json!({"id": format!("task-{n:03}")})).collect();
    client.call("plan_write", json!({"name": "site", "plan": {"tasks": tasks}})).await;
    let complete = async |reference: Reference, name: &str, value: &str| {
        let request = CompleteRequestParams::new(reference, ArgumentInfo::new(name, value));
        client.running.complete(request).await.unwrap().completion
    };
    let task = || Reference::for_resource("taskpawl://task/{id}");
    let few = complete(task(), "id", "task-14").await;
    assert_eq!((few.values.len(), few.values[0].as_str(), few.has_more), (10, "task-140", Some(false)));
    let many = complete(task(), "id", "").await;
    assert_eq!((many.values.len(), many.has_more), (100, Some(true)));
    assert_eq!(complete(Reference::for_prompt("review_failures"), "plan", "s").await.values, ["site"]);
    assert_eq!(complete(Reference::for_prompt("plan_goal"), "goal", "s").await.values, [""; 0]);
    for agent in ["bob", "ann", "ann"] {
        client.call("ready_list", json!({"claim": true, "agent": agent})).await;
    }
    let agents = async |begun| complete(Reference::for_prompt("resume_work"), "agent", begun).await.values;
    assert_eq!(
        (agents("").await, agents("b").await),
        (vec!["ann".to_owned(), "bob".to_owned()], vec!["bob".to_owned()])
    );
}

#[tokio::test]
async fn prompts_say_where_the_plan_stands() {
    let scene = Scene::new();
    let set = ToolSet {
        prompts: vec![PromptText {
            name: "guide".to_owned(),
            description: "How".to_owned(),
            text: "So.".to_owned(),
        }],
        ..ToolSet::default()
    };
    let options = ServerOptions { sets: vec![set], ..ServerOptions::default() };
    let client = connect(&McpServer::new(scene.plans(), options).unwrap(), ERAS[1]).await;
    client.call("task_add", json!({"name": "one", "id": "one"})).await;
    let names: Vec<String> =
        client.running.list_all_prompts().await.unwrap().into_iter().map(|prompt| prompt.name).collect();
    assert_eq!(names, ["plan_goal", "plan_expand", "plan_repair", "resume_work", "review_failures", "guide"]);
    let get = async |name: &str, arguments: Value| {
        let request =
            GetPromptRequestParams::new(name).with_arguments(arguments.as_object().unwrap().clone());
        client.running.get_prompt(request).await.map(|prompt| {
            serde_json::to_value(&prompt.messages[0].content).unwrap()["text"].as_str().unwrap().to_owned()
        })
    };
    assert!(get("plan_goal", json!({"goal": "a new site"})).await.unwrap().starts_with("Goal: a new site\n"));
    let wrong = async |name: &str, arguments: Value| {
        let refused = get(name, arguments).await.unwrap_err();
        let rmcp::ServiceError::McpError(error) = refused else { panic!("{refused:?}") };
        error.message.into_owned()
    };
    let missing = "the prompt `plan_goal` needs the argument `goal`";
    assert_eq!(wrong("plan_goal", json!({})).await, missing);
    assert_eq!(wrong("plan_goal", json!({"goal": null})).await, missing);
    for (name, argument) in [
        ("plan_goal", "goal"),
        ("plan_expand", "task"),
        ("plan_repair", "plan"),
        ("resume_work", "agent"),
        ("review_failures", "plan"),
    ] {
        let said = format!("argument `arguments.{argument}`: expected text, not `5`");
        assert_eq!(wrong(name, json!({argument: 5})).await, said);
    }
    assert_eq!(
        wrong("zzz", json!({})).await,
        "argument `name`: no prompt `zzz`: prompts/list has those that there are"
    );
    let resume = get("resume_work", json!({"agent": "ann"})).await.unwrap();
    assert!(resume.contains("\"you\":\"ann\"") && resume.contains("\"id\":\"one\""), "{resume}");
    assert!(get("review_failures", json!({"plan": "site"})).await.unwrap().contains("\"plan\": \"site\""));
    assert_eq!(get("guide", json!({})).await.unwrap(), "So.");
    get("none", json!({})).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_for_changes_have_the_data_of_the_plan() {
    let scene = Scene::new();
    let client = connect(&scene.trusting_server(), ERAS[1]).await;
    let tasks =
        json!([{"id": "build", "call": {"fail": {"message": "broken"}}}, {"id": "read", "name": "Read it"}]);
    client.call("plan_write", json!({"plan": {"name": "site", "tasks": tasks}})).await;
    let get = async |name: &str, arguments: Value| {
        let request =
            GetPromptRequestParams::new(name).with_arguments(arguments.as_object().unwrap().clone());
        client.running.get_prompt(request).await.map(|prompt| json!(prompt.messages).to_string())
    };
    let expand = get("plan_expand", json!({"task": "read"})).await.unwrap();
    assert!(expand.contains("site") && expand.contains("read: Read it"), "{expand}");
    let whole = get("plan_repair", json!({"plan": "site"})).await.unwrap_err().to_string();
    assert!(whole.contains("site"), "{whole}");
    let ran = client.call("run_ready", json!({"wait_s": 20})).await;
    assert!(ran.to_string().contains("broken"), "{ran}");
    let repair = get("plan_repair", json!({"plan": "site"})).await.unwrap();
    assert!(repair.contains("Failed task build") && repair.contains("merge: true"), "{repair}");
}

/// The changes come from another handle on the store, as from another process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_by_others_are_told_in_both_eras() {
    for era in ERAS {
        let scene = Scene::new();
        let ears = Ears::default();
        let client = connect_as(&scene.server(), era, ears.clone()).await;
        client.call("plan_write", json!({"plan": {"tasks": [{"id": "a"}, {"id": "b"}]}})).await;
        let wanted = ["taskpawl://task/a", "taskpawl://digest"];
        let mut stream = match era {
            Era::Handshake => {
                for uri in wanted {
                    #[expect(deprecated, reason = "that is how the older era subscribes")]
                    client.running.subscribe(SubscribeRequestParams::new(uri)).await.unwrap();
                }
                None
            }
            Era::Stateless => {
                let mut filter = SubscriptionFilter::new();
                filter.resource_subscriptions = Some(wanted.iter().map(ToString::to_string).collect());
                Some(client.running.listen(filter).await.unwrap())
            }
        };
        let others = scene.plans();
        others.manager().note("b", "not asked for").unwrap();
        others.manager().note("a", "asked for").unwrap();
        let mut heard: Vec<String> = Vec::new();
        // A subscription of the newer era begins with everything counting as changed once.
        while !wanted.iter().all(|uri| {
            heard.iter().filter(|heard| heard == uri).count() >= if stream.is_some() { 2 } else { 1 }
        }) {
            if let Some(stream) = &mut stream {
                let told = stream.next().await.unwrap();
                if let Some(ServerNotification::ResourceUpdatedNotification(updated)) = told {
                    heard.push(updated.params.uri);
                }
            } else {
                ears.heard.notified().await;
                heard = ears.updated.lock().unwrap().clone();
            }
        }
        assert!(!heard.contains(&"taskpawl://task/b".to_owned()), "{heard:?}");
    }
}
