//! Where expressions stand. They are noted while the plan is read and checked when all of it is known.

use super::node::{Content, Node};
use super::reader::Reader;
use crate::expr::OPEN;
use crate::secret::mentions_secret;

/// A value that may hold expressions.
#[derive(Debug)]
pub(super) struct Site<'n> {
    /// The number of the draft; nothing in the defaults.
    pub(super) draft: Option<usize>,
    pub(super) path: String,
    pub(super) stage: Stage,
    pub(super) node: &'n Node<'n>,
    /// Whether a text is an expression without braces around it, too.
    pub(super) bare: bool,
    /// The tool that the value is for, if it is for one.
    pub(super) tool: String,
}

/// When an expression is evaluated, which decides what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// `when` of a task.
    When,
    /// `forEach.in`.
    List,
    /// `cache.key`.
    Key,
    /// `when` of the call with a number.
    CallWhen(usize),
    /// Arguments of the call with a number.
    Args(usize),
    /// `repeat.until`.
    Until,
}

impl<'n> Reader<'n> {
    /// Notes an expression: a condition or a list.
    pub(super) fn expression_site(&mut self, stage: Stage, node: &'n Node<'n>) {
        let bare = node.as_str().is_some_and(|text| !text.trim().is_empty());
        if bare || has_expression(node) {
            self.site(stage, node, bare, "");
        }
    }

    /// Notes the arguments of a call, if there are expressions in them, or secrets.
    pub(super) fn args_site(&mut self, tool: &str, node: &'n Node<'n>, call: usize) {
        if has_expression(node) || has_secret(node) {
            self.site(Stage::Args(call), node, false, tool);
        }
    }

    fn site(&mut self, stage: Stage, node: &'n Node<'n>, bare: bool, tool: &str) {
        let draft = (!self.in_defaults).then_some(self.drafts.len());
        self.sites.push(Site { draft, path: self.path(), stage, node, bare, tool: tool.to_owned() });
    }

    /// Reads the condition of a task.
    pub(super) fn when(&mut self, node: &'n Node<'n>) -> Option<String> {
        self.expression_site(Stage::When, node);
        self.filled_text(node)
    }
}

fn has_secret(node: &Node) -> bool {
    match &node.content {
        Content::Text(text) => mentions_secret(text),
        Content::List(items) => items.iter().any(has_secret),
        Content::Object(entries) => entries.iter().any(|entry| has_secret(&entry.value)),
        Content::Null | Content::Bool(_) | Content::Number(_) => false,
    }
}

/// Nodes are at most 256 deep.
fn has_expression(node: &Node) -> bool {
    match &node.content {
        Content::Text(text) => text.contains(OPEN),
        Content::List(items) => items.iter().any(has_expression),
        Content::Object(entries) => {
            entries.iter().any(|entry| entry.key.contains(OPEN) || has_expression(&entry.value))
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => false,
    }
}
