use std::cmp::Reverse;

use crate::task::Priority;
use crate::value::Key;

/// The order in which ready tasks are taken: priority, due date, distance to the end, age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) priority: Priority,
    pub(crate) due: i64,
    pub(crate) rank: Reverse<u64>,
    pub(crate) key: Key,
}
