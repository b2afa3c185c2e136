//! The record of a conversation, by which a later start of the call goes on with it.

use serde::{Deserialize, Serialize};
use taskpawl_tools::{CallContext, ToolError};

/// The conversation of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    /// The name of the agent.
    pub(crate) agent: String,
    /// The id of the session.
    pub(crate) session: String,
    /// True once a prompt was sent in the session.
    pub(crate) is_prompted: bool,
    /// Number of prompts that the call has sent.
    pub(crate) turns: u32,
    /// The cost of the session, as reported last.
    pub(crate) session_cost: f64,
    /// The cost of the call.
    pub(crate) call_cost: f64,
}

impl Record {
    /// Returns the record of an earlier start of the call with the same agent.
    pub(crate) async fn read(cx: &CallContext, agent: &str) -> Option<Self> {
        // A record that cannot be read is none: the call begins a new conversation.
        let record: Option<Self> = cx.last_details().await.ok().flatten();
        record.filter(|record| record.agent == agent && !record.session.is_empty())
    }

    /// Keeps the record.
    pub(crate) async fn write(&self, cx: &CallContext) -> Result<(), ToolError> {
        cx.heartbeat(self).await
    }

    /// Records a new session durably. From then on the call may ask people: its next start goes on in this session.
    pub(crate) async fn begin(&self, cx: &CallContext) -> Result<(), ToolError> {
        let step = format!("session {}", self.session);
        let session = self.session.clone();
        cx.step(&step, async { Ok::<_, ToolError>(session) }).await?;
        self.write(cx).await
    }
}
