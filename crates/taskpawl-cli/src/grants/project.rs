//! The project and the plan that something remembered holds for.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::error::CliError;
use crate::text::clean;
use crate::trust::real;

/// The project that a grant or an approval holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Project {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    path: PathBuf,
}

impl Project {
    #[cfg(test)]
    pub(crate) fn at(path: &std::path::Path) -> Self {
        Self { id: None, path: path.to_owned() }
    }

    pub(crate) fn of(context: &Context) -> Result<Self, CliError> {
        let place = context.place()?;
        Ok(Self { id: place.id.clone(), path: real(&place.root) })
    }
}

/// Returns the plan that something remembered holds for.
pub(crate) fn plan_text(plan: Option<&str>) -> String {
    match plan {
        None => "all plans".to_owned(),
        Some("") => "tasks without a plan".to_owned(),
        Some(plan) => format!("plan `{}`", clean(plan)),
    }
}
