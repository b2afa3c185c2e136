//! The checklist page that hosts display beside an answer: the extension MCP Apps, `io.modelcontextprotocol/ui`.
//!
//! The page uses no network. It calls the tools of this server through the host, for reading the plan and for ending
//! manual tasks. Hosts without the extension show the answers as they are.

use rmcp::model::{MetaObject, Resource, ResourceContents, Tool};
use serde_json::{Map, Value, json};

use super::core::Core;
use super::options::ServerOptions;

/// Identifier of the extension.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Address of the page.
pub(super) const URI: &str = "ui://taskpawl/checklist.html";

/// Media type of a page that hosts display.
const TYPE: &str = "text/html;profile=mcp-app";

const PAGE: &str = include_str!("app/checklist.html");

/// The tools whose answers the page can display. The to-do dialects among them have fixed forms of answers.
const TOOLS: [&str; 6] =
    ["plan_show", "manage_tasks", "manage_todo_list", "todowrite", "todoread", "ListTasks"];

/// Returns the extension with its settings, as the server announces it.
pub(super) fn extension() -> (String, Map<String, Value>) {
    (EXTENSION.to_owned(), object(json!({"mimeTypes": [TYPE]})))
}

/// Returns whether the page can display the answers of a tool.
pub(super) fn draws(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// Adds the page to a tool whose answers it can display.
pub(super) fn with_page(tool: Tool) -> Tool {
    if draws(&tool.name) { tool.with_meta(meta(&json!({"resourceUri": URI}))) } else { tool }
}

/// Returns the page as a resource.
pub(super) fn resource() -> Resource {
    Resource::new(URI, "checklist-page")
        .with_description("The live checklist, drawn in the chat by hosts that can")
        .with_mime_type(TYPE)
        .with_meta(layout())
}

/// Returns the content at [`URI`].
pub(super) fn read(options: &ServerOptions) -> ResourceContents {
    let can_tick = Core::named(Core::TaskUpdate.name(), options).is_some();
    let page = if can_tick { PAGE.to_owned() } else { PAGE.replacen("<body>", "<body data-read-only>", 1) };
    ResourceContents::text(page, URI).with_mime_type(TYPE).with_meta(layout())
}

/// Returns the page's layout: no external resources, and no border by the host, since the page has its own.
fn layout() -> MetaObject {
    meta(&json!({"csp": {}, "prefersBorder": false}))
}

fn meta(ui: &Value) -> MetaObject {
    MetaObject(object(json!({"ui": ui})))
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else {
        unreachable!("BUG: it is an object");
    };
    fields
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let number =
                chunk.iter().chain(&[0; 3]).take(3).fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            for place in 0..4 {
                let digit = char::from(DIGITS[(number >> (18 - 6 * place)) & 63]);
                text.push(if place <= chunk.len() { digit } else { '=' });
            }
        }
        text
    }

    fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
        text.split_once(start).unwrap().1.split_once(end).unwrap().0
    }

    /// Scripts and styles injected from outside do not run: the policy names those of the page by their hashes.
    #[test]
    fn the_policy_of_the_page_lets_nothing_in() {
        let policy = between(PAGE, "Content-Security-Policy\" content=\"", "\"");
        let hash = |text: &str| format!("'sha256-{}'", base64(&Sha256::digest(text)));
        let script = hash(between(PAGE, "<script>", "</script>"));
        let style = hash(between(PAGE, "<style>", "</style>"));
        assert_eq!(
            policy,
            format!(
                "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'"
            )
        );
    }

    #[test]
    fn the_page_is_whole_in_itself_and_puts_no_markup_in() {
        assert_eq!(PAGE.matches("<script").count(), 1);
        for listener in [
            "http:",
            "https:",
            "src=",
            "href=",
            "@import",
            "url(",
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "eval(",
            "Function(",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "localStorage",
            "style=",
        ] {
            assert!(!PAGE.contains(listener), "{listener}");
        }
    }
}
