//! Stores that are measured: made once, and copied for every measurement.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Failure;
use crate::context::Context;
use crate::once::spawned;
use crate::shape::Shape;

/// A store that holds a graph of which nothing has run.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    path: PathBuf,
}

impl Applied {
    /// Makes one, unless it is there.
    pub(crate) fn make(context: &Context, shape: Shape, tasks: usize) -> Result<Self, Failure> {
        let path = context.scratch().join(format!("{}-{tasks}.db", shape.name()));
        if !path.exists() {
            spawned(&["apply", &path.to_string_lossy(), shape.name(), &tasks.to_string()])?;
            settle(&path)?;
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a copy, in place of any that was there before.
    pub(crate) fn copy(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.with_file_name(name);
        remove(&path)?;
        std::fs::copy(&self.path, &path)?;
        // So that what is measured does not write what the copy left to be written.
        std::fs::File::open(&path)?.sync_all()?;
        Ok(path)
    }
}

/// Makes a store in which a hundred tasks were run.
pub(crate) fn finished(context: &Context, shape: Shape) -> Result<PathBuf, Failure> {
    let path = context.scratch().join(format!("{}-finished.db", shape.name()));
    if !path.exists() {
        spawned(&["run", &path.to_string_lossy(), "64", shape.name(), "100"])?;
    }
    Ok(path)
}

/// Removes a store with all that belongs to it.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        name
    };
    for ending in ["", "-wal", "-shm", ".lock"] {
        unless_absent(std::fs::remove_file(beside(ending)))?;
    }
    unless_absent(std::fs::remove_dir_all(beside(".files")))
}

fn unless_absent(removed: std::io::Result<()>) -> Result<(), Failure> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Has everything written back into the one file that is copied.
pub(crate) fn settle(path: &Path) -> Result<(), Failure> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
