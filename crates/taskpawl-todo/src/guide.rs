//! Documentation of the tools for people and models: help for one tool, a guide for a dialect, and a table of all
//! tools.

use std::fmt::Write as _;

use crate::dialect::Dialect;
use crate::vocabulary::{Kind, PROMOTE, Param, TOOLS, ToolText, of_dialect};

/// Placeholder in the guide files for the sections about the tools.
const PLACE: &str = "{{tools}}\n";

/// Introduction of the section about promotion.
const INTO_PLAN: &str = "\n## From the list into the plan\n\nIf this tool is available, it creates plan tasks from items of the list.\n\n";

/// Returns the guide to a dialect as Markdown: when to use it, when not, and a description of every tool. It is meant
/// for models, as a rule file or as a prompt.
///
/// ```
/// use taskpawl_todo::{Dialect, guide};
///
/// assert!(guide(Dialect::Session).contains("todowrite"));
/// ```
pub fn guide(dialect: Dialect) -> String {
    let text = match dialect {
        Dialect::Conversation => include_str!("../guides/conversation.md"),
        Dialect::Checklist | Dialect::TodoList => include_str!("../guides/checklist.md"),
        Dialect::Session => include_str!("../guides/session.md"),
        Dialect::Queue => include_str!("../guides/queue.md"),
    };
    let tools: Vec<String> = of_dialect(dialect).map(section).collect();
    let text = text.replace(PLACE, &tools.join("\n")) + INTO_PLAN + &section(&PROMOTE);
    if dialect == Dialect::TodoList { text.replace("manage_tasks", "manage_todo_list") } else { text }
}

/// Returns a one-line description of the guide, for lists of prompts.
pub fn summary(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Conversation => "Using the task list of a conversation",
        Dialect::Checklist | Dialect::TodoList => "Using the checklist that people watch",
        Dialect::Session => "Using the to-do list of a session",
        Dialect::Queue => "Using the queues of agents",
    }
}

/// Returns the description, parameters and answers of a tool for a terminal; `None` if no dialect has a tool of this
/// name.
pub fn help(tool: &str) -> Option<String> {
    let tool = TOOLS.iter().chain([&PROMOTE]).find(|known| known.name == tool)?;
    let mut help = format!("{} ({})\n{}\n", tool.name, whose(tool), tool.summary);
    for rule in tool.rules {
        let _ = writeln!(help, "  {rule}");
    }
    help.push_str("\nParameters\n");
    for (depth, param) in all_params(tool) {
        let _ = writeln!(help, "{:depth$}{}", "", line(param), depth = 2 + 2 * depth);
    }
    help.push_str("\nAnswers\n");
    for answer in tool.answers {
        let _ = writeln!(help, "  {answer}");
    }
    Some(help)
}

/// Returns the names of all tools, by dialect.
pub fn tool_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// Returns a table of all tools with their parameters and answers, as Markdown.
pub fn table() -> String {
    let mut table = "| dialect | tool | parameters | answers |\n| --- | --- | --- | --- |\n".to_owned();
    for tool in TOOLS.iter().chain([&PROMOTE]) {
        let params: Vec<String> = tool.params.iter().map(short).collect();
        let params = if params.is_empty() { "–".to_owned() } else { params.join(", ") };
        let answers: Vec<String> = tool.answers.iter().map(|answer| format!("``{answer}``")).collect();
        let (dialect, name) = (whose(tool), tool.name);
        let dialect = if tool.dialect.is_some() { format!("`{dialect}`") } else { dialect.to_owned() };
        let _ = writeln!(table, "| {dialect} | `{name}` | {params} | {} |", answers.join("<br>"));
    }
    table
}

/// Returns the name of the dialect that a tool belongs to.
fn whose(tool: &ToolText) -> &'static str {
    tool.dialect.map_or("all, with a plan", Dialect::as_str)
}

/// Returns a parameter for the table; optional ones have a question mark.
fn short(param: &Param) -> String {
    let mark = if param.required { "" } else { "?" };
    let kind = match param.kind {
        Kind::Text | Kind::Number | Kind::Flag => String::new(),
        Kind::Names => ": [id or title]".to_owned(),
        Kind::Word(words) => format!(": {}", words.join(" \\| ")),
        Kind::List(fields) => format!(": [{{{}}}]", fields.iter().map(short).collect::<Vec<_>>().join(", ")),
    };
    format!("{}{mark}{kind}", param.name)
}

/// Returns the parameters of a tool with their nesting depth: 0, or 1 for the fields of list items.
fn all_params(tool: &ToolText) -> Vec<(usize, &'static Param)> {
    let mut all = Vec::new();
    for param in tool.all_params(true) {
        all.push((0, param));
        if let Kind::List(fields) = param.kind {
            all.extend(fields.iter().map(|field| (1, field)));
        }
    }
    all
}

fn line(param: &Param) -> String {
    let need = if param.required { "required" } else { "optional" };
    let words = if let Kind::Word(words) = param.kind {
        format!("one of {}; ", words.join(", "))
    } else {
        String::new()
    };
    format!("{} ({need}): {words}{}", param.name, param.text)
}

fn section(tool: &ToolText) -> String {
    let mut text = format!("### `{}`\n\n{}\n\n", tool.name, tool.summary);
    for rule in tool.rules {
        let _ = writeln!(text, "- {rule}");
    }
    text.push_str("\nParameters:\n\n");
    for (depth, param) in all_params(tool) {
        let _ = writeln!(text, "{:depth$}- {}", "", line(param), depth = 2 * depth);
    }
    text.push_str("\nAnswers:\n\n");
    for answer in tool.answers {
        let _ = writeln!(text, "- ``{answer}``");
    }
    text
}
