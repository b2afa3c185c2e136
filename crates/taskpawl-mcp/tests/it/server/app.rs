//! The checklist page that hosts display.

use std::sync::Arc;

use rmcp::model::{ReadResourceRequestParams, SubscribeRequestParams, SubscriptionFilter};
use serde_json::{Value, json};
use taskpawl::async_trait;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl_mcp::{McpServer, ServerOptions, ToolSet};

use super::support::{Client, ERAS, Era, Scene, connect};

const URI: &str = "ui://taskpawl/checklist.html";
const TYPE: &str = "text/html;profile=mcp-app";

async fn page(client: &Client) -> Option<Value> {
    let read = client.running.read_resource(ReadResourceRequestParams::new(URI)).await.ok()?;
    Some(serde_json::to_value(&read.contents[0]).unwrap())
}

/// Returns the tools that name the page.
async fn drawn(client: &Client) -> Vec<String> {
    let tools = client.running.list_all_tools().await.unwrap();
    let tools = tools.iter().map(|tool| serde_json::to_value(tool).unwrap());
    let drawn = tools.filter(|tool| tool["_meta"]["ui"]["resourceUri"] == URI);
    drawn.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn is_listed(client: &Client) -> bool {
    client.running.list_all_resources().await.unwrap().iter().any(|resource| resource.uri == URI)
}

fn extension(client: &Client) -> Value {
    let server = client.running.peer_info().unwrap();
    serde_json::to_value(&server.capabilities).unwrap()["extensions"]["io.modelcontextprotocol/ui"].clone()
}

#[tokio::test]
async fn the_tool_that_shows_the_plan_names_the_page_and_the_page_is_there() {
    for era in ERAS {
        let scene = Scene::new();
        let client = connect(&scene.server(), era).await;
        assert_eq!(extension(&client), json!({"mimeTypes": [TYPE]}));
        assert_eq!(drawn(&client).await, ["plan_show"]);
        assert!(is_listed(&client).await);
        let page = page(&client).await.unwrap();
        assert_eq!((&page["uri"], &page["mimeType"]), (&json!(URI), &json!(TYPE)));
        assert_eq!(page["_meta"]["ui"]["csp"], json!({}), "it reaches nothing");
        let text = page["text"].as_str().unwrap();
        assert!(text.starts_with("<!DOCTYPE html>") && text.contains("<body>"));
        // A client that subscribes to every listed resource gets no error for the page.
        match era {
            Era::Handshake => {
                #[expect(deprecated, reason = "that is how the older era subscribes")]
                client.running.subscribe(SubscribeRequestParams::new(URI)).await.unwrap();
            }
            Era::Stateless => {
                let mut wanted = SubscriptionFilter::new();
                wanted.resource_subscriptions = Some(vec![URI.to_owned(), "taskpawl://none".to_owned()]);
                let heard = client.running.listen(wanted).await.unwrap();
                assert_eq!(
                    heard.acknowledged().resource_subscriptions.as_deref(),
                    Some(&[URI.to_owned()][..])
                );
            }
        }
        // Hosts without the extension show the answer as text.
        let shown = client.raw("plan_show", json!({})).await;
        assert!(shown.content[0].as_text().unwrap().text.contains("the plan is empty"));
    }
}

#[tokio::test]
async fn a_server_that_only_reads_gives_a_page_that_ticks_nothing() {
    let scene = Scene::new();
    let options = ServerOptions { read_only: true, ..ServerOptions::default() };
    let client = connect(&McpServer::new(scene.plans(), options).unwrap(), ERAS[0]).await;
    let page = page(&client).await.unwrap();
    assert!(page["text"].as_str().unwrap().contains("<body data-read-only>"));
}

#[derive(Debug)]
struct Named(ToolSpec);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: CallContext, _: Value) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

fn serving(scene: &Scene, name: &str) -> McpServer {
    let tool = Arc::new(Named(ToolSpec::new(name, "A list.", json!({"type": "object"}))));
    let set = ToolSet { tools: vec![tool], ..ToolSet::default() };
    let options = ServerOptions { has_plan: false, sets: vec![set], ..ServerOptions::default() };
    McpServer::new(scene.plans(), options).unwrap()
}

#[tokio::test]
async fn lists_of_models_are_drawn_and_queues_are_not() {
    let scene = Scene::new();
    let client = connect(&serving(&scene, "manage_tasks"), ERAS[1]).await;
    assert_eq!(drawn(&client).await, ["manage_tasks"]);
    // Without a plan there are no manual tasks to end on the page.
    assert!(page(&client).await.unwrap()["text"].as_str().unwrap().contains("data-read-only>"));
    let client = connect(&serving(&scene, "task"), ERAS[1]).await;
    assert_eq!((drawn(&client).await, extension(&client)), (vec![], Value::Null));
    assert!(!is_listed(&client).await && page(&client).await.is_none());
}

/// The displayed items and those that can be ticked follow from fields of the list.
#[tokio::test]
async fn lists_say_what_is_ready_for_whom_and_how_many_there_are() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let plan = json!({"tasks": [
        {"id": "a", "assignee": "bob"}, {"id": "b", "needs": ["a"]}, {"id": "c", "call": {"fail": {"message": "no"}}},
        {"id": "any", "needs": ["c", "a"], "trigger": "any_failed"},
    ]});
    client.call("plan_write", json!({"plan": plan})).await;
    client.run(json!({})).await;
    let list = client.call("plan_show", json!({"limit": 10})).await;
    let ready: Vec<&str> = list["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|task| task["ready"] == true)
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert_eq!(ready, ["a", "any"], "{list}");
    assert_eq!(list["tasks"][0]["assignee"], "bob");
    assert_eq!(list["counts"], json!({"todo": 3, "failed": 1}));
    // A filtered list has no counts.
    let some = client.call("plan_show", json!({"text": "a"})).await;
    assert_eq!(some.get("counts"), None);
}
