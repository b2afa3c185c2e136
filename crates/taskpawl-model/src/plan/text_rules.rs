//! Rules for reading a text.

use std::borrow::Cow;

use super::node::{Content, MAX_DEPTH};
use super::{PlanProblem, scalar};

/// Rules for reading one kind of text.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Maximum nesting of lists and objects.
    pub(super) max_depth: usize,
    /// The value of a plain scalar.
    #[cfg_attr(not(feature = "yaml"), expect(dead_code, reason = "JSON has no plain scalars"))]
    pub(super) resolve: fn(Cow<'_, str>) -> Result<Content<'_>, PlanProblem>,
}

impl Rules {
    /// Rules for plans.
    pub(super) const PLAN: Self = Self { max_depth: MAX_DEPTH, resolve: scalar::resolve };
}
