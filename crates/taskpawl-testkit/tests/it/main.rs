//! What the harnesses of the rules themselves do: seeds in, and nothing broken out.

mod harness;
mod offers;
mod reference;
mod scheduling;
mod simulation;
