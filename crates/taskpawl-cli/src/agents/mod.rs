//! What agents read at the start: how each is told of our server, and of how to work with the plan.
//!
//! Every change is made on the text of a file, leaves all else as it is, and can be taken back to the byte.

mod block;
mod diff;
mod fences;
mod files;
#[cfg(test)]
mod fuzz;
mod json;
mod known;
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
    /// Our block begins and does not end.
    #[error("line {line}: `{begin}` has no line `{end}` after it")]
    NoEnd { line: usize, begin: &'static str, end: &'static str },
    /// Our block ends and does not begin.
    #[error("line {line}: `{end}` has no line `{begin}` before it")]
    NoBegin { line: usize, begin: &'static str, end: &'static str },
    /// Our block stands there twice.
    #[error("line {line}: `{begin}` stands there again, after line {first}")]
    Twice { line: usize, first: usize, begin: &'static str },
    /// Something stands between our marks, or right behind them, that our entry has no part in.
    #[error("a change of what stands from `{begin}` to `{end}` would change other entries, too")]
    Others { begin: &'static str, end: &'static str },
}

impl Trouble {
    /// Returns what is to be done about it.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Syntax { .. } | Self::Toml { .. } | Self::NoObject { .. } => {
                "put the file in order, or move it away".to_owned()
            }
            Self::Taken { name, .. } => {
                format!("make it say what `init` would write, or give your `{name}` another name")
            }
            Self::NoEnd { line, end, .. } => {
                format!("delete line {line}, or put a line `{end}` behind what taskpawl wrote")
            }
            Self::NoBegin { line, begin, .. } => {
                format!("delete line {line}, or put a line `{begin}` before what taskpawl wrote")
            }
            Self::Twice { .. } => "delete one of the two blocks with its marks".to_owned(),
            Self::Others { begin, .. } => {
                format!("move what is not the entry of taskpawl out of these lines, and above `{begin}`")
            }
        }
    }
}
