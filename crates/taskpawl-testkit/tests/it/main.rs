//! Randomized tests of the rules.

mod harness;
mod offers;
mod reference;
mod scheduling;
mod simulation;
