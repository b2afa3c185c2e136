//! Resolution of project paths, because the rules do no I/O.

use std::fmt::Debug;

/// Resolves symbolic links in paths of the project.
pub trait Paths: Debug + Send + Sync {
    /// Resolves paths that tasks write, relative to the project directory, as far as they exist.
    fn resolve(&self, writes: &[String]) -> Vec<String>;
}
