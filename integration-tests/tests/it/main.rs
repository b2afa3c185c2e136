//! Tests over the workspace as a whole.

mod workspace;
