//! The engine in simulated time: runs, crashes, agents and people on one store, all generated from a seed.
//!
//! Everything that decides is the code that ships: the loop of a run, `recovery::Plan`, the rules and the committer. The clock, the
//! tools, delays and locks are simulated.

mod checks;
mod dispatch;
mod event;
mod finale;
mod living;
mod oracle;
mod people;
mod report;
mod run;
mod tools;
mod world;

pub use report::{Broken, Coverage, Fault, Played};
pub use world::{play, play_aloud};
