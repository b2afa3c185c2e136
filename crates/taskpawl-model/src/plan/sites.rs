//! Locations of expressions. They are recorded while the plan is read, and checked when all of it is known.

use super::node::{Content, Node};
use super::reader::Reader;
use super::site::{Site, Stage, ToolPlace};
use crate::expr::OPEN;
use crate::value::secret::mentions_secret;
use taskpawl_json::Position;

impl<'n> Reader<'n> {
    /// Records an expression: a condition or a list.
    pub(super) fn expression_site(&mut self, stage: Stage, node: &'n Node<'n>) {
        let bare = node.as_str().is_some_and(|text| !text.trim().is_empty());
        if bare || has_expression(node) {
            self.site(stage, node, bare, "");
        }
    }

    /// Records the arguments of a call if they contain expressions or secrets.
    pub(super) fn args_site(&mut self, tool: &str, node: &'n Node<'n>, call: usize) {
        if self.is_located || has_expression(node) || has_secret(node) {
            self.site(Stage::Args(call), node, false, tool);
        }
    }

    /// Records that the current field names the tool of a call, if positions are recorded.
    pub(super) fn tool_place(&mut self, call: usize, at: Position) {
        if self.is_located && !self.in_defaults {
            let (draft, path) = (self.drafts.len(), self.path());
            self.tools.push(ToolPlace { draft, call, at, path });
        }
    }

    pub(super) fn site(&mut self, stage: Stage, node: &'n Node<'n>, bare: bool, tool: &str) {
        let draft = (!self.in_defaults).then_some(self.drafts.len());
        self.sites.push(Site { draft, path: self.path(), stage, node, bare, tool: tool.to_owned() });
    }

    /// Reads the condition of a task.
    pub(super) fn when(&mut self, node: &'n Node<'n>) -> Option<String> {
        self.expression_site(Stage::When, node);
        self.filled_text(node)
    }
}

pub(super) fn has_secret(node: &Node) -> bool {
    match &node.content {
        Content::Text(text) => mentions_secret(text),
        Content::List(items) => items.iter().any(has_secret),
        Content::Object(entries) => entries.iter().any(|entry| has_secret(&entry.value)),
        Content::Null | Content::Bool(_) | Content::Number(_) => false,
    }
}

/// Recursion is safe: nodes are at most 256 deep.
pub(super) fn has_expression(node: &Node) -> bool {
    match &node.content {
        Content::Text(text) => text.contains(OPEN),
        Content::List(items) => items.iter().any(has_expression),
        Content::Object(entries) => {
            entries.iter().any(|entry| entry.key.contains(OPEN) || has_expression(&entry.value))
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => false,
    }
}
