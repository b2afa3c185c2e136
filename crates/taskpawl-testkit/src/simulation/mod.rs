//! The engine in simulated time: runs, crashes, agents and people on one store, all generated from a seed.
//!
//! All deciding parts are the real ones: `schedule::step`, `Intake`, `recovery::Plan`, the rules and the committer.
//! Only the surroundings are simulated: clock, tools, delays and locks.

mod dispatch;
mod finale;
mod happening;
mod oracle;
mod people;
mod report;
mod run;
mod tools;
mod world;

pub use report::{Broken, Coverage, Fault, Played};
pub use world::{play, play_aloud};
