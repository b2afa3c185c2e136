//! Which ways of keeping a to-do list there are.

use std::fmt;

/// A way in which language models keep a to-do list: a set of tools with fixed names, parameters and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// `ListTasks`, `AddTask`, `CompleteTask`, `UncompleteTask`, `DeleteTask`: one file for each conversation.
    Conversation,
    /// `manage_tasks`: the whole list with every call, in memory, drawn for people.
    Checklist,
    /// The same under its other name, `manage_todo_list`.
    TodoList,
    /// `todowrite` and `todoread`: the whole list with every write, in memory.
    Session,
    /// `task`: one double-ended queue for each agent, in a file.
    Queue,
}

impl Dialect {
    /// The four dialects, without the second name of the checklist.
    pub const ALL: [Self; 4] = [Self::Conversation, Self::Checklist, Self::Session, Self::Queue];

    /// Every word that names a dialect.
    pub const WORDS: [&'static str; 5] =
        ["conversation", "checklist", "checklist:manage_todo_list", "session", "queue"];

    /// Returns the word that names it on the outside.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Checklist => "checklist",
            Self::TodoList => "checklist:manage_todo_list",
            Self::Session => "session",
            Self::Queue => "queue",
        }
    }

    /// Returns the dialect that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::TodoList].into_iter().chain(Self::ALL);
        all.into_iter().find(|dialect| dialect.as_str() == word)
    }

    /// Returns where its guide is written unless another place is named, from the root of a project.
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
