use rmcp::model::Tool;

use super::support::{ERAS, Scene, connect};

/// Maximum size of all tool definitions, in bytes of compact JSON: 1,500 tokens at four bytes each.
const MAX_BYTES: usize = 6_000;

#[tokio::test]
async fn the_definitions_of_all_tools_stay_within_their_budget() {
    let scene = Scene::new();
    for era in ERAS {
        let client = connect(&scene.server(), era).await;
        let tools = client.running.list_all_tools().await.unwrap();
        let size = |tools: &[Tool]| serde_json::to_string(tools).unwrap().len();
        for tool in &tools {
            println!("{:>6} bytes  {}", size(std::slice::from_ref(tool)), tool.name);
        }
        let bytes = size(&tools);
        println!("{bytes:>6} bytes, about {} tokens, for all", bytes / 4);
        assert!(bytes <= MAX_BYTES, "{bytes} bytes are more than {MAX_BYTES}");
        assert_eq!(tools.len(), 8);
    }
}

#[tokio::test]
async fn every_tool_says_how_it_behaves_and_what_it_answers() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    for tool in client.running.list_all_tools().await.unwrap() {
        let hints = tool.annotations.clone().unwrap();
        let all =
            [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint];
        assert!(all.iter().all(Option::is_some), "{}", tool.name);
        let output = tool.output_schema.clone().unwrap();
        assert_eq!(output["type"], "object", "{}", tool.name);
        assert!(output["properties"].get("nextActions").is_some(), "{}", tool.name);
    }
}
