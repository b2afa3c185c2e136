//! Shared parts of the harnesses.

mod home;
mod marks;
mod mcp;
mod scale;
mod steps;
mod strace;
mod wait;
mod worker;

pub(crate) use home::{Home, Run, is_there, named};
pub(crate) use marks::{Marks, end_survivors, survivors, work};
pub(crate) use mcp::McpClient;
pub(crate) use scale::{Figures, scale, seed};
pub(crate) use steps::{is_there as step_is_done, losses, program_of, steps};
pub(crate) use strace::{Strace, Trace};
pub(crate) use taskpawl_fuzz::skip;
pub(crate) use taskpawl_testkit::Random;
pub(crate) use wait::until;
pub(crate) use worker::{Answer, Worker, answers};
