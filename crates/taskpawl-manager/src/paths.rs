//! Paths of the project, which the rules do not read.

use std::fmt::Debug;

/// Follows links in paths of the project.
pub trait Paths: Debug + Send + Sync {
    /// Returns paths that tasks write, from the directory of the project, with links followed as far as they exist.
    fn resolve(&self, writes: &[String]) -> Vec<String>;
}
