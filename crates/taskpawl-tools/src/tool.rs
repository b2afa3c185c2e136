use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;

/// Something that a task can call.
///
/// # Contract
///
/// - A call runs at most once at a time per [`CallContext::call`]; different calls run at the same time.
/// - `args` fit the schema of [`Tool::spec`]: [`call_guarded`](crate::call_guarded) has checked them, but for tools that do so
///   themselves ([`Tool::is_foreign`], [`Tool::judged_args`]).
/// - A call ends soon after its context is cancelled or its deadline has passed; one that does not is dropped
///   [`CallLimits::grace`](crate::CallLimits::grace) later.
/// - Dropping the future leaves nothing running that the call has started.
/// - Work that blocks goes to `tokio::task::spawn_blocking`: the future is polled on the dispatcher's thread.
#[async_trait]
pub trait Tool: Send + Sync + Debug {
    /// Returns what the tool is called, what it takes and how it behaves. Always the same for one tool.
    fn spec(&self) -> &ToolSpec;

    /// Does the work and returns its result.
    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError>;

    /// Returns whether the schemas come from elsewhere and may have changed since. Then what this version does not know in them
    /// is passed over, and the tool itself checks the arguments of a call.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Returns the names that arguments may have, if the tool has answers of its own for arguments that do not fit. Then nobody
    /// checks them before a call, and authors of plans are told of misspelt names alone: whatever else the schema would refuse is
    /// for the tool to answer.
    fn judged_args(&self) -> Option<Vec<&str>> {
        None
    }

    /// Returns the program that a call with these arguments would run, where that follows from them: the rules of a policy about
    /// commands are about it. `exec` and `shell` are known to the policy.
    fn command(&self, args: &Value) -> Option<ToolCommand> {
        let _ = args;
        None
    }

    /// Returns the file that a call with these arguments is about, if the tool reaches files beneath the root alone: where the path
    /// alone tells that it is elsewhere, nobody is asked about the call.
    fn file_beneath_root<'a>(&self, args: &'a Value) -> Option<&'a str> {
        let _ = args;
        None
    }

    /// Returns whether a call that declares `planAccess` has something of it: the tool starts a program for it that gets
    /// [`PLAN_VARIABLE`](crate::PLAN_VARIABLE), or opens [`CallContext::plan`] itself.
    fn reaches_plan(&self) -> bool {
        true
    }

    /// Returns whether a call with these arguments may be run again when nobody knows how it ended.
    ///
    /// By default this follows the hints; a tool overrides it when the answer depends on the arguments.
    fn is_repeatable(&self, args: &Value) -> bool {
        let _ = args;
        let hints = self.spec().hints;
        hints.read_only || hints.idempotent
    }
}

/// The program that a call of a tool would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCommand {
    /// The program with its arguments.
    pub argv: Vec<String>,
    /// What it reads from its standard input.
    pub input: Option<String>,
    /// Its working directory; without it the root of the project.
    pub cwd: Option<String>,
    /// The variables that are set for it. Of a secret the name stands there.
    pub env: BTreeMap<String, String>,
}

/// What a tool is called, what it takes and returns, and how it behaves.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that plans use, unique in a [`Registry`](crate::Registry).
    pub name: String,
    /// What the tool does, for people and for models that choose among tools.
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments; its `type` is `object`.
    pub args_schema: Value,
    /// JSON Schema of the result, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Value>,
    /// How calls behave.
    pub hints: Hints,
    /// How long a call may take at most; `None` leaves it to whoever calls.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// Describes a tool without hints and without a schema of its result.
    pub fn new(name: impl Into<String>, description: impl Into<String>, args_schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            args_schema,
            result_schema: None,
            hints: Hints::default(),
            timeout: None,
        }
    }

    /// Adds the JSON Schema of the result.
    #[must_use]
    pub fn with_result(mut self, schema: Value) -> Self {
        self.result_schema = Some(schema);
        self
    }

    /// Limits how long a call may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Replaces the hints.
    #[must_use]
    pub fn with_hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }
}

/// How the calls of a tool behave; the words are those of MCP's tool annotations.
///
/// The default claims nothing: such a call is never repeated after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, named as in MCP")]
pub struct Hints {
    /// The call changes nothing outside itself.
    pub read_only: bool,
    /// A second call with the same arguments has no further effect.
    pub idempotent: bool,
    /// The call may overwrite or delete something.
    pub destructive: bool,
    /// The call reaches beyond this machine.
    pub open_world: bool,
}

/// Writes a duration as configurations do.
#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn as_text<S: Serializer>(timeout: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(timeout) = timeout else { return serializer.serialize_none() };
    let millis = timeout.as_millis();
    let text = if millis % 1000 == 0 { format!("{}s", millis / 1000) } else { format!("{millis}ms") };
    serializer.serialize_str(&text)
}
