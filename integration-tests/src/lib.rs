//! Programs that the harnesses in `tests/` start: `taskpawl` and a worker of the library, both with fault injection.
//!
//! A harness that stays green without the sync, the lock or the check proves nothing. So each one also runs with a fault, and must
//! fail then.

pub mod escape;
pub mod faults;
pub mod keys;
pub mod tool;
pub mod worker;
