//! The engine under virtual time: runs, crashes, agents and people at one store, all drawn from a seed.
//!
//! What decides is real: `schedule::step`, `Intake`, `recovery::Plan`, the rules and the committer. What only carries things (clock,
//! tools, delays, locks) is played.

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
