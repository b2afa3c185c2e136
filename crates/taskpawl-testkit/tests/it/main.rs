//! What the harnesses of the rules themselves do: seeds in, and nothing broken out.

mod harness;
mod reference;
mod scheduling;
mod simulation;
