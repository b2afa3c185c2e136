use rmcp::model::Tool;
use serde_json::json;
use taskpawl_mcp::{McpServer, Offer, ServerOptions};

use super::support::{ERAS, Scene, connect};

/// Maximum size of the tool definitions as hosts show them to a model, in bytes of compact JSON: 1,450 tokens at four bytes
/// each.
const MAX_BYTES: usize = 5_800;

/// The same for the tools of a server for one worker: 500 tokens.
const MAX_BYTES_OF_WORK: usize = 2_000;

/// Returns the size of what hosts show of a tool: its name, its description and the schema of its arguments.
fn shown(tool: &Tool) -> usize {
    json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema})
        .to_string()
        .len()
}

/// Checks the size of all tools. Returns a line for each, and one for all.
fn check(tools: &[Tool], max_bytes: usize) -> String {
    let mut lines: Vec<String> =
        tools.iter().map(|tool| format!("{:>6} bytes  {}", shown(tool), tool.name)).collect();
    let bytes: usize = tools.iter().map(shown).sum();
    lines.push(format!("{bytes:>6} bytes, about {} tokens, for all", bytes / 4));
    assert!(bytes <= max_bytes, "{bytes} bytes are more than {max_bytes}");
    lines.join("\n")
}

#[tokio::test]
async fn the_definitions_of_all_tools_stay_within_their_budget() {
    let scene = Scene::new();
    for era in ERAS {
        let client = connect(&scene.server(), era).await;
        let tools = client.running.list_all_tools().await.unwrap();
        println!("{}", check(&tools, MAX_BYTES));
        assert_eq!(tools.len(), 8);
    }
}

#[tokio::test]
async fn a_worker_gets_few_tools() {
    let scene = Scene::new();
    let options = ServerOptions { offer: Offer::Work, ..ServerOptions::default() };
    let server = McpServer::new(scene.plans(), options).unwrap();
    let client = connect(&server, ERAS[1]).await;
    let tools = client.running.list_all_tools().await.unwrap();
    println!("{}", check(&tools, MAX_BYTES_OF_WORK));
    let writer = connect(&scene.server(), ERAS[1]).await;
    writer.call("task_add", json!({"id": "a", "name": "A"})).await;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["task_get", "task_update", "ready_list"]);
    for (name, arguments) in [
        ("fields", json!({"id": "a", "fields": {"run": "true"}})),
        ("action", json!({"id": "a", "action": "cancel"})),
    ] {
        let refused = client.refused("task_update", arguments).await;
        assert!(refused["error"]["message"].to_string().contains(&format!("argument `{name}`")), "{refused}");
    }
    client.call("task_update", json!({"id": "a", "action": "done"})).await;
}

#[tokio::test]
async fn every_tool_says_how_it_behaves() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    for tool in client.running.list_all_tools().await.unwrap() {
        let hints = tool.annotations.clone().unwrap();
        let all =
            [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint];
        assert!(all.iter().all(Option::is_some), "{}", tool.name);
        assert!(tool.output_schema.is_none(), "{}: a schema of the answer costs context", tool.name);
    }
}

#[tokio::test]
async fn a_model_learns_the_language_and_the_tools_through_a_tool() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    let plan = client.call("plan_show", json!({"help": "plan"})).await;
    assert!(plan["topics"].as_str().unwrap().contains("forEach"), "{plan}");
    assert!(plan.to_string().len() <= 1_500, "{}", plan.to_string().len());
    let tools = client.call("plan_show", json!({"help": "tools"})).await.to_string();
    for shape in ["shell {command, ", "write_file {path, content, append?", "edit_file {path, old, new, "] {
        assert!(tools.contains(shape), "{shape}: {tools}");
    }
    let one = client.call("plan_show", json!({"help": "write_file"})).await;
    assert_eq!(one["required"], json!(["path", "content"]), "{one}");
    assert_eq!(one["arguments"]["path"]["type"], "string", "{one}");
    let refused = client.refused("plan_show", json!({"help": "nonsense"})).await.to_string();
    assert!(refused.contains("there are plan, tools, run, calls"), "{refused}");
    let refused =
        client.refused("task_add", json!({"name": "x", "call": {"frobnicate": {}}})).await.to_string();
    assert!(refused.contains("the tools are ") && refused.contains("write_file"), "{refused}");
}
