//! The few expressions that random plans use, as a tree. It is printed for the plan, and evaluated here independently
//! of the model.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::task::Status;

use super::plan::RandomPlan;

/// An expression. Tasks are referred to by position.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A literal: a number, a string or a boolean.
    Is(Value),
    /// `params.NAME`
    Param(&'static str),
    /// `tasks['ID'].status`
    Status(usize),
    /// `tasks['ID'].result`
    Result(usize),
    /// `tasks['ID'].results`
    Results(usize),
    /// `tasks['ID'].context.NAME`
    Context(usize, String),
    /// `context.NAME`
    Own(String),
    /// `item`
    Item,
    /// `index`
    Index,
    /// `OF.NAME`
    Field(Box<Expr>, &'static str),
    /// `X is none`
    IsNone(Box<Expr>),
    /// `X == VALUE`
    Equals(Box<Expr>, Value),
    /// `X >= NUMBER`
    AtLeast(Box<Expr>, u32),
    /// `not X`
    Not(Box<Expr>),
    /// `X and Y`
    And(Box<Expr>, Box<Expr>),
    /// `X or Y`
    Or(Box<Expr>, Box<Expr>),
}

/// A value in a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// A literal.
    Given(Value),
    /// A single expression, which keeps its type.
    Lone(Expr),
    /// An expression after a literal text.
    Text(&'static str, Expr),
}

/// The visible outcome of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    pub(crate) status: Status,
    pub(crate) result: Value,
    pub(crate) results: Vec<Value>,
    pub(crate) context: BTreeMap<String, Value>,
}

/// The values that an expression can use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) params: BTreeMap<&'static str, Value>,
    pub(crate) tasks: BTreeMap<usize, Fact>,
    pub(crate) own: BTreeMap<String, Value>,
    pub(crate) item: Option<(usize, Value)>,
}

impl Expr {
    /// Returns the expression in the syntax of plans.
    pub fn text(&self) -> String {
        match self {
            Self::Is(value) => literal(value),
            Self::Param(name) => format!("params.{name}"),
            Self::Status(task) => format!("tasks['{}'].status", RandomPlan::id(*task)),
            Self::Result(task) => format!("tasks['{}'].result", RandomPlan::id(*task)),
            Self::Results(task) => format!("tasks['{}'].results", RandomPlan::id(*task)),
            Self::Context(task, name) => format!("tasks['{}'].context.{name}", RandomPlan::id(*task)),
            Self::Own(name) => format!("context.{name}"),
            Self::Item => "item".to_owned(),
            Self::Index => "index".to_owned(),
            Self::Field(of, name) => format!("{}.{name}", of.text()),
            Self::IsNone(of) => format!("({} is none)", of.text()),
            Self::Equals(one, other) => format!("({} == {})", one.text(), literal(other)),
            Self::AtLeast(one, other) => format!("({} >= {other})", one.text()),
            Self::Not(of) => format!("(not {})", of.text()),
            Self::And(one, other) => format!("({} and {})", one.text(), other.text()),
            Self::Or(one, other) => format!("({} or {})", one.text(), other.text()),
        }
    }

    /// Evaluates the expression; `None` if a value is missing.
    pub(crate) fn value(&self, facts: &Facts) -> Option<Value> {
        Some(match self {
            Self::Is(value) => value.clone(),
            Self::Param(name) => facts.params.get(name)?.clone(),
            Self::Status(task) => json!(facts.tasks.get(task)?.status.as_str()),
            Self::Result(task) => facts.tasks.get(task)?.result.clone(),
            Self::Results(task) => json!(facts.tasks.get(task)?.results),
            Self::Context(task, name) => facts.tasks.get(task)?.context.get(name)?.clone(),
            Self::Own(name) => facts.own.get(name)?.clone(),
            Self::Item => facts.item.as_ref()?.1.clone(),
            Self::Index => json!(facts.item.as_ref()?.0),
            Self::Field(of, name) => of.value(facts)?.get(*name)?.clone(),
            Self::IsNone(of) => json!(of.value(facts)?.is_null()),
            Self::Equals(one, other) => json!(one.value(facts)? == *other),
            Self::AtLeast(one, other) => json!(one.value(facts)?.as_u64()? >= u64::from(*other)),
            Self::Not(of) => json!(!of.holds(facts)?),
            Self::And(one, other) => json!(one.holds(facts)? && other.holds(facts)?),
            Self::Or(one, other) => json!(one.holds(facts)? || other.holds(facts)?),
        })
    }

    /// Evaluates the condition; `None` if a value is missing or not a boolean.
    pub(crate) fn holds(&self, facts: &Facts) -> Option<bool> {
        self.value(facts)?.as_bool()
    }

    /// Returns the conjunction of both expressions.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    /// Returns the negation.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Returns the condition that the value is not none, and that `holds` is true for one of its fields.
    pub(crate) fn known(self, field: &'static str, holds: impl FnOnce(Box<Self>) -> Self) -> Self {
        let of = Self::Field(Box::new(self.clone()), field);
        Self::IsNone(Box::new(self)).negated().and(holds(Box::new(of)))
    }
}

fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("'{text}'"))
}

impl Template {
    /// Returns the value in the syntax of plans.
    pub fn printed(&self) -> Value {
        match self {
            Self::Given(value) => value.clone(),
            Self::Lone(expr) => json!(format!("${{{{ {} }}}}", expr.text())),
            Self::Text(before, expr) => json!(format!("{before}${{{{ {} }}}}", expr.text())),
        }
    }

    /// Evaluates the value; `None` if a part is missing.
    pub(crate) fn value(&self, facts: &Facts) -> Option<Value> {
        match self {
            Self::Given(value) => Some(value.clone()),
            Self::Lone(expr) => expr.value(facts),
            Self::Text(before, expr) => {
                let value = expr.value(facts)?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Some(json!(format!("{before}{text}")))
            }
        }
    }
}
