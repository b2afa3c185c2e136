//! Errors in expressions, from parsing and from evaluation.

use std::fmt;

use crate::task::FailureClass;
use crate::value::secret::SecretFault;

/// A parse error in an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ExprError {
    /// The path within the value, such as `argv[2]`; empty if the value is a text.
    pub pointer: String,
    /// The byte offset in that text.
    pub offset: usize,
    /// The problem.
    pub fault: ExprFault,
    /// The hint.
    pub hint: Option<String>,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        write!(f, "{}", self.fault)
    }
}

impl std::error::Error for ExprError {}

/// The kinds of parse errors.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExprFault {
    /// `${{` without a closing `}}`.
    #[error("`${{{{` is not closed by `}}}}`")]
    Unclosed,
    /// Nothing between the braces.
    #[error("the expression is empty")]
    Empty,
    /// The expression is too long.
    #[error("the expression has more than {limit} bytes")]
    TooLong {
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The expression is nested too deeply.
    #[error("the expression is nested more than {limit} deep")]
    TooDeep {
        /// The maximum number of levels.
        limit: usize,
    },
    /// A character that the language does not use.
    #[error("unexpected character `{}`", found.escape_debug())]
    Character {
        /// The character.
        found: char,
    },
    /// A text without its closing quote.
    #[error("the text that begins here is not closed")]
    UnclosedText,
    /// An unknown escape sequence.
    #[error("unknown escape `{text}`")]
    Escape {
        /// The backslash and the next character.
        text: String,
    },
    /// A number that cannot be stored exactly.
    #[error("invalid number `{text}`")]
    Number {
        /// The number as written.
        text: String,
    },
    /// An unexpected token.
    #[error("unexpected {found}, expected {expected}")]
    Unexpected {
        /// The token.
        found: String,
        /// The expected syntax.
        expected: &'static str,
    },
    /// An operator that the language does not have.
    #[error("unknown operator `{operator}`")]
    Operator {
        /// The operator.
        operator: String,
    },
    /// An unknown name.
    #[error("unknown name `{name}`")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// An unknown filter.
    #[error("unknown filter `{name}`")]
    UnknownFilter {
        /// The name.
        name: String,
    },
    /// An unknown test.
    #[error("unknown test `{name}`")]
    UnknownTest {
        /// The name.
        name: String,
    },
    /// Wrong arguments for a filter or test.
    #[error("`{name}` takes {takes}")]
    Arguments {
        /// The filter or test.
        name: &'static str,
        /// The accepted arguments.
        takes: String,
    },
    /// A call of a function or a method.
    #[error("unknown function `{name}`")]
    Call {
        /// The function.
        name: String,
    },
    /// A subscript of a root that is no literal.
    #[error("`{root}` must be followed by a literal name, such as `{root}['build']`")]
    Subscript {
        /// `params`, `context` or `tasks`.
        root: &'static str,
    },
    /// A task without a field.
    #[error("`{task}` alone has no value")]
    TaskAlone {
        /// The task as written.
        task: String,
    },
    /// An unknown field of a task.
    #[error("`{task}` has no `{field}`")]
    TaskField {
        /// The task as written.
        task: String,
        /// The field.
        field: String,
    },
    /// A name with a dash, which parses as a subtraction.
    #[error("`{written}` is parsed as a subtraction")]
    Minus {
        /// The text as written.
        written: String,
    },
    /// Comparisons in a row.
    #[error("comparisons cannot be chained")]
    Chained,
    /// `if` without `else`.
    #[error("`if` needs an `else`")]
    NoElse,
    /// `raw` inside an expression.
    #[error("`raw` must be the last filter of the whole expression")]
    RawInside,
    /// `raw` outside a shell command.
    #[error("`raw` is only allowed in `command` of the tool `shell`")]
    RawElsewhere,
    /// A filter for a type that does not name one.
    #[error("`typed` needs a type as a literal text")]
    TypeWord,
    /// An environment variable whose name is invalid.
    #[error("`{name}` is not a name of an environment variable")]
    VariableName {
        /// The name.
        name: String,
    },
    /// An environment variable that is a part of a larger expression.
    #[error("`env.{name}` must be the whole expression")]
    VariableInside {
        /// The name.
        name: String,
    },
    /// An environment variable outside of the arguments of a call.
    #[error("`env.{name}` is only allowed in the arguments of a call")]
    VariableElsewhere {
        /// The name.
        name: String,
    },
    /// A condition with text around its expression.
    #[error("text and `${{{{ … }}}}` are mixed, but a single expression is required")]
    Mixed,
    /// An expression in a key of an object.
    #[error("keys are not evaluated")]
    Key,
    /// An invalid reference to a secret.
    #[error(transparent)]
    Secret(#[from] SecretFault),
    /// A location in a shell command where a value cannot be quoted.
    #[error("a value cannot be inserted {place} of a shell command")]
    Quoting {
        /// The location.
        place: &'static str,
    },
}

/// An error in the evaluation of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalError {
    /// The path within the value, such as `argv[2]`; empty if the value is a text.
    pub pointer: String,
    /// The expression as written, shortened if it is long.
    pub expression: String,
    /// The problem.
    pub fault: Box<EvalFault>,
    /// The hint.
    pub hint: Option<String>,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "`{}`: ", self.pointer)?;
        }
        write!(f, "in `{}`: {}", self.expression, self.fault)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for EvalError {}

