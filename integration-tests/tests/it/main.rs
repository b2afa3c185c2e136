//! Tests over the workspace as a whole.

mod readme;
mod workspace;
