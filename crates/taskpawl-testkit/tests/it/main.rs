//! Randomized tests of the rules.

mod offers;
mod previews;
mod reference;
mod simulation;
