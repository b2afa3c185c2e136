//! Explanations, forecasts and the critical path.

mod definitions;
pub(crate) mod explain;
pub(crate) mod forecast;

pub use definitions::{DefinitionChange, definition_changes};
pub use explain::{
    Explanation, Facts, Link, ReadyList, ReadyPart, ReadyTask, Reason, Role, UnrunnableTask, explain,
    explain_ready, is_in_scope, ready_part, unrunnable_task,
};
pub use forecast::{
    Approach, Assumed, CallAuthorization, CriticalPath, Effects, Forecast, ForecastApproval, ForecastOptions,
    Foreseen, Hypothesis, HypothesisError, NearCritical, OpenQuestion, PathTask, Planned, UnfinishedTask,
    Wave, call_authorizations, critical_path, forecast,
};
