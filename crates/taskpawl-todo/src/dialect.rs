//! The supported dialects.

use std::fmt;

/// A style in which language models keep a to-do list: a set of tools with fixed names, parameters and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Tools `ListTasks`, `AddTask`, `CompleteTask`, `UncompleteTask` and `DeleteTask`. One file per conversation.
    Conversation,
    /// Tool `manage_tasks`. The whole list with every call, in memory, displayed to people.
    Checklist,
    /// The checklist under its other name, `manage_todo_list`.
    TodoList,
    /// Tools `todowrite` and `todoread`. The whole list with every write, in memory.
    Session,
    /// Tool `task`. One double-ended queue per agent, in a file.
    Queue,
}

impl Dialect {
    /// The four dialects, without the second name of the checklist.
    pub const ALL: [Self; 4] = [Self::Conversation, Self::Checklist, Self::Session, Self::Queue];

    /// All names of dialects, as used on the command line.
    pub const WORDS: [&'static str; 5] =
        ["conversation", "checklist", "checklist:manage_todo_list", "session", "queue"];

    /// Returns the name of the dialect.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Checklist => "checklist",
            Self::TodoList => "checklist:manage_todo_list",
            Self::Session => "session",
            Self::Queue => "queue",
        }
    }

    /// Returns the dialect with this name.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::TodoList].into_iter().chain(Self::ALL);
        all.into_iter().find(|dialect| dialect.as_str() == word)
    }

    /// Returns the default path of the guide, relative to the root of a project.
    pub fn guide_path(self) -> &'static str {
        match self {
            Self::Conversation => ".agent/prompts/rules/conversation_tool_usage.md",
            Self::Checklist | Self::TodoList => ".agent/prompts/rules/checklist_tool_usage.md",
            Self::Session => ".agent/prompts/rules/todo_tool_usage.md",
            Self::Queue => ".agent/prompts/rules/queue_tool_usage.md",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
