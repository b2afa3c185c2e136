//! The MCP server with the fixtures of the protocol's conformance suite, for `scripts/test-mcp-judges`. It prints its
//! address and token as JSON, and serves until its standard input ends.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use taskpawl::model::task::Origin;
use taskpawl::tools::{CallOrigin, Policy};
use taskpawl::{SandboxSettings, Taskpawl};
use taskpawl_mcp::{HttpListener, McpServer, ServerOptions, serve_conformance};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    taskpawl::child_entry();
    let place = tempfile::tempdir()?;
    let project = place.path().join("project");
    std::fs::create_dir(&project)?;
    let store = place.path().join("tasks.db");
    let plans = Taskpawl::builder(store.to_str().ok_or("the temporary directory is no text")?)
        .root(&project)
        .actor("judge")
        .origin(Origin::Mcp)
        .sandbox(SandboxSettings::off())
        .policy(Policy::default().sandboxing(CallOrigin::Mcp))
        .open()?;
    let options = ServerOptions { approve_elicited: true, ..ServerOptions::default() };
    let server = McpServer::new(plans, options)?;
    let listener = HttpListener::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).await?;
    let place = serde_json::json!({"url": listener.url(), "token": listener.token()});
    writeln!(std::io::stdout(), "{place}")?;
    let stop = CancellationToken::new();
    let (mut input, mut rest) = (tokio::io::stdin(), Vec::new());
    tokio::select! {
        () = serve_conformance(&server, listener, stop.clone()) => {}
        _ = input.read_to_end(&mut rest) => stop.cancel(),
    }
    Ok(())
}
