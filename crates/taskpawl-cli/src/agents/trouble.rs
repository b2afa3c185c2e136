//! The reasons why a file of a coding agent cannot be changed.

/// The reason why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The file is not valid JSON.
    #[error("line {line}, column {column}: {problem}")]
    Syntax { line: usize, column: usize, problem: String },
    /// The file is not valid TOML, or would not be after the change.
    #[error("{problem}")]
    Toml { problem: String },
    /// The path of the entry leads to a value of another type.
    #[error("{}", if .path.is_empty() { "it holds no object".to_owned() } else { format!("`{path}` is something else than the entry asks for") })]
    NoObject { path: String },
    /// The file has an entry of our name that taskpawl did not write.
    #[error("line {line}, column {column}: it has an entry `{name}` of its own")]
    Taken { name: &'static str, line: usize, column: usize },
    /// The start of the block has no end.
    #[error("line {line}: `{begin}` has no line `{end}` after it")]
    NoEnd { line: usize, begin: &'static str, end: &'static str },
    /// The end of the block has no start.
    #[error("line {line}: `{end}` has no line `{begin}` before it")]
    NoBegin { line: usize, begin: &'static str, end: &'static str },
    /// The file has two blocks.
    #[error("line {line}: `{begin}` stands there again, after line {first}")]
    Twice { line: usize, first: usize, begin: &'static str },
    /// Other entries are between the marks of the block or directly after it.
    #[error("a change of the lines from `{begin}` to `{end}` would change other entries, too")]
    Others { begin: &'static str, end: &'static str },
}

impl Trouble {
    /// Returns the next step for the user.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Syntax { .. } | Self::Toml { .. } | Self::NoObject { .. } => {
                "put the file in order, or move it away".to_owned()
            }
            Self::Taken { name, .. } => {
                format!("set it to the value that `init` would write, or give your `{name}` another name")
            }
            Self::NoEnd { line, end, .. } => {
                format!("delete line {line}, or put a line `{end}` after the lines of taskpawl")
            }
            Self::NoBegin { line, begin, .. } => {
                format!("delete line {line}, or put a line `{begin}` before the lines of taskpawl")
            }
            Self::Twice { .. } => "delete one of the two blocks with its marks".to_owned(),
            Self::Others { begin, .. } => {
                format!("move other entries out of these lines, to a place above `{begin}`")
            }
        }
    }
}