impl EvalError {
    /// Returns the failure class of the call or task.
    pub fn class(&self) -> FailureClass {
        let is_cut = matches!(*self.fault, EvalFault::Cut { .. });
        if is_cut { FailureClass::Truncated } else { FailureClass::Expression }
    }
}

/// The kinds of evaluation errors.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalFault {
    /// The expression has a parse error.
    #[error(transparent)]
    Syntax(#[from] ExprFault),
    /// A value does not exist.
    #[error("`{path}` is missing: {there}")]
    Missing {
        /// The path up to the first missing part.
        path: String,
        /// A description of the value that exists instead.
        there: String,
    },
    /// A value has a wrong type.
    #[error("{what} needs {expected}, `{path}` is {found}")]
    Kind {
        /// The operation.
        what: String,
        /// The type it needs.
        expected: &'static str,
        /// The expression with the wrong value.
        path: String,
        /// A description of the value.
        found: String,
    },
    /// An operator cannot combine two values.
    #[error("`{operator}` cannot combine {left} and {right}")]
    Operands {
        /// The operator.
        operator: &'static str,
        /// The kind of the left value.
        left: &'static str,
        /// The kind of the right value.
        right: &'static str,
    },
    /// A division by zero.
    #[error("division by zero")]
    Zero,
    /// A number is outside the range of 64 bits.
    #[error("a number is out of range")]
    Range,
    /// A filter cannot parse a text.
    #[error("`{filter}` cannot parse {text}: {reason}")]
    Unreadable {
        /// The filter.
        filter: &'static str,
        /// The text, shortened.
        text: String,
        /// The reason.
        reason: String,
    },
    /// The value has no text form.
    #[error("`{path}` is none, which has no text form")]
    NoText {
        /// The expression.
        path: String,
    },
    /// A text with a NUL byte, which program arguments cannot contain.
    #[error("`{path}` contains a NUL byte, which a command cannot contain")]
    Nul {
        /// The expression.
        path: String,
    },
    /// The value was truncated when it was stored.
    #[error("`{path}` was truncated: it contains only part of the tool's result")]
    Cut {
        /// The expression with the truncated value.
        path: String,
    },
    /// The budget is used up.
    #[error("the expression reads or copies more than {limit} bytes")]
    Exhausted {
        /// The maximum number of bytes.
        limit: u64,
    },
}

/// A parse error, relative to the expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub(super) offset: usize,
    pub(super) what: Box<ExprFault>,
    pub(super) hint: Option<String>,
}

impl Fault {
    pub(super) fn new(offset: usize, fault: ExprFault) -> Self {
        Self { offset, what: Box::new(fault), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Converts to an error in the text that contains the expression from byte `begin` on.
    pub(super) fn at(self, pointer: &str, begin: usize) -> ExprError {
        ExprError {
            pointer: pointer.to_owned(),
            offset: begin + self.offset,
            fault: *self.what,
            hint: self.hint,
        }
    }
}
