//! Forecasts: a simulated run and its end, consequences of assumed ends, and durations.

mod answer;
mod board;
mod critical;
mod hypothesis;
mod judged;
mod opening;
mod play;

pub use answer::{
    Approach, Asked, Effects, Forecast, ForecastOptions, Foreseen, Left, Planned, Wave, forecast,
};
pub use critical::{CriticalPath, NearCritical, PathTask, critical_path};
pub use hypothesis::{Assumed, Hypothesis, HypothesisError};
pub use judged::{JudgedCall, judged_calls};
pub use opening::OpenQuestion;
