//! Randomized tests of the rules.

mod harness;
mod offers;
mod previews;
mod reference;
mod simulation;
