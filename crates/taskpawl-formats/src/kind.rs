//! The formats and their names.

/// A format of task files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Issues of beads: one JSON object per line.
    Beads,
    /// `tasks.json` of Task Master.
    Taskmaster,
    /// Task files of Claude: a folder with one JSON file per task, or a single file with a list of to-dos.
    Claude,
    /// The output of Taskwarrior's `task export`.
    Taskwarrior,
    /// A folder of Backlog.md.
    Backlog,
    /// A checklist in Markdown.
    Markdown,
    /// `tasks.md` of a feature of spec-kit, or a folder of features.
    SpecKit,
    /// `tasks.md` of a change of `OpenSpec`, or a folder of changes.
    OpenSpec,
    /// `tasks.md` of a spec of Kiro, or a folder of specs.
    Kiro,
    /// A list in the todo.txt format.
    TodoTxt,
    /// `tasks.json` of Shrimp Task Manager.
    Shrimp,
    /// Issues as `gh issue list --json` prints them. They are only read.
    GitHub,
    /// `tasks.json` of taskpawl.
    Tasks,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Self] = &[
        Self::Beads,
        Self::Taskmaster,
        Self::Claude,
        Self::Taskwarrior,
        Self::Backlog,
        Self::Markdown,
        Self::SpecKit,
        Self::OpenSpec,
        Self::Kiro,
        Self::TodoTxt,
        Self::Shrimp,
        Self::GitHub,
        Self::Tasks,
    ];

    /// Returns the format's name, which is also the name of its member in `metadata`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beads => "beads",
            Self::Taskmaster => "taskmaster",
            Self::Claude => "claude",
            Self::Taskwarrior => "taskwarrior",
            Self::Backlog => "backlog",
            Self::Markdown => "markdown",
            Self::SpecKit => "spec-kit",
            Self::OpenSpec => "openspec",
            Self::Kiro => "kiro",
            Self::TodoTxt => "todo.txt",
            Self::Shrimp => "shrimp",
            Self::GitHub => "github",
            Self::Tasks => "tasks",
        }
    }

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Returns the format with the most similar name, for suggestions.
    pub fn nearest(name: &str) -> Option<Self> {
        taskpawl_text::nearest(name, Self::ALL.iter().map(|format| format.name())).and_then(Self::from_name)
    }

    /// Returns the path at which a project keeps the format, relative to its root; `None` for formats without a usual path.
    pub fn usual_path(self) -> Option<&'static str> {
        match self {
            Self::Beads => Some(".beads/issues.jsonl"),
            Self::Taskmaster => Some(".taskmaster/tasks/tasks.json"),
            Self::Backlog => Some("backlog"),
            Self::SpecKit => Some("specs"),
            Self::OpenSpec => Some("openspec/changes"),
            Self::Kiro => Some(".kiro/specs"),
            Self::TodoTxt => Some("todo.txt"),
            Self::Claude | Self::Taskwarrior | Self::Markdown | Self::Shrimp | Self::GitHub | Self::Tasks => {
                None
            }
        }
    }

    /// Returns true if the format is a folder of files. That of Claude may also be a single file.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::Backlog | Self::Claude)
    }

    /// Returns true if the format has one `tasks.md` for each feature, in a folder with the name of the feature.
    pub fn has_features(self) -> bool {
        matches!(self, Self::SpecKit | Self::OpenSpec | Self::Kiro)
    }

    /// Returns true if the format can be written.
    pub fn is_writable(self) -> bool {
        self != Self::GitHub
    }
}
