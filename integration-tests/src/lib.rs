//! What the harnesses in `tests/` start as processes: the program, and a worker that uses the library, both with ways to break
//! them on purpose.
//!
//! A harness that stays green with the sync, the lock or the check left out proves nothing; so each is also run with a fault,
//! and must go red.

pub mod escape;
pub mod faults;
pub mod keys;
pub mod tool;
pub mod worker;
