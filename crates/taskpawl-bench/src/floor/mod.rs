//! Floors: the minimum cost of the same work without taskpawl.

pub(crate) mod append;
pub(crate) mod bare_loop;
pub(crate) mod insert;
pub(crate) mod spawn;
pub(crate) mod sqlite;
pub(crate) mod update;
