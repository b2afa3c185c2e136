//! What is wrong with an expression, before and while it is evaluated.

use std::fmt;

use crate::FailureClass;
use crate::secret::SecretFault;

/// An expression that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct ExprError {
    /// The text within the value, such as `argv[2]`; empty when the value is the text.
    pub pointer: String,
    /// Where in that text, in bytes from 0.
    pub offset: usize,
    /// What is wrong.
    pub fault: ExprFault,
    /// What to do next.
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

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExprFault {
    /// No `}}` follows.
    #[error("`${{{{` is not closed by `}}}}`")]
    Unclosed,
    /// Nothing stands in it.
    #[error("the expression is empty")]
    Empty,
    /// It is too long.
    #[error("the expression has more than {limit} bytes")]
    TooLong {
        /// The most bytes.
        limit: usize,
    },
    /// It has too many levels.
    #[error("the expression is nested more than {limit} deep")]
    TooDeep {
        /// The most levels.
        limit: usize,
    },
    /// A character that has no meaning.
    #[error("unexpected character `{}`", found.escape_debug())]
    Character {
        /// The character.
        found: char,
    },
    /// A text without its second quote.
    #[error("the text that begins here is not closed")]
    UnclosedText,
    /// A backslash before something that has no meaning after it.
    #[error("unknown escape `{text}`")]
    Escape {
        /// The backslash and what follows.
        text: String,
    },
    /// A number that cannot be kept.
    #[error("number `{text}` cannot be read")]
    Number {
        /// The number as written.
        text: String,
    },
    /// Something else should stand here.
    #[error("unexpected {found}, expected {expected}")]
    Unexpected {
        /// What is there.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// An operator that the language does not have.
    #[error("there is no operator `{operator}`")]
    Operator {
        /// The operator.
        operator: String,
    },
    /// A name that means nothing.
    #[error("unknown name `{name}`")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// A filter that does not exist.
    #[error("unknown filter `{name}`")]
    UnknownFilter {
        /// The name.
        name: String,
    },
    /// A test that does not exist.
    #[error("unknown test `{name}`")]
    UnknownTest {
        /// The name.
        name: String,
    },
    /// Wrong arguments of a filter or test.
    #[error("`{name}` takes {takes}")]
    Arguments {
        /// The filter or test.
        name: &'static str,
        /// What it takes.
        takes: String,
    },
    /// A function or a method.
    #[error("there is no function `{name}`")]
    Call {
        /// What is called.
        name: String,
    },
    /// A subscript that is only known later.
    #[error("`{root}` is followed by a name that is written out, such as `{root}['build']`")]
    Subscript {
        /// `params`, `context` or `tasks`.
        root: &'static str,
    },
    /// A task without one of its fields.
    #[error("`{task}` alone has no value")]
    TaskAlone {
        /// The task as written.
        task: String,
    },
    /// A field that expressions do not see.
    #[error("`{task}` has no `{field}`")]
    TaskField {
        /// The task as written.
        task: String,
        /// The field.
        field: String,
    },
    /// A name with a dash, which is read as a subtraction.
    #[error("`{written}` is read as a subtraction")]
    Minus {
        /// What is written.
        written: String,
    },
    /// Comparisons in a row.
    #[error("comparisons cannot follow each other")]
    Chained,
    /// `if` without `else`.
    #[error("`if` needs an `else`")]
    NoElse,
    /// `raw` somewhere within.
    #[error("`raw` must be the last filter of the whole expression")]
    RawInside,
    /// `raw` outside of a shell command.
    #[error("`raw` is only for `command` of the tool `shell`")]
    RawElsewhere,
    /// Text around the expression of a condition.
    #[error("text and `${{{{ … }}}}` are mixed where one expression is needed")]
    Mixed,
    /// An expression in a key.
    #[error("keys are not evaluated")]
    Key,
    /// A secret that cannot be named so.
    #[error(transparent)]
    Secret(#[from] SecretFault),
    /// A place in a shell command where no value can be quoted.
    #[error("a value cannot be inserted {place} of a shell command")]
    Quoting {
        /// The place.
        place: &'static str,
    },
}

/// An expression that could not be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalError {
    /// The text within the value, such as `argv[2]`; empty when the value is the text.
    pub pointer: String,
    /// The expression as written, shortened when it is long.
    pub expression: String,
    /// What is wrong.
    pub fault: Box<EvalFault>,
    /// What to do next.
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
    /// Returns the class of the failure that this is.
    pub fn class(&self) -> FailureClass {
        let is_cut = matches!(*self.fault, EvalFault::Cut { .. });
        if is_cut { FailureClass::Truncated } else { FailureClass::Expression }
    }
}

/// Why an expression could not be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalFault {
    /// It cannot be read.
    #[error(transparent)]
    Syntax(#[from] ExprFault),
    /// Something is not there.
    #[error("`{path}` is missing: {there}")]
    Missing {
        /// The path as far as the first part that is missing.
        path: String,
        /// What is there instead.
        there: String,
    },
    /// A value of another kind is needed.
    #[error("{what} needs {expected}, `{path}` is {found}")]
    Kind {
        /// What needs it.
        what: String,
        /// What it needs.
        expected: &'static str,
        /// The expression whose value it is.
        path: String,
        /// What the value is.
        found: String,
    },
    /// Two values that do not go together.
    #[error("`{operator}` cannot take {left} and {right}")]
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
    /// A number that does not fit.
    #[error("a number is out of range")]
    Range,
    /// A text that a filter cannot read.
    #[error("`{filter}` cannot read {text}: {reason}")]
    Unreadable {
        /// The filter.
        filter: &'static str,
        /// The text, shortened.
        text: String,
        /// Why not.
        reason: String,
    },
    /// No text can be made of the value.
    #[error("`{path}` is none, which has no text")]
    NoText {
        /// The expression.
        path: String,
    },
    /// A text with a NUL byte, which no program can be given.
    #[error("`{path}` contains a NUL byte, which no command can hold")]
    Nul {
        /// The expression.
        path: String,
    },
    /// A part of the value was left out where it was stored.
    #[error("`{path}` was cut: it holds only a part of what the tool returned")]
    Cut {
        /// The expression whose value it is.
        path: String,
    },
    /// It uses too much.
    #[error("the expression walks or copies more than {limit} bytes")]
    Exhausted {
        /// The most bytes.
        limit: u64,
    },
}

/// A fault while reading, at a place of the expression.
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

    /// Returns the error, the expression being at a place of a text.
    pub(super) fn at(self, pointer: &str, begin: usize) -> ExprError {
        ExprError {
            pointer: pointer.to_owned(),
            offset: begin + self.offset,
            fault: *self.what,
            hint: self.hint,
        }
    }
}
