//! Forecasts: a simulated run and its end, consequences of assumed ends, and durations.

mod answer;
mod authorize;
mod critical;
mod hypothesis;
mod opening;
mod simulate;
mod tasks;
mod waits;

pub use answer::{
    Approach, Effects, Forecast, ForecastApproval, ForecastOptions, Foreseen, Planned, UnfinishedTask, Wave,
    forecast,
};
pub use authorize::{CallAuthorization, call_authorizations};
pub use critical::{CriticalPath, NearCritical, PathTask, critical_path};
pub use hypothesis::{Assumed, Hypothesis, HypothesisError};
pub use opening::OpenQuestion;
