//! Plans: the content of a plan file, with short forms expanded and tasks in one flat list.

mod artifacts;
mod call;
mod cycle;
mod draft;
mod error;
mod expand;
mod expressions;
mod include;
mod included_files;
mod included_tasks;
mod instance;
#[cfg(any(test, not(feature = "yaml")))]
mod json_text;
mod link;
mod linker;
mod locate;
mod node;
mod options;
mod params;
mod parse;
mod places;
mod plan_files;
mod program;
mod program_fields;
mod reader;
mod reliance;
mod returns;
mod scalar;
mod schedule;
mod sessions;
mod site;
mod sites;
mod task;
mod task_names;
#[cfg(feature = "yaml")]
mod text;
mod text_rules;
mod types;
mod vocabulary;

#[cfg(not(feature = "yaml"))]
use json_text as text;

pub(crate) use expand::{expand_call, spec_fields};
pub(crate) use expressions::Scope;
pub(crate) use node::shortened;
pub(crate) use parse::work_from_json;
pub(crate) use program::FIELDS as PROGRAM_FIELDS;
pub(crate) use site::Stage;
pub(crate) use vocabulary::{
    ARTIFACTS, CALL_STATE, SETUP, VERIFY, WORK_FIELDS, is_state_field, refused_call_field,
    refused_metadata_field, refused_plan_field, refused_task_field, work_field,
};

pub use crate::expr::ParamType;
pub use error::{PlanError, PlanErrors, PlanProblem};
pub use expand::expand_plan;
pub use locate::{PlanPart, PlanPlace, PlanSpot, locate};
pub use options::plan_fields;
#[cfg(feature = "yaml")]
pub use parse::yaml_value;
pub use parse::{
    Inspected, call_from_json, change_spec, inspect_plan, inspect_plan_file, parse_call, parse_plan,
    parse_task, plan_from_json, plan_value, read_plan, read_plan_file, read_plan_up_to, task_from_json,
};
pub use plan_files::{IncludeError, IncludedPlace, IncludedText, PlanFiles};
pub use reliance::Reliance;
pub use taskpawl_json::Position;
pub use types::{Budget, OverlapWord, Param, Plan, PlanSchedule, PlanSource, PlanTask, Reaction, Requires};
pub use vocabulary::{PlanFields, ProposedFields, is_own_field, proposed_fields};
