use std::fmt;
use std::time::Duration;

use taskpawl_model::value::Period;

/// Time limit of a call if neither the call, its task nor its tool has one.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The limit that determines the deadline of a call. Used to explain a timeout.
#[derive(Debug)]
pub(super) enum Limit {
    Own(Period),
    /// No limit is configured anywhere.
    Default,
    OfTool(Period),
    OfServer(String, Period),
    OfTask,
    OfRun(String),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(time) => write!(f, "its `timeout` is {time}"),
            Self::Default => write!(f, "the default `timeout` is {}", Period(DEFAULT_TIMEOUT)),
            Self::OfTool(time) => write!(f, "the `timeout` of the tool is {time}"),
            Self::OfServer(server, time) => write!(f, "the `timeout` of MCP server `{server}` is {time}"),
            Self::OfTask => f.write_str("its task exceeded its `timeout`"),
            Self::OfRun(limit) => f.write_str(limit),
        }
    }
}

impl Limit {
    /// Returns the limit for a tool. The timeout of an MCP tool, whose name is `server/tool`, comes from the configuration
    /// of the server.
    pub(super) fn of_tool(name: &str, time: Period) -> Self {
        match name.split_once('/') {
            Some((server, _)) => Self::OfServer(server.to_owned(), time),
            None => Self::OfTool(time),
        }
    }
}
