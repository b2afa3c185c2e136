//! Parses the root names of values. The next member must be a literal, so that all references of an expression are
//! known after parsing.

use serde_json::Value;
use taskpawl_text::nearest;

use super::ast::{Expr, Name, TaskField};
use super::error::{ExprFault, Fault};
use super::lexer::Lexeme;
use super::parser::{Parser, call_of, is_name};
use super::say::shortened;
use super::words;
use crate::value::variable_of_reference;

type Parse<T> = Result<T, Fault>;

const TASK_FIELDS: [&str; 6] = ["artifacts", "context", "error", "result", "results", "status"];

impl Parser<'_> {
    /// Reads a root name with its literal members.
    pub(super) fn name(&mut self, start: usize, word: &str) -> Parse<Expr> {
        let root = match word {
            "params" => "params",
            "context" => "context",
            "tasks" => "tasks",
            "env" => return self.variable(start),
            _ => return self.simple_name(start, word),
        };
        self.advance();
        let (at, member) = self.member(root)?;
        if root != "tasks" {
            self.refuse_minus_after(at, start)?;
            let name = if root == "params" { Name::Param(member) } else { Name::Context(member) };
            return self.named(start, name);
        }
        let bracket = self.text[..self.last_end()].ends_with(']');
        if !bracket && self.is_sign("-") && self.token().start == self.last_end() {
            return Err(self.minus(at, start));
        }
        let field = self.task_field(start, &member, bracket)?;
        self.named(start, Name::Task { task: member, field })
    }

    fn variable(&mut self, start: usize) -> Parse<Expr> {
        self.advance();
        let (at, name) = self.member("env")?;
        // Only this form, so that the variables of a text can be found without a parser.
        if variable_of_reference(&self.text[start..self.last_end()]).is_none() {
            let fault = Fault::new(at, ExprFault::VariableName { name: shortened(&name) });
            return Err(
                fault.hint("write `env.NAME`, with letters, digits and `_`, and no digit at the start")
            );
        }
        self.named(start, Name::Variable(name))
    }

    fn simple_name(&mut self, start: usize, word: &str) -> Parse<Expr> {
        let name = match word {
            "item" => Name::Item,
            "index" => Name::Index,
            "attempt" => Name::Attempt,
            word => return Err(self.unknown_name(start, word)),
        };
        self.advance();
        self.named(start, name)
    }

    fn unknown_name(&mut self, start: usize, word: &str) -> Fault {
        self.advance();
        if self.is_sign("(") {
            return call_of(start, word);
        }
        let fault = Fault::new(start, ExprFault::UnknownName { name: shortened(word) });
        fault.hint(unknown_hint(word))
    }

    /// Refuses `params.my-name`, unless the word after the dash is a literal or a root name.
    fn refuse_minus_after(&self, at: usize, start: usize) -> Parse<()> {
        if self.text[..self.last_end()].ends_with(']') { Ok(()) } else { self.refuse_minus(at, start) }
    }

    /// Reads `.name` or `['name']`.
    fn member(&mut self, root: &'static str) -> Parse<(usize, String)> {
        if self.eat(".") {
            let at = self.token().start;
            let name = match self.peek() {
                Lexeme::Word(name) => name.clone(),
                Lexeme::Literal(Value::Number(number)) => number.to_string(),
                Lexeme::Literal(_) | Lexeme::Sign(_) | Lexeme::End => {
                    return Err(self.unexpected("a name after the dot"));
                }
            };
            self.advance();
            return Ok((at, name));
        }
        let at = self.token().start;
        if !self.eat("[") {
            return Err(Fault::new(at, ExprFault::Subscript { root })
                .hint(format!("write `{root}.NAME` or `{root}['NAME']`")));
        }
        let Lexeme::Literal(Value::String(name)) = self.peek().clone() else {
            return Err(
                Fault::new(self.token().start, ExprFault::Subscript { root }).hint(subscript_hint(root))
            );
        };
        self.advance();
        if !self.eat("]") {
            return Err(Fault::new(at, ExprFault::Subscript { root }).hint(subscript_hint(root)));
        }
        Ok((at, name))
    }

    fn task_field(&mut self, start: usize, task: &str, bracket: bool) -> Parse<TaskField> {
        let written = self.text[start..self.last_end()].to_owned();
        let at = self.token().start;
        if !self.is_sign(".") && !self.is_sign("[") {
            let fault = Fault::new(start, ExprFault::TaskAlone { task: shortened(&written) });
            return Err(
                fault.hint(format!("write `{written}.result`; also available are {}", list(&TASK_FIELDS)))
            );
        }
        let (_, field) = self.member("tasks['ID']")?;
        Ok(match field.as_str() {
            "result" => TaskField::Result,
            "results" => TaskField::Results,
            "status" => TaskField::Status,
            "error" => TaskField::Error,
            "context" => TaskField::Context(self.member("tasks['ID'].context")?.1),
            "artifacts" => TaskField::Artifact(self.member("tasks['ID'].artifacts")?.1),
            field => return Err(self.task_field_fault(at + 1, &written, task, field, bracket)),
        })
    }

    fn task_field_fault(&self, at: usize, written: &str, task: &str, field: &str, bracket: bool) -> Fault {
        let next_is_field = self.text[self.last_end()..]
            .strip_prefix('.')
            .is_some_and(|rest| TASK_FIELDS.iter().any(|field| rest.starts_with(field)));
        let hint = match nearest(field, TASK_FIELDS) {
            _ if !bracket && next_is_field => {
                format!("for the task `{task}.{field}`, write `tasks['{task}.{field}']`")
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "call results are in `{written}.result` or `{written}.context`; available are {}",
                list(&TASK_FIELDS)
            ),
        };
        let fault = ExprFault::TaskField { task: shortened(written), field: shortened(field) };
        Fault::new(at, fault).hint(hint)
    }
}

fn subscript_hint(root: &str) -> String {
    match root {
        "params" => "computed names work only for fields of a parameter of type object".to_owned(),
        "context" => "computed names work only for fields of a context value: `context.NAME[…]`".to_owned(),
        _ => "write the id: an expression's tasks are checked before the run starts".to_owned(),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns a hint for an unknown name: its equivalent if another tool uses it, or a similar name.
fn unknown_hint(word: &str) -> String {
    let instead = match word {
        "null" | "nil" | "undefined" => "none",
        "steps" | "needs" | "jobs" | "nodes" | "outputs" => "tasks['ID'].result",
        "inputs" | "vars" | "variables" | "arguments" | "args" => "params.NAME",
        "environment" | "environ" | "ENV" => "env.NAME",
        "self" | "this" | "ctx" | "metadata" => "context.NAME",
        "loop" | "i" => "index",
        "each" | "it" | "element" => "item",
        _ => {
            let known = words::ROOTS.iter().map(|root| root.name);
            return match nearest(word, known.clone().chain(["none", "true", "false"])) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("put text in quotes; the names are {}", list(&known.collect::<Vec<_>>())),
            };
        }
    };
    debug_assert!(is_name(instead.split(['.', '[']).next().unwrap_or(instead)));
    format!("write `{instead}`")
}
