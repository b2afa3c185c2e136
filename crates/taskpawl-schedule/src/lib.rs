//! Times at which plans are run by themselves.
//!
//! A [`Calendar`] is a cron expression in a time zone. [`decide`] says which times start an instance of a plan, given the
//! time up to which they have been handled and the state of the last instance. Nothing here reads a clock.

mod calendar;
mod decide;
mod shift;

pub use calendar::{Calendar, CalendarError, Occurrence, Time};
pub use decide::{Activity, Decision, InstanceState, Memory, Overlap, Rules, Step, decide};
pub use shift::{Shift, ShiftKind};
