//! Prepared stores, created once and copied for every measurement.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Failure;
use crate::context::Context;
use crate::once::spawned;
use crate::shape::Shape;

/// A store with a graph that has not been run.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    path: PathBuf,
}

impl Applied {
    /// Creates the store, unless it exists.
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

    /// Returns a copy of the store. Replaces an earlier copy of the same name.
    pub(crate) fn copy(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.with_file_name(name);
        remove(&path)?;
        std::fs::copy(&self.path, &path)?;
        // Without this sync, the measured program would have to write the pages of the copy.
        std::fs::File::open(&path)?.sync_all()?;
        Ok(path)
    }
}

/// Creates a store with a hundred finished tasks.
pub(crate) fn finished(context: &Context, shape: Shape) -> Result<PathBuf, Failure> {
    let path = context.scratch().join(format!("{}-finished.db", shape.name()));
    if !path.exists() {
        spawned(&["run", &path.to_string_lossy(), "64", shape.name(), "100"])?;
    }
    Ok(path)
}

/// Removes a store with all files that belong to it.
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

/// Moves the write-ahead log into the main file, because only that file is copied.
pub(crate) fn settle(path: &Path) -> Result<(), Failure> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
