use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, GetPromptRequestParams, ReadResourceRequestParams, Reference,
    ServerNotification, SubscribeRequestParams, SubscriptionFilter,
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
    assert_eq!(names, ["plan_goal", "resume_work", "review_failures", "guide"]);
    let get = async |name: &str, arguments: Value| {
        let request =
            GetPromptRequestParams::new(name).with_arguments(arguments.as_object().unwrap().clone());
        client.running.get_prompt(request).await.map(|prompt| {
            serde_json::to_value(&prompt.messages[0].content).unwrap()["text"].as_str().unwrap().to_owned()
        })
    };
    assert!(get("plan_goal", json!({"goal": "a new site"})).await.unwrap().starts_with("Goal: a new site\n"));
    get("plan_goal", json!({})).await.unwrap_err();
    let resume = get("resume_work", json!({"agent": "ann"})).await.unwrap();
    assert!(resume.contains("\"you\":\"ann\"") && resume.contains("\"id\":\"one\""), "{resume}");
    assert!(get("review_failures", json!({"plan": "site"})).await.unwrap().contains("\"plan\": \"site\""));
    assert_eq!(get("guide", json!({})).await.unwrap(), "So.");
    get("none", json!({})).await.unwrap_err();
}

/// What changes is changed by another handle on the store, as another process does.
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
        // With a subscription of the newer era everything counts as changed once, when it begins.
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
