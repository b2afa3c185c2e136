//! The syntax tree of an expression.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::words::{TYPED, Word};

/// The maximum depth of an expression. Recursive code cannot exhaust the stack below it.
pub(super) const MAX_DEPTH: usize = 100;

/// The maximum length of an expression in bytes.
pub(super) const MAX_BYTES: usize = 65_536;

/// A part of an expression, with its byte range in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expr {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The number of levels, including this one.
    pub(super) depth: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Value(Value),
    Name(Name),
    Attribute(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    If { test: Box<Expr>, then: Box<Expr>, otherwise: Box<Expr> },
    Filter { of: Box<Expr>, filter: &'static Word, arguments: Arguments },
    Test { of: Box<Expr>, test: &'static Word, arguments: Vec<Expr>, negated: bool },
    List(Vec<Expr>),
    Object(Vec<(Expr, Expr)>),
    Range(Vec<Expr>),
}

/// The arguments of a filter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Arguments {
    pub(super) plain: Vec<Expr>,
    pub(super) named: Vec<(String, Expr)>,
}

impl Arguments {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Expr> {
        self.plain.iter().chain(self.named.iter().map(|(_, value)| value))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Concat,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
}

impl Op {
    /// Returns the binding strength of an operator; higher values bind tighter.
    pub(super) fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Equal
            | Self::Unequal
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::In
            | Self::NotIn => COMPARISON,
            Self::Add | Self::Subtract => 5,
            Self::Concat => 6,
            Self::Multiply | Self::Divide | Self::FloorDivide | Self::Remainder => 7,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Concat => "~",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
        }
    }
}

/// `not` binds less tightly than comparisons, so that `not a == b` means `not (a == b)`.
pub(super) const NOT: u8 = 3;
pub(super) const COMPARISON: u8 = 4;

/// A name that an expression uses. Names are always literal, so that all of them are known before evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `params.NAME`.
    Param(String),
    /// `context.NAME`.
    Context(String),
    /// `tasks['TASK'].FIELD`.
    Task {
        /// The task as written: an id or a name.
        task: String,
        /// The part of the task.
        field: TaskField,
    },
    /// `env.NAME`: an environment variable of the run.
    Variable(String),
    /// `item`.
    Item,
    /// `index`.
    Index,
    /// `attempt`.
    Attempt,
}

/// The parts of another task that expressions can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskField {
    /// `context.NAME`.
    Context(String),
    /// `result`.
    Result,
    /// `artifacts.NAME`.
    Artifact(String),
    /// `results`.
    Results,
    /// `status`.
    Status,
    /// `error`.
    Error,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(name) => write!(f, "params{}", Member(name)),
            Self::Context(name) => write!(f, "context{}", Member(name)),
            Self::Task { task, field } => write!(f, "tasks{}.{field}", Member(task)),
            Self::Variable(name) => write!(f, "env.{name}"),
            Self::Item => f.write_str("item"),
            Self::Index => f.write_str("index"),
            Self::Attempt => f.write_str("attempt"),
        }
    }
}

impl fmt::Display for TaskField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context(name) => write!(f, "context{}", Member(name)),
            Self::Artifact(name) => write!(f, "artifacts{}", Member(name)),
            Self::Result => f.write_str("result"),
            Self::Results => f.write_str("results"),
            Self::Status => f.write_str("status"),
            Self::Error => f.write_str("error"),
        }
    }
}

/// A member of a root, displayed in the syntax of expressions.
struct Member<'n>(&'n str);

impl fmt::Display for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !self.0.is_empty() && self.0.chars().all(is_plain) {
            write!(f, ".{}", self.0)
        } else {
            write!(f, "['{}']", self.0)
        }
    }
}

impl Expr {
    /// Returns the direct parts of this one, in the order of the text.
    fn parts(&self) -> Vec<&Self> {
        match &self.kind {
            Kind::Value(_) | Kind::Name(_) => Vec::new(),
            Kind::Attribute(of, _) | Kind::Not(of) | Kind::Negate(of) => vec![of],
            Kind::Index(left, right) | Kind::Binary(_, left, right) => vec![left, right],
            Kind::Slice(of, from, to) => {
                [Some(of), from.as_ref(), to.as_ref()].into_iter().flatten().map(|part| &**part).collect()
            }
            Kind::If { test, then, otherwise } => vec![then, test, otherwise],
            Kind::Filter { of, arguments, .. } => std::iter::once(&**of).chain(arguments.iter()).collect(),
            Kind::Test { of, arguments, .. } => std::iter::once(&**of).chain(arguments).collect(),
            Kind::List(items) | Kind::Range(items) => items.iter().collect(),
            Kind::Object(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        }
    }

    /// Calls `found` with every attribute that is read from a name, and the name.
    pub(super) fn attributes(&self, found: &mut impl FnMut(&Name, &str)) {
        if let Kind::Attribute(of, attribute) = &self.kind
            && let Kind::Name(name) = &of.checked().kind
        {
            found(name, attribute);
        }
        self.parts().into_iter().for_each(|part| part.attributes(found));
    }

    /// Returns the expression whose value this one is, if it only checks the type.
    fn checked(&self) -> &Self {
        if let Kind::Filter { of, filter, .. } = &self.kind
            && filter.name == TYPED
        {
            return of.checked();
        }
        self
    }

    /// Calls `found` with every name and its byte position, in the order of the text.
    pub(super) fn names(&self, found: &mut impl FnMut(&Name, usize)) {
        self.name_ranges(&mut |name, range| found(name, range.start));
    }

    /// Calls `found` with every name and its byte range, in the order of the text.
    pub(super) fn name_ranges(&self, found: &mut impl FnMut(&Name, Range<usize>)) {
        if let Kind::Name(name) = &self.kind {
            found(name, self.start..self.end);
        }
        self.parts().into_iter().for_each(|part| part.name_ranges(found));
    }
}
