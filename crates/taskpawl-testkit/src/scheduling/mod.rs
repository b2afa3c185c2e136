//! How good the order is in which a run takes what is ready: makespans under virtual time, compared with lower bounds and with
//! plain first come, first served.
//!
//! The run is the real one, [`schedule::step`](taskpawl_model::schedule::step); what stands in for the store answers at once.

mod bounds;
mod instance;
mod play;
mod plot;
mod shapes;
mod study;

pub use bounds::{exact_makespan, lower_bound, tight_bound};
pub use instance::Instance;
pub use play::{first_come_makespan, run_makespan};
pub use plot::plot;
pub use shapes::Shape;
pub use study::{Case, JOBS, SCALE, SEEDS, Summary, study};
