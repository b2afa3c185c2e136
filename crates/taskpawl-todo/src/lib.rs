//! To-do lists of language models, as tools: four dialects on top of one list type.
//!
//! A [`Dialect`] is a set of tools with fixed names, parameters and answers, because models and prompts were tuned on
//! them. [`Lists`] keeps the lists and creates the tools. Everything that can call a [`Tool`](taskpawl_tools::Tool) can
//! host them. [`guide`], [`help`](help()), the descriptions and the schemas are generated from one vocabulary, so they
//! cannot contradict each other.
//!
//! - **Scope**: the conversation or session that a list belongs to. [`ScopeRule`] determines it for each call. A
//!   program that embeds the tools runs its agents within [`in_scope`](taskpawl_tools::in_scope).
//! - **Storage**: lists of conversations and queues are files that several processes may change at the same time.
//!   Checklists and session lists are kept in memory. Checklists are published to other processes through the events of
//!   a store ([`Lists::mirror_to`]).
//! - **Not executable**: nothing in a list is ever run. [`Promotion`] turns items into tasks for agents and people;
//!   [`Lists::promoter`] is the tool for that.
//!
//! ```
//! use serde_json::json;
//! use taskpawl_todo::{Dialect, Lists, prompt_block};
//! use taskpawl_tools::{CallContext, in_scope};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let lists = Lists::builder().build();
//! let tool = lists.tools(Dialect::Checklist).remove(0);
//! let args = json!({"taskList": [{"id": 1, "title": "Set up project structure", "status": "completed"}]});
//!
//! let answer = in_scope("talk-1", async { tool.call(CallContext::new("/", "/tmp/call"), args).await });
//! assert_eq!(answer.await.unwrap(), r#"{"success":true,"message":"Task list updated: 1/1 completed"}"#);
//! assert!(lists.prompt_block("talk-1").contains("Progress: 1/1 tasks completed"));
//! assert_eq!(lists.prompt_block("talk-2"), "");
//! # });
//! ```

mod answer;
mod args;
mod checklist;
mod conversation;
mod dialect;
mod file;
mod folder;
mod guide;
mod list;
mod lists;
mod liveness_lock;
mod mirror;
mod promote;
mod promoter;
mod prompt;
mod published;
mod queue;
mod read;
mod scope;
mod session;
mod tool;
mod vocabulary;

#[cfg(test)]
mod stress;

pub use dialect::Dialect;
pub use guide::{guide, help, summary, table, tool_names};
pub use list::{Item, ItemId, State, Urgency};
pub use lists::{ListError, Lists, ListsBuilder};
pub use mirror::{MirroredList, MirroredLists, clear_mirrored, mirrored_list, mirrored_lists};
pub use promote::{Promoted, Promotion, choose};
pub use prompt::{plain_title, prompt_block};
pub use scope::ScopeRule;
pub use taskpawl_model::task::{ChecklistItem, ChecklistStatus};
