//! The keys of the configuration, one row each.

use serde_json::Value;

use super::sections::{
    AGENTS, COLLECTORS, ENGINES, HOSTS, HOSTS_FORM, MCP_CONFIGS, MCP_CONFIGS_FORM, PLANNER, SANDBOX,
    SECRET_FORM, SECRETS,
};
use crate::text::nearest;

/// The names and texts of a key.
struct Row {
    name: &'static str,
    variable: &'static str,
    /// The default as shown by `config list`; that of `actor` depends on the user.
    default: &'static str,
    /// The expected form of a value.
    expected: &'static str,
    meaning: &'static str,
}

macro_rules! keys {
    ($($key:ident = $name:literal, $variable:literal, $default:literal, $expected:expr, $meaning:literal;)*) => {
        /// A key of the configuration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Key {
            $($key,)*
        }

        impl Key {
            /// All keys, in the order of `config list`.
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$key),*];

            fn row(self) -> Row {
                match self {
                    $(Self::$key => Row {
                        name: $name,
                        variable: $variable,
                        default: $default,
                        expected: $expected,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

const POSITIVE: &str = "a number of at least 1";

keys! {
    Actor = "actor", "TASKPAWL_ACTOR", "", "text in quotes",
        "the name of the actor of commands";
    Color = "color", "TASKPAWL_COLOR", "auto", "auto, always or never",
        "when to use colours: auto, always or never";
    Jobs = "jobs", "TASKPAWL_JOBS", "cores + 2", POSITIVE,
        "how many tool calls run at once";
    Lease = "lease", "TASKPAWL_LEASE", "30m", "a duration such as 30m",
        "how long a claim lasts, such as 30m";
    Limit = "limit", "TASKPAWL_LIMIT", "50", "a number, 0 for all",
        "how many tasks lists show; 0 for all";
    OutputQuota = "output.quota", "TASKPAWL_OUTPUT_QUOTA", "none", "a size such as 2GiB",
        "how much output of runs is kept, such as 2GiB; the oldest goes when a run ends";
    RunNotify = "run.notify", "TASKPAWL_RUN_NOTIFY", "[]", "a list such as [\"notify-send\", \"taskpawl\"]",
        "a program, as a list, that is told when tasks wait for a decision, when some failed, and the end";
    RunTimeout = "run.timeout", "TASKPAWL_RUN_TIMEOUT", "none", "a duration such as 2h",
        "how long a run may take, such as 2h";
    RunTaskTimeout = "run.taskTimeout", "TASKPAWL_RUN_TASK_TIMEOUT", "none", "a duration such as 30m",
        "how long an attempt of a task may take that says nothing, such as 30m";
    RunMaxFailures = "run.maxFailures", "TASKPAWL_RUN_MAX_FAILURES", "none", POSITIVE,
        "how many tasks may fail before a run starts nothing more";
    RunRetry = "run.retry", "TASKPAWL_RUN_RETRY", "none",
        "a number of at least 1, or a table such as { attempts = 3, delay = \"1s\" }",
        "how calls are tried again that say nothing: all starts, or a table as `retry` of a task";
}

impl Key {
    /// Returns the key as written in files.
    pub(crate) fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns the environment variable that sets the key.
    pub(crate) fn variable(self) -> &'static str {
        self.row().variable
    }

    /// Returns the default as shown by `config list`.
    pub(super) fn default(self) -> &'static str {
        self.row().default
    }

    /// Returns the description of the key, for `config list` and hints.
    pub(crate) fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// Returns the expected form of a value.
    pub(super) fn expected(self) -> &'static str {
        self.row().expected
    }

    /// Returns whether the value is a number.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Jobs | Self::Limit | Self::RunMaxFailures)
    }

    /// Returns whether the value is text in files.
    pub(super) fn is_text(self) -> bool {
        !self.is_number() && !matches!(self, Self::RunNotify | Self::RunRetry)
    }

    /// Returns the value that a variable or a flag means.
    pub(super) fn value_of(self, text: &str) -> Value {
        let value = if self.is_text() { None } else { serde_json::from_str::<Value>(text).ok() };
        value.filter(|value| !value.is_null()).unwrap_or_else(|| text.into())
    }

    /// Returns the key of this name. The error is a hint that names the nearest key, or all keys.
    pub(crate) fn from_name(name: &str) -> Result<Self, String> {
        Self::find(name).ok_or_else(|| {
            let names = || Self::ALL.iter().map(|key| key.as_str());
            if let Some(near) = nearest(name, names()) {
                return format!("did you mean `{near}`?");
            }
            let sections =
                NAMED.iter().map(|(section, _)| *section).chain(["engines.restate", "planner", "sandbox"]);
            let sections = sections.map(|section| format!("`[{section}]`"));
            let all = names().map(|name| format!("`{name}`")).chain(sections);
            format!("known are {}", all.collect::<Vec<_>>().join(", "))
        })
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.as_str() == name)
    }
}

/// Returns whether the value of this key is text in files, whatever it looks like.
pub(super) fn is_text(name: &str) -> bool {
    Key::find(name).is_some_and(Key::is_text)
}

/// Sections whose keys are names chosen by the user, each with its meaning.
pub(crate) const NAMED: [(&str, &str); 5] = [
    ("resources", "the amount of a named resource, before the `resources` of plans"),
    ("tools", "how many calls of a tool run at once: `concurrency`; and tools of one's own"),
    ("secrets", SECRETS),
    ("mcpServers", "MCP servers, whose tools calls name as `SERVER/TOOL`"),
    ("agents", AGENTS.meaning),
];

/// Returns the meaning of the entry at a path and the expected form of its value, or `None` for an unknown key.
pub(super) fn expectation(path: &[&str]) -> Option<(&'static str, &'static str)> {
    Some(match *path {
        ["resources", _] => (NAMED[0].1, "a number from 0 to 4294967295"),
        ["tools", _] => (NAMED[1].1, "a table such as { concurrency = 2 }"),
        ["tools", _, "concurrency"] => (NAMED[1].1, POSITIVE),
        ["tools", "http_request", "hosts"] => (HOSTS, HOSTS_FORM),
        ["secrets", _] => (SECRETS, SECRET_FORM),
        ["trace", "collectors"] => (COLLECTORS, "a list such as [\"http://127.0.0.1:4318\"]"),
        ["mcp", "configs"] => (MCP_CONFIGS, MCP_CONFIGS_FORM),
        ["engines", "restate", key] => (ENGINES.meaning, ENGINES.expected(key)?),
        ["engines", _] => (ENGINES.meaning, "a table with the name of an engine, which is `restate`"),
        ["agents", _] => (AGENTS.meaning, "a table such as { command = [\"my-agent\"] }"),
        ["agents", _, key] => (AGENTS.meaning, AGENTS.expected(key)?),
        ["planner", key] => (PLANNER.meaning, PLANNER.expected(key)?),
        ["sandbox", key] => (SANDBOX.meaning, SANDBOX.expected(key)?),
        _ => {
            let key = Key::find(&path.join("."))?;
            (key.meaning(), key.expected())
        }
    })
}
