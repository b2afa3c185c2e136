use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::foresee::Foreseen;

/// Function that a task can call.
///
/// # Contract
///
/// - At most one start of a call runs at a time, by [`CallContext::call`]; different calls run in parallel.
/// - `args` fit the schema of [`Tool::spec`]: [`call_guarded`](crate::call_guarded) has checked them. Exceptions are
///   tools that check arguments themselves ([`Tool::is_foreign`], [`Tool::policy_args`]).
/// - A call ends soon after its context is cancelled or its deadline has passed. One that does not is dropped
///   [`CallLimits::grace`](crate::CallLimits::grace) later.
/// - Dropping the future leaves nothing running that the call has started.
/// - Blocking work goes to `tokio::task::spawn_blocking`: the future is polled on the dispatcher's thread.
#[async_trait]
pub trait Tool: Send + Sync + Debug {
    /// Returns the name, the schemas and the hints of the tool. The value never changes for one tool.
    fn spec(&self) -> &ToolSpec;

    /// Runs the call and returns its result.
    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError>;

    /// Returns whether the schemas come from an external party and may have changed since registration. Then unknown
    /// keywords in them are ignored, and the tool itself checks the arguments of each call.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Returns the valid argument names, if the tool itself answers calls whose arguments do not fit.
    ///
    /// Then arguments are not checked before a call. Authors of plans are warned about misspelt names only; the tool
    /// answers everything else that the schema would refuse.
    fn policy_args(&self) -> Option<Vec<&str>> {
        None
    }

    /// Returns the program that a call with these arguments would run, if they determine it. Command rules of a policy
    /// apply to it. The policy knows `exec` and `shell` without this method.
    fn command(&self, args: &Value) -> Option<ToolCommand> {
        let _ = args;
        None
    }

    /// Returns the file argument of a call, if the tool can only reach files beneath the root. A call whose path alone
    /// shows that it lies outside is denied without asking for approval: it would fail anyway.
    fn file_beneath_root<'a>(&self, args: &'a Value) -> Option<&'a str> {
        let _ = args;
        None
    }

    /// Returns problems that a call with these arguments would meet. Checks of plans report them; calls do not.
    fn foresee(&self, args: &Value) -> Vec<Foreseen> {
        let _ = args;
        Vec::new()
    }

    /// Returns the kit whose grants a call with these arguments has, such as `agent:claude`, if a person has granted it.
    fn kit(&self, args: &Value) -> Option<String> {
        let _ = args;
        None
    }

    /// Returns whether `planAccess` is useful for a call: the tool starts a program that gets
    /// [`PLAN_VARIABLE`](crate::PLAN_VARIABLE), or opens [`CallContext::plan`] itself.
    fn reaches_plan(&self) -> bool {
        true
    }

    /// Returns whether a call with these arguments may be repeated when its outcome is unknown, as after a crash.
    ///
    /// By default this follows the hints. A tool overrides it if the answer depends on the arguments.
    fn is_repeatable(&self, args: &Value) -> bool {
        let _ = args;
        let hints = self.spec().hints;
        hints.read_only || hints.idempotent
    }
}

/// Value that can be registered as a tool: a [`Tool`], or one behind an [`Arc`].
pub trait IntoTool {
    /// Returns the tool.
    fn into_tool(self) -> Arc<dyn Tool>;
}

impl<T: Tool + 'static> IntoTool for T {
    fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl<T: Tool + 'static> IntoTool for Arc<T> {
    fn into_tool(self) -> Arc<dyn Tool> {
        self
    }
}

impl IntoTool for Arc<dyn Tool> {
    fn into_tool(self) -> Arc<dyn Tool> {
        self
    }
}

/// Program that a tool call would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCommand {
    /// Program and its arguments.
    pub argv: Vec<String>,
    /// Text of its standard input.
    pub input: Option<String>,
    /// Working directory; `None` is the root of the project.
    pub cwd: Option<String>,
    /// Environment variables that the call sets. A secret appears as its reference, never as its value.
    pub env: BTreeMap<String, String>,
}

/// Description of a tool: its name, schemas, hints and time limit.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolSpec {
    /// Name that plans use, unique in a [`Registry`](crate::Registry).
    pub name: String,
    /// Summary of the tool, for people and for models that choose among tools.
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments; its `type` is `object`.
    pub args_schema: Value,
    /// JSON Schema of the result, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Value>,
    /// Behaviour of calls.
    pub hints: Hints,
    /// Longest duration of a call; `None` leaves the limit to the caller.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// Makes the description of a tool without hints and without a result schema.
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

    /// Limits the duration of a call.
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

/// Behaviour of the calls of a tool, in the terms of MCP's tool annotations.
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

/// Writes a duration in the form that configurations use, such as `90s` or `1500ms`.
#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn as_text<S: Serializer>(timeout: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(timeout) = timeout else { return serializer.serialize_none() };
    let millis = timeout.as_millis();
    let text = if millis % 1000 == 0 { format!("{}s", millis / 1000) } else { format!("{millis}ms") };
    serializer.serialize_str(&text)
}
