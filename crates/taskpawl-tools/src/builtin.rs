//! The built-in tools.

use std::sync::Arc;

use crate::tool::Tool;

mod common;
mod edit_file;
pub(crate) mod exec;
mod first;
mod glob;
mod grep;
#[cfg(feature = "http")]
pub(crate) mod http;
mod list_dir;
mod read_file;
mod shell;
mod silent;
mod simple;
mod walk;
pub(crate) mod words;
mod write_file;

pub(crate) use simple::duration;
pub use walk::has_unfit_ignore_file;

/// Returns the tool that sends HTTP requests.
#[cfg(feature = "http")]
pub(crate) fn http_request(access: http::HttpAccess) -> Arc<dyn Tool> {
    Arc::new(http::HttpRequest::new(access))
}

/// Returns all other built-in tools.
pub(crate) fn local() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(exec::Exec::new()),
        Arc::new(shell::Shell::new()),
        Arc::new(read_file::tool()),
        Arc::new(write_file::WriteFile::new()),
        Arc::new(edit_file::tool()),
        Arc::new(list_dir::tool()),
        Arc::new(glob::tool()),
        Arc::new(grep::tool()),
        Arc::new(simple::Sleep::new()),
        Arc::new(simple::Log::new()),
        Arc::new(simple::Fail::new()),
    ]
}
