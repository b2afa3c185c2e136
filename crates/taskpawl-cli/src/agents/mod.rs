//! What agents read at the start: how each is told of our server, and of how to work with the plan.
//!
//! Every change is made on the text of a file, leaves all else as it is, and can be taken back to the byte.

mod block;
mod diff;
mod files;
#[cfg(test)]
mod fuzz;
mod json;
mod known;
mod lines;
mod links;
#[cfg(test)]
mod tests;

pub(crate) use files::{Change, Changes};
pub(crate) use known::{Agent, Wish};

/// A file cannot be changed as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// It is not what its name says.
    #[error("line {line}, column {column}: {problem}")]
    Syntax { line: usize, column: usize, problem: String },
    /// TOML that cannot be read, or that would not be any more.
    #[error("{problem}")]
    Toml { problem: String },
    /// Something else stands where our entry belongs.
    #[error("{}", if .path.is_empty() { "it holds no object".to_owned() } else { format!("`{path}` is something else than the entry asks for") })]
    NoObject { path: String },
    /// There is an entry that we did not write.
    #[error("line {line}, column {column}: it has an entry `{name}` of its own")]
    Taken { name: &'static str, line: usize, column: usize },
    /// The marks of our block do not fit together.
    #[error("the lines `{begin}` and `{end}` have to stand there once each, or not at all")]
    Marks { begin: &'static str, end: &'static str },
}
