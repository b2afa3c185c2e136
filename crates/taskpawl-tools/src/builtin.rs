//! The built-in tools.

use std::sync::Arc;

use crate::tool::Tool;

mod artifacts;
#[cfg_attr(not(feature = "builtin-tools"), allow(dead_code, reason = "shared with the tools for files"))]
mod common;
#[cfg(feature = "builtin-tools")]
mod edit_file;
#[cfg_attr(not(feature = "programs"), allow(dead_code, reason = "the tool is not registered"))]
pub(crate) mod exec;
mod first;
#[cfg(feature = "builtin-tools")]
mod glob;
#[cfg(feature = "builtin-tools")]
mod grep;
#[cfg(feature = "http")]
pub(crate) mod http;
mod ignore_files;
#[cfg(feature = "builtin-tools")]
mod list_dir;
#[cfg(feature = "programs")]
mod merge;
#[cfg(feature = "builtin-tools")]
mod read_file;
#[cfg(feature = "programs")]
mod shell;
mod silent;
mod simple;
mod wait;
#[cfg(feature = "builtin-tools")]
mod walk;
pub(crate) mod words;
#[cfg(feature = "programs")]
mod worktree;
#[cfg(feature = "builtin-tools")]
mod write_file;

pub use ignore_files::has_unfit_ignore_file;
pub(crate) use simple::duration;

/// Returns the tool that sends HTTP requests.
#[cfg(feature = "http")]
pub(crate) fn http_request(access: http::HttpAccess) -> Arc<dyn Tool> {
    Arc::new(http::HttpRequest::new(access))
}

/// Returns all other built-in tools.
pub(crate) fn local() -> Vec<Arc<dyn Tool>> {
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(simple::Sleep::new()),
        Arc::new(wait::Wait::new()),
        Arc::new(simple::Log::new()),
        Arc::new(simple::Fail::new()),
        Arc::new(simple::Return::new()),
        Arc::new(artifacts::Artifacts::new()),
    ];
    #[cfg(feature = "builtin-tools")]
    let tools = [Vec::from(of_files()), tools].concat();
    #[cfg(feature = "programs")]
    let tools = [Vec::from(of_programs()), tools, Vec::from(of_worktrees())].concat();
    tools
}

/// Returns the tools that run programs.
#[cfg(feature = "programs")]
fn of_programs() -> [Arc<dyn Tool>; 2] {
    [Arc::new(exec::Exec::new()), Arc::new(shell::Shell::new())]
}

/// Returns the tools for the work of tasks in git.
#[cfg(feature = "programs")]
fn of_worktrees() -> [Arc<dyn Tool>; 2] {
    [Arc::new(worktree::WorktreeCommit::new()), Arc::new(merge::Merge::new())]
}

/// Returns the tools for files.
#[cfg(feature = "builtin-tools")]
fn of_files() -> [Arc<dyn Tool>; 6] {
    [
        Arc::new(read_file::tool()),
        Arc::new(write_file::WriteFile::new()),
        Arc::new(edit_file::tool()),
        Arc::new(list_dir::tool()),
        Arc::new(glob::tool()),
        Arc::new(grep::tool()),
    ]
}
