//! Attribute names of OpenTelemetry's semantic conventions, mostly those for generative AI, and our own.

/// The kind of operation of a span.
pub(crate) const OPERATION_NAME: &str = "gen_ai.operation.name";

/// The operation of a call.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

/// The name of a tool.
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";

/// The id of a call of a tool.
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";

/// The arguments of a call as JSON.
pub(crate) const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";

/// The result of a call as JSON.
pub(crate) const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";

/// The class of a failure.
pub(crate) const ERROR_TYPE: &str = "error.type";

/// The exit code of a program.
pub(crate) const EXIT_CODE: &str = "process.exit.code";

/// The name of the program that exports.
pub(crate) const SERVICE_NAME: &str = "service.name";

/// The version of the program that exports.
pub(crate) const SERVICE_VERSION: &str = "service.version";

/// The id of the run.
pub(crate) const RUN: &str = "taskpawl.run.id";

/// The end of the run, such as `exit 0`.
pub(crate) const RUN_END: &str = "taskpawl.run.end";

/// The id of the task.
pub(crate) const TASK: &str = "taskpawl.task.id";

/// The name of the task.
pub(crate) const TASK_NAME: &str = "taskpawl.task.name";

/// The plan of the task.
pub(crate) const PLAN: &str = "taskpawl.plan";

/// The status of the task or the call.
pub(crate) const STATUS: &str = "taskpawl.status";

/// The attempt of the task.
pub(crate) const ATTEMPT: &str = "taskpawl.task.attempt";

/// The number of the start of the call.
pub(crate) const START: &str = "taskpawl.call.start";

/// The description of the task.
pub(crate) const PROMPT: &str = "taskpawl.task.description";

/// The output of the program of a call.
pub(crate) const OUTPUT: &str = "taskpawl.call.output";

/// The details that the trace has beyond names, statuses, times and exit codes.
pub(crate) const INCLUDED: &str = "taskpawl.included";
