//! Expressions: `${{ … }}` in arguments and in the options of a task, a subset of Jinja's expressions.
//!
//! The evaluator is our own. Jinja engines are made for templates of the operator. Here agents write the expressions,
//! and the process must survive all of them. The language is taken from minijinja, which does not fit:
//!
//! - It overflows the stack and aborts on `1+1+…`, `not not …`, `a.b.b…` and `a[0][0]…` with 100,000 parts.
//! - Its fuel counts instructions but not copied bytes: `s ~ s ~ …`, or `join` on a long list, takes seconds or all
//!   memory.
//!
//! Here the parser limits the depth, and one budget pays for everything that is walked or copied. No operation
//! multiplies text, and there are no loops and no functions of the author. In return every name is known before
//! anything runs: tasks, parameters and context values are referred to by literals only.
//!
//! Reading order: `data` (the data of expressions), `words` (filters and tests), `template` (the entry points), `scan`,
//! `lexer`, `parser`, `ast`, `eval`, `filters`, `shell`, `shell_place`.

mod ast;
mod budget;
mod data;
mod error;
mod eval;
mod filters;
mod lexer;
mod names;
mod number;
mod param_type;
mod parser;
mod provenance;
mod rename;
mod say;
mod scan;
mod shell;
mod shell_place;
mod template;
mod typed;
mod unmarked;
mod words;

pub use ast::{Name, TaskField};
pub(crate) use budget::Budget;
pub use data::{Args, Data, Evaluated, References, TaskData, TaskUse};
pub use error::{EvalError, EvalFault, ExprError, ExprFault};
pub use param_type::ParamType;
pub use provenance::{CutParts, Provenance, Provenances};
pub(crate) use rename::{
    as_expression, as_literal, lone_name, rename_in_condition, rename_in_value, typed_expression,
};
pub(crate) use scan::OPEN;
pub use template::{
    Mention, args_mentions, args_references, condition_mentions, condition_references, evaluate,
    evaluate_args, evaluate_condition, evaluate_expression, inserts_raw, lone_expression, mentions,
    references, result_fields, result_fields_of_condition, with_secret_variables,
};
pub(crate) use template::{check_no_expression, deciding_mentions, fixed_type, text_mentions};
pub use unmarked::unmarked_expression;
pub use words::{FILTERS, ROOTS, TESTS, Word};
