//! Quality of the order in which a run starts ready tasks: makespans in simulated time, compared with lower bounds and
//! with first come, first served.
//!
//! The runs use the real schedule, [`schedule::step`](taskpawl_model::run::schedule::step). The store is replaced by one
//! that answers immediately.

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
