//! A live checklist of a plan: tasks to do, in progress (with their owner) and done.
//!
//! [`Checklist`] is plain data without a source: `board` builds it from a plan, `kept` from the lists that models
//! keep, and a [`Sheet`] holds all of them. `frame` turns it into lines and knows no terminal; `screen` owns the
//! terminal.

mod board;
mod fit;
mod frame;
mod item;
mod kept;
mod screen;
#[cfg(test)]
mod tests;

pub(crate) use board::Board;
pub(crate) use frame::{View, frame};
pub(crate) use item::Sheet;
pub(crate) use kept::Keeping;
pub(crate) use screen::{Screen, TURN};
