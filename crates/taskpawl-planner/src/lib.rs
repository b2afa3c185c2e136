//! Plans from a goal: a model proposes a plan, and the caller judges it.
//!
//! Code map: `language` has the texts about plans, for prompts and for the help of the MCP server. `prompt` makes the messages from a goal
//! and the facts of `project`; `schema` describes the answer. `turns` asks a [`Planner`] until the caller accepts its answer; `answer` finds
//! the plan in it. `http` and `wire` reach models, `kit` knows the command lines of coding agents. `yaml` writes the accepted plan.
//!
//! Invariants: this crate starts no program and reads no file but the names and manifests of a project. An answer is never repaired: fences
//! and words around it are taken off, everything else goes back to the planner as a problem.

mod answer;
mod change_prompt;
#[cfg(feature = "http")]
mod http;
mod kit;
pub mod language;
mod patch;
mod planner;
mod project;
mod prompt;
mod schema;
mod signature;
mod turns;
#[cfg(feature = "http")]
mod wire;
mod yaml;

pub use change_prompt::{MAX_OUTPUT_BYTES, Output};
#[cfg(feature = "http")]
pub use http::{HttpModel, HttpSettings, InvalidModel, WireFormat};
pub use kit::{Kit, KitReply};
pub use patch::Patch;
pub use planner::{Ending, Message, Planner, PlannerError, Reply, Request, Role, TokenUsage};
pub use project::Facts;
pub use prompt::{Document, MAX_DOCUMENT_BYTES, MAX_PROMPT_BYTES, Prompt, plan_goal_text};
pub use schema::{answer_schema, patch_schema};
pub use signature::signature;
pub use turns::{Budget, MAX_TURNS, Proposal, ProposeError, Refusal, RefusedPlan, Why, propose};
pub use yaml::{GENERATED, Planning, is_generated, plan_text, refused_text};
