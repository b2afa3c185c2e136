//! What taskpawl is compared with: the least that the same work takes by hand.

pub(crate) mod append;
pub(crate) mod bare_loop;
pub(crate) mod insert;
pub(crate) mod spawn;
pub(crate) mod sqlite;
pub(crate) mod update;
