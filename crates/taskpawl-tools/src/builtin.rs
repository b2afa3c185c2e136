//! The built-in tools.

use std::sync::Arc;

use crate::tool::Tool;

/// Returns one of each.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![]
}
