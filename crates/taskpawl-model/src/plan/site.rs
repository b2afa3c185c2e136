//! Locations of expressions and tools in a plan.

use super::node::Node;
use taskpawl_json::Position;

/// A value that may contain expressions.
#[derive(Debug)]
pub(super) struct Site<'n> {
    /// The index of the draft; `None` in the defaults.
    pub(super) draft: Option<usize>,
    pub(super) path: String,
    pub(super) stage: Stage,
    pub(super) node: &'n Node<'n>,
    /// True if a text is an expression even without braces.
    pub(super) bare: bool,
    /// The tool whose argument the value is; empty for other values.
    pub(super) tool: String,
}

/// The position at which a call names its tool.
#[derive(Debug)]
pub(super) struct ToolPlace {
    /// The index of the draft.
    pub(super) draft: usize,
    pub(super) call: usize,
    pub(super) at: Position,
    pub(super) path: String,
}

/// The moment at which an expression is evaluated, which determines the data it can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// `when` of a task.
    When,
    /// `forEach.in`.
    List,
    /// `cache.key`.
    Key,
    /// `when` of the call at this index.
    CallWhen(usize),
    /// Arguments of the call at this index.
    Args(usize),
    /// `repeat.until`.
    Until,
    /// `include.with`: before the task and its subtasks start, without values of its own.
    With,
    /// `returns` of the plan: after all of its tasks.
    Returns,
}
