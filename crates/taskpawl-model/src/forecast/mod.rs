//! What would be: what a run would do and how it would end, what would follow if tasks ended in some way, and how long it takes.

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
