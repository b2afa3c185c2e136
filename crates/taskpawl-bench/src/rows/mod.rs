//! All groups of measurements, by the name for `--only`.

mod binary;
mod commands;
mod engine;
mod runners;
mod spawn;
mod sqlite;
mod store;

use crate::Failure;
use crate::context::Context;
use crate::group::Group;
use crate::shape::Shape;

/// A group of measurements.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Prepares the group, including stores and files that it needs.
    pub(crate) group: fn(&Context) -> Result<Group, Failure>,
}

/// All groups, in the order in which they are measured and displayed.
pub(crate) const ROWS: &[Row] = &[
    Row { name: "memory-layered", group: |context| Ok(engine::memory(context, Shape::Layered)) },
    Row { name: "memory-chain", group: |context| Ok(engine::memory(context, Shape::Chain)) },
    Row { name: "memory-wide", group: |context| Ok(engine::memory(context, Shape::Wide)) },
    Row { name: "sqlite-layered", group: sqlite::layered },
    Row { name: "sqlite-wide", group: sqlite::wide },
    Row { name: "sqlite-chain", group: sqlite::chain },
    Row { name: "spawn", group: spawn::programs },
    Row { name: "supervisor", group: |_| Ok(spawn::supervisor()) },
    Row { name: "update-200", group: |context| store::updates(context, 200) },
    Row { name: "update-2000", group: |context| store::updates(context, 2_000) },
    Row { name: "apply", group: store::apply },
    Row { name: "join", group: |_| Ok(store::join()) },
    Row { name: "graph", group: |context| Ok(store::graph(context)) },
    Row { name: "order", group: |context| Ok(store::order(context)) },
    Row { name: "start", group: commands::start },
    Row { name: "command-ready", group: commands::ready },
    Row { name: "command-show", group: commands::show },
    Row { name: "command-create", group: commands::create },
    Row { name: "command-done", group: commands::done },
    Row { name: "command-claim", group: commands::claim },
    Row { name: "binary", group: binary::program },
    Row { name: "crates", group: |_| Ok(binary::crates()) },
];
