//! Expressions: `${{ … }}` in arguments and in the options of a task, a subset of Jinja's expressions.
//!
//! The evaluator is our own. Jinja engines are made for templates that their operator wrote; here an agent writes them,
//! and the process must survive whatever it writes: minijinja, which the language is taken from, runs out of stack (and
//! aborts) on `1+1+…`, `not not …`, `a.b.b…` and `a[0][0]…` of 100,000 parts, and its fuel counts instructions but not
//! what they copy, so that `s ~ s ~ …` or `join` of a long list take seconds or all memory. Here depth is limited when
//! an expression is parsed, everything that is walked or copied is paid for from one budget, nothing multiplies text,
//! and there are neither loops nor functions of the author. In return, every name is known before anything runs: tasks,
//! parameters and context values are named by literals only.
//!
//! Reading order: `data` (what expressions see), `words` (filters and tests), `template` (the functions that others
//! call), `scan`, `lexer`, `parser`, `ast`, `eval`, `filters`, `shell`, `shell_place`.

mod ast;
mod budget;
mod data;
mod error;
mod eval;
mod filters;
mod lexer;
mod names;
mod number;
mod parser;
mod provenance;
mod say;
mod scan;
mod shell;
mod shell_place;
mod template;
mod words;

pub use ast::{Name, TaskField};
pub(crate) use budget::Budget;
pub use data::{Args, Data, Evaluated, References, TaskData, TaskUse};
pub use error::{EvalError, EvalFault, ExprError, ExprFault};
pub use provenance::{CutParts, Provenance, Provenances};
pub(crate) use scan::OPEN;
pub use template::{
    Mention, args_mentions, args_references, condition_mentions, condition_references, evaluate,
    evaluate_args, evaluate_condition, evaluate_expression, inserts_raw, lone_expression, mentions,
    references, with_secret_variables,
};
pub(crate) use template::{check_no_expression, deciding_mentions, text_mentions};
pub(crate) use words::closest;
pub use words::{FILTERS, OPERATORS, ROOTS, TESTS, Word};
