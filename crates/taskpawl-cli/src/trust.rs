//! Whether the tools that a project describes may be called: somebody else may have written them.

use std::path::Path;

use crate::app::App;
use crate::error::CliError;

/// Returns whether the user trusts this file of a project, as it is now.
#[expect(clippy::unnecessary_wraps, reason = "the record of what is trusted may be unreadable")]
pub(crate) fn is_given(_app: &App, _file: &Path) -> Result<bool, CliError> {
    Ok(false)
}

/// Says what to do about a file that is not trusted.
pub(crate) fn missing(file: &Path) -> String {
    format!(
        "`{}` of the project describes it, and is not trusted: move the description to your own file",
        file.display()
    )
}
