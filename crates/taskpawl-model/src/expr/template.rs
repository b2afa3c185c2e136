//! The entry points of expressions: references, checks and evaluation of texts and values.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::ast::{Name, TaskField};
use super::budget::Budget;
use super::data::{Args, Data, Evaluated, References};
use super::error::{EvalError, EvalFault, ExprError, ExprFault, Fault};
use super::eval::{Eval, Machine, Stop};
use super::param_type::ParamType;
use super::parser::{Parsed, parse};
use super::say::{described, shortened};
use super::scan::{OPEN, Piece, pieces};
use super::shell::{Command, quote};
use super::shell_place::{Part, data_words};
use super::typed::type_of;
use crate::task::spec::{MERGE_TOOL, RETURN_TOOL};
use crate::task::trust::{UntrustedValue, add_values};
use crate::value::Map;
use crate::value::secret::{
    SecretFault, SecretPiece, mentions_secret, secret_pieces, shield, shield_inserted, variable_of_reference,
    variable_reference,
};

/// A name in a value, with its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    /// The path within the value, such as `argv[2]`; empty if the value is a text.
    pub pointer: String,
    /// The byte offset in that text.
    pub offset: usize,
    /// The name.
    pub name: Name,
}

/// A reference that stands for any in an analysis of commands.
const ANY_REFERENCE: &str = "${secret:env.NAME}";

/// The use of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A value. A single expression keeps its type; with other text around it, the result is text.
    Value,
    /// A shell command.
    Command,
    /// A value that the tool only stores or prints, so that it cannot influence what happens.
    Data,
}

/// Returns the references of the expressions in a value.
pub fn references(value: &Value) -> Result<References, ExprError> {
    Ok(names(&mentions(value)?))
}

/// Returns the references of a condition: an expression, bare or in `${{ … }}`.
pub fn condition_references(text: &str) -> Result<References, ExprError> {
    Ok(names(&condition_mentions(text)?))
}

/// Returns the references of the arguments of a call. They are checked as in [`evaluate_args`].
pub fn args_references(tool: &str, args: &Map) -> Result<References, ExprError> {
    Ok(names(&args_mentions(tool, args)?))
}

fn names(mentions: &[Mention]) -> References {
    mentions.iter().map(|mention| &mention.name).collect()
}

/// Returns the names in the expressions of a value.
pub fn mentions(value: &Value) -> Result<Vec<Mention>, ExprError> {
    let mut mentions = Vec::new();
    walk(value, &mut String::new(), &mut |text, pointer| {
        mentions_of(text, pointer, Form::Value, &mut mentions)
    })?;
    Ok(mentions)
}

/// Returns the names in a condition.
pub fn condition_mentions(text: &str) -> Result<Vec<Mention>, ExprError> {
    let read = || {
        let (source, at) = alone(text)?;
        let parsed = parse(source).map_err(|fault| shifted(fault, at))?;
        refuse_raw(&parsed, at)?;
        Ok((parsed, at))
    };
    let (parsed, at) = read().map_err(|fault: Fault| fault.at("", 0))?;
    let mut mentions = Vec::new();
    push_names(&parsed, at, "", &mut mentions);
    Ok(mentions)
}

/// Returns the names in the arguments of a call. The pointers begin with the name of the argument.
pub fn args_mentions(tool: &str, args: &Map) -> Result<Vec<Mention>, ExprError> {
    let mut mentions = Vec::new();
    for (name, value) in args {
        check_key(name, "")?;
        let form = form_of(tool, name, value);
        walk(value, &mut name.clone(), &mut |text, pointer| mentions_of(text, pointer, form, &mut mentions))?;
    }
    Ok(mentions)
}

/// Returns the names in arguments that influence a call, without those used as data by construction. Values are not
/// known yet, so this is an approximation.
pub(crate) fn deciding_mentions(tool: &str, args: &Map) -> Result<Vec<Mention>, ExprError> {
    let mut mentions = Vec::new();
    for (name, value) in args {
        match form_of(tool, name, value) {
            Form::Data => {}
            Form::Value => walk(value, &mut name.clone(), &mut |text, pointer| {
                mentions_of(text, pointer, Form::Value, &mut mentions)
            })?,
            Form::Command => {
                let command = value.as_str().unwrap_or_default();
                deciding_words(command).map_err(|fault| fault.at(name, 0))?.into_iter().for_each(
                    |(parsed, at)| {
                        push_names(&parsed, at, name, &mut mentions);
                    },
                );
            }
        }
    }
    Ok(mentions)
}

/// Returns the expressions of a command that influence what runs, assuming that their values are plain words.
fn deciding_words(command: &str) -> Result<Vec<(Parsed, usize)>, Fault> {
    let (mut parts, mut expressions) = (Vec::new(), Vec::new());
    for piece in pieces(command)? {
        match piece {
            Piece::Text(text) => parts.push(Part::Written(text)),
            Piece::Expression { source, at } => {
                let parsed = parse(source).map_err(|fault| shifted(fault, at))?;
                // A variable has no author besides the person who runs the plan.
                if parsed.variable().is_some() {
                    parts.push(Part::Written(ANY_REFERENCE));
                    continue;
                }
                parts.push(if parsed.raw.is_some() { Part::Raw } else { Part::Word("word") });
                expressions.push((parsed, at));
            }
        }
    }
    let places = data_words(&parts);
    Ok(expressions.into_iter().zip(places).filter(|(_, is_data)| !is_data).map(|(found, _)| found).collect())
}

fn form_of(tool: &str, argument: &str, value: &Value) -> Form {
    match (tool, argument) {
        ("shell", "command") | (MERGE_TOOL, "check") if value.is_string() => Form::Command,
        ("write_file", "content") | ("edit_file", "new") | ("log", "message") | (RETURN_TOOL, "value") => {
            Form::Data
        }
        _ => Form::Value,
    }
}

/// Calls `found` with every text in a value and its pointer.
fn walk(
    value: &Value,
    pointer: &mut String,
    visit: &mut impl FnMut(&str, &str) -> Result<(), ExprError>,
) -> Result<(), ExprError> {
    let length = pointer.len();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => visit(text, pointer)?,
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                push_index(pointer, index);
                walk(item, pointer, visit)?;
                pointer.truncate(length);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                check_key(key, pointer)?;
                push_key(pointer, key);
                walk(item, pointer, visit)?;
                pointer.truncate(length);
            }
        }
    }
    Ok(())
}

fn check_key(key: &str, pointer: &str) -> Result<(), ExprError> {
    match key.find(OPEN) {
        Some(at) => Err(Fault::new(at, ExprFault::Key)
            .hint("build the whole object with one `${{ {…} }}`")
            .at(pointer, 0)),
        None => Ok(()),
    }
}

fn push_index(pointer: &mut String, index: usize) {
    write!(pointer, "[{index}]").expect("BUG: writing to a string failed");
}

fn push_key(pointer: &mut String, key: &str) {
    if !pointer.is_empty() {
        pointer.push('.');
    }
    pointer.push_str(&shortened(key));
}

fn mentions_of(text: &str, pointer: &str, form: Form, mentions: &mut Vec<Mention>) -> Result<(), ExprError> {
    if !text.contains(OPEN) && !mentions_secret(text) {
        return Ok(());
    }
    let mut command = Command::default();
    for piece in pieces(text).map_err(|fault| fault.at(pointer, 0))? {
        match piece {
            Piece::Text(part) => {
                let begin = part.as_ptr().addr() - text.as_ptr().addr();
                read_secrets(part, form, &mut command).map_err(|fault| fault.at(pointer, begin))?;
            }
            Piece::Expression { source, at } => {
                let parsed = parse(source).map_err(|fault| fault.at(pointer, at))?;
                check_place(&parsed, form, &mut command, at).map_err(|fault| fault.at(pointer, 0))?;
                push_names(&parsed, at, pointer, mentions);
            }
        }
    }
    Ok(())
}

/// Reads text of the author, which may refer to secrets.
fn read_secrets(text: &str, form: Form, command: &mut Command) -> Result<(), Fault> {
    let (mut at, faulty) = (0, |fault: SecretFault| {
        let hint = "write `$${secret:` for the text `${secret:`";
        Fault::new(fault.offset, ExprFault::Secret(fault)).hint(hint)
    });
    for piece in secret_pieces(text).map_err(faulty)? {
        match piece {
            SecretPiece::Text(part) => {
                at = part.as_ptr().addr() - text.as_ptr().addr() + part.len();
                command.text(part);
            }
            SecretPiece::Secret(name) if variable_of_reference(name).is_some() => {
                return Err(faulty(SecretFault { offset: at }).hint(format!("write `${{{{ {name} }}}}`")));
            }
            SecretPiece::Secret(_) if form == Form::Command => _ = command.variable(at)?,
            SecretPiece::Secret(_) => {}
        }
    }
    Ok(())
}

/// Replaces each `${secret:NAME}` in a shell command by an expansion of the variable that `variable` returns. The shell
/// reads the secret as text only, as one word or a part of one.
///
/// # Errors
/// The reference is invalid, or its location in the command does not allow a variable as text.
pub fn with_secret_variables(
    command: &str,
    mut variable: impl FnMut(&str) -> String,
) -> Result<String, ExprError> {
    let (mut output, mut state) = (String::with_capacity(command.len()), Command::default());
    let faulty = |fault: SecretFault| Fault::new(fault.offset, ExprFault::Secret(fault)).at("", 0);
    for piece in secret_pieces(command).map_err(faulty)? {
        match piece {
            SecretPiece::Text(text) => {
                state.text(text);
                output.push_str(text);
            }
            SecretPiece::Secret(name) => {
                let quotes = state.variable(0).map_err(|fault| fault.at("", 0))?;
                output.push_str(&quotes.expansion(&variable(name)));
            }
        }
    }
    Ok(output)
}

/// Returns the names in a text, which may be a shell command.
pub(crate) fn text_mentions(text: &str, is_command: bool) -> Result<Vec<Mention>, ExprError> {
    let form = if is_command { Form::Command } else { Form::Value };
    let mut mentions = Vec::new();
    mentions_of(text, "", form, &mut mentions)?;
    Ok(mentions)
}

/// Returns whether a shell command inserts a value without quotes.
pub fn inserts_raw(command: &str) -> bool {
    let is_raw = |piece: &Piece| match piece {
        Piece::Expression { source, .. } => parse(source).is_ok_and(|parsed| parsed.raw.is_some()),
        Piece::Text(_) => false,
    };
    command.contains(OPEN) && pieces(command).is_ok_and(|pieces| pieces.iter().any(is_raw))
}

/// Returns the expression of a text that consists of one `${{ … }}` only. Its value keeps its type.
pub fn lone_expression(text: &str) -> Option<&str> {
    match pieces(text).ok()?.as_slice() {
        [Piece::Expression { source, .. }] => Some(source.trim()),
        _ => None,
    }
}

/// Returns the type of an expression whose values all have the same one.
pub(crate) fn fixed_type(source: &str) -> Option<ParamType> {
    parse(source).ok().and_then(|parsed| type_of(&parsed.expr))
}

/// Refuses an expression in a key of an object.
pub(crate) fn check_no_expression(key: &str) -> Result<(), ExprError> {
    check_key(key, "")
}

/// Checks that an expression is allowed at its location.
fn check_place(parsed: &Parsed, form: Form, command: &mut Command, at: usize) -> Result<(), Fault> {
    match form {
        Form::Value | Form::Data => refuse_raw(parsed, at),
        // The shell reads it from a variable, as it does a secret.
        Form::Command if parsed.variable().is_some() => {
            command.variable(at.saturating_sub(OPEN.len())).map(drop)
        }
        Form::Command if parsed.raw.is_some() => Ok(()),
        Form::Command => {
            command.check(at.saturating_sub(OPEN.len()))?;
            command.value();
            Ok(())
        }
    }
}

fn refuse_raw(parsed: &Parsed, at: usize) -> Result<(), Fault> {
    match parsed.raw {
        Some(raw) => Err(Fault::new(at + raw, ExprFault::RawElsewhere)
            .hint("remove it: the value is already inserted unquoted here")),
        None => Ok(()),
    }
}

/// Returns the fields that expressions in a value read from results of other tasks, as the task and the field. Text that
/// is no valid expression is left out.
pub fn result_fields(value: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let visited = walk(value, &mut String::new(), &mut |text, _| {
        for piece in pieces(text).unwrap_or_default() {
            if let Piece::Expression { source, .. } = piece
                && let Ok(parsed) = parse(source)
            {
                push_result_fields(&parsed, &mut fields);
            }
        }
        Ok(())
    });
    if visited.is_ok() { fields } else { Vec::new() }
}

/// Returns the fields that a condition reads from results of other tasks.
pub fn result_fields_of_condition(text: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    if let Ok(parsed) = alone(text).and_then(|(source, _)| parse(source)) {
        push_result_fields(&parsed, &mut fields);
    }
    fields
}

fn push_result_fields(parsed: &Parsed, fields: &mut Vec<(String, String)>) {
    parsed.expr.attributes(&mut |name, attribute| {
        if let Name::Task { task, field: TaskField::Result } = name {
            fields.push((task.clone(), attribute.to_owned()));
        }
    });
}

fn push_names(parsed: &Parsed, at: usize, pointer: &str, mentions: &mut Vec<Mention>) {
    parsed.expr.names(&mut |name, offset| {
        mentions.push(Mention { pointer: pointer.to_owned(), offset: at + offset, name: name.clone() });
    });
}

pub(super) fn shifted(fault: Fault, by: usize) -> Fault {
    Fault { offset: fault.offset + by, ..fault }
}

/// Returns the expression of a condition, with or without `${{ … }}`, and its byte position.
pub(super) fn alone(text: &str) -> Result<(&str, usize), Fault> {
    let begin = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    if !trimmed.contains(OPEN) {
        return Ok((trimmed, begin));
    }
    if let [Piece::Expression { source, at }] =
        pieces(trimmed).map_err(|fault| shifted(fault, begin))?.as_slice()
    {
        return Ok((source, begin + at));
    }
    let hint = "write the whole expression inside one `${{ … }}`, or without any";
    Err(Fault::new(begin, ExprFault::Mixed).hint(hint))
}

/// Evaluates a condition.
///
/// # Errors
/// The value is a non-empty text. It is neither true nor false: the output `"false"` of a program would count as true.
pub fn evaluate_condition(text: &str, data: &Data) -> Result<Evaluated<bool>, EvalError> {
    let evaluated = evaluate_expression(text, data)?;
    let value = &evaluated.value;
    if let Value::String(found) = value
        && !found.is_empty()
    {
        let path = alone(text).map_or(text, |(source, _)| source.trim());
        let fault = EvalFault::Kind {
            what: "a condition".to_owned(),
            expected: "true or false",
            path: shortened(path),
            found: described(value),
        };
        let hint = Some("compare it: `… == '…'`, or `… != ''`".to_owned());
        return Err(EvalError {
            pointer: String::new(),
            expression: shown(text),
            fault: Box::new(fault),
            hint,
        });
    }
    Ok(evaluated.map(|value| super::eval::is_true(&value)))
}

/// Evaluates an expression, bare or in `${{ … }}`.
pub fn evaluate_expression(text: &str, data: &Data) -> Result<Evaluated<Value>, EvalError> {
    let (source, at) = alone(text).map_err(|fault| unread(fault, "", text))?;
    let parsed = parse(source).map_err(|fault| unread(fault, "", source))?;
    refuse_raw(&parsed, at).map_err(|fault| unread(fault, "", source))?;
    let mut evaluator = Evaluator::new(data);
    let value = evaluator.expression(&parsed, source, "", Form::Value).map(Cow::into_owned)?;
    Ok(Evaluated { value, untrusted: evaluator.untrusted })
}

/// Evaluates all expressions in a value.
pub fn evaluate(value: &Value, data: &Data) -> Result<Evaluated<Value>, EvalError> {
    let mut evaluator = Evaluator::new(data);
    let value = evaluator.value(value, &mut String::new(), Form::Value)?;
    Ok(Evaluated { value, untrusted: evaluator.untrusted })
}

/// Evaluates the arguments of a call. In the command of the tool `shell`, every value becomes one quoted word.
pub fn evaluate_args(tool: &str, args: &Map, data: &Data) -> Result<Args, EvalError> {
    let mut evaluator = Evaluator { has_variables: true, ..Evaluator::new(data) };
    let mut evaluated = Map::new();
    for (name, value) in args {
        let form = form_of(tool, name, value);
        evaluated.insert(name.clone(), evaluator.value(value, &mut name.clone(), form)?);
    }
    Ok(Args { args: evaluated, raw: evaluator.raw, untrusted: evaluator.untrusted })
}

/// The shared state of all expressions in one value: they share one budget.
struct Evaluator<'d> {
    data: &'d Data,
    budget: Budget,
    raw: bool,
    /// True in the arguments of a call, which may refer to environment variables.
    has_variables: bool,
    /// The values from models that were read.
    untrusted: Vec<UntrustedValue>,
}

impl<'d> Evaluator<'d> {
    fn new(data: &'d Data) -> Self {
        let budget = Budget::with_kept(data.kept_bytes);
        Self { data, budget, raw: false, has_variables: false, untrusted: Vec::new() }
    }

    fn value(&mut self, value: &Value, pointer: &mut String, form: Form) -> Result<Value, EvalError> {
        let length = pointer.len();
        match value {
            Value::String(text) if text.contains(OPEN) => self.text(text, pointer, form),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
            Value::Array(items) => {
                let mut evaluated = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    push_index(pointer, index);
                    evaluated.push(self.value(item, pointer, form)?);
                    pointer.truncate(length);
                }
                Ok(Value::Array(evaluated))
            }
            Value::Object(map) => {
                let mut evaluated = Map::new();
                for (key, item) in map {
                    push_key(pointer, key);
                    evaluated.insert(key.clone(), self.value(item, pointer, form)?);
                    pointer.truncate(length);
                }
                Ok(Value::Object(evaluated))
            }
        }
    }

    fn text(&mut self, text: &str, pointer: &str, form: Form) -> Result<Value, EvalError> {
        let pieces = pieces(text).map_err(|fault| unread(fault, pointer, text))?;
        if let ([Piece::Expression { source, .. }], Form::Value | Form::Data) = (pieces.as_slice(), form) {
            let parsed = read(source, pointer)?;
            refuse_raw(&parsed, 0).map_err(|fault| unread(fault, pointer, source))?;
            if let Some(name) = parsed.variable().filter(|_| self.has_variables) {
                return Ok(variable_reference(name).into());
            }
            // `shield` escapes secret references: a value must not be able to read secrets by containing `${secret:…}`.
            return self.expression(&parsed, source, pointer, form).map(Cow::into_owned).map(shield);
        }
        let mut output = String::with_capacity(text.len());
        let (mut inserted, mut values) = (Vec::new(), Vec::new());
        let mut command = Command::default();
        for piece in &pieces {
            match piece {
                Piece::Text(text) => {
                    output.push_str(text);
                    if form == Form::Command {
                        command.text(text);
                    }
                }
                Piece::Expression { source, .. } => {
                    let begin = output.len();
                    let value = self.inserted(source, pointer, form, &mut command)?;
                    // The author of the expression wrote the reference, so that it is not shielded.
                    if value.is_reference {
                        output.push_str(&value.text);
                        values.push(value);
                        continue;
                    }
                    output.push_str(&if value.is_quoted {
                        Cow::Owned(quote(&value.text))
                    } else {
                        Cow::Borrowed(&*value.text)
                    });
                    inserted.push(begin..output.len());
                    values.push(value);
                }
            }
        }
        self.note_places(&pieces, values, form);
        Ok(Value::String(shield_inserted(output, &inserted)))
    }

    /// Records the values from models in a text, and whether they are data at their locations.
    fn note_places(&mut self, pieces: &[Piece<'_>], values: Vec<Inserted>, form: Form) {
        if values.iter().all(|value| value.untrusted.is_empty()) {
            return;
        }
        let places = match form {
            Form::Command => data_words(&parts(pieces, &values)),
            Form::Value | Form::Data => vec![form == Form::Data; values.len()],
        };
        let values = values.into_iter().filter(|value| !value.is_reference);
        for (value, is_data) in values.zip(places) {
            self.note(value.untrusted, is_data);
        }
    }

    fn note(&mut self, values: Vec<UntrustedValue>, is_data: bool) {
        add_values(&mut self.untrusted, values.into_iter().map(|value| UntrustedValue { is_data, ..value }));
    }

    fn inserted(
        &mut self,
        source: &str,
        pointer: &str,
        form: Form,
        command: &mut Command,
    ) -> Result<Inserted, EvalError> {
        let parsed = read(source, pointer)?;
        check_place(&parsed, form, command, 0).map_err(|fault| unread(fault, pointer, source))?;
        if let Some(name) = parsed.variable().filter(|_| self.has_variables) {
            let text = variable_reference(name);
            return Ok(Inserted { text, is_quoted: false, is_reference: true, untrusted: Vec::new() });
        }
        let (text, untrusted) = self.run(source, pointer, |machine| {
            let value = machine.value(&parsed.expr)?;
            let text = machine.text_of(&value, &parsed.expr)?;
            if form == Form::Command && text.contains('\0') {
                return Err(EvalFault::Nul { path: machine.source(&parsed.expr) }.into());
            }
            Ok(text)
        })?;
        self.raw |= parsed.raw.is_some();
        let is_quoted = form == Form::Command && parsed.raw.is_none();
        Ok(Inserted { text, is_quoted, is_reference: false, untrusted })
    }

    fn expression(
        &mut self,
        parsed: &Parsed,
        source: &str,
        pointer: &str,
        form: Form,
    ) -> Result<Cow<'d, Value>, EvalError> {
        let (value, untrusted) = self.run(source, pointer, |machine| {
            let value = machine.value(&parsed.expr)?;
            machine.budget.value(&value)?;
            Ok(value)
        })?;
        self.note(untrusted, form == Form::Data);
        Ok(value)
    }

    fn run<T>(
        &mut self,
        source: &str,
        pointer: &str,
        evaluate: impl FnOnce(&mut Machine<'d, '_>) -> Eval<T>,
    ) -> Result<(T, Vec<UntrustedValue>), EvalError> {
        let mut untrusted = Vec::new();
        let mut machine =
            Machine { text: source, data: self.data, budget: &mut self.budget, untrusted: &mut untrusted };
        let value = evaluate(&mut machine).map_err(|stop| {
            let Stop { fault, hint } = stop;
            EvalError { pointer: pointer.to_owned(), expression: shown(source), fault, hint }
        })?;
        Ok((value, untrusted))
    }
}

/// The value of an expression inside a text.
struct Inserted {
    text: String,
    /// True if it becomes one quoted word of a command.
    is_quoted: bool,
    /// True if it is a reference to an environment variable, whose value is inserted when the call starts.
    is_reference: bool,
    untrusted: Vec<UntrustedValue>,
}

fn parts<'p>(pieces: &'p [Piece<'_>], values: &'p [Inserted]) -> Vec<Part<'p>> {
    let mut values = values.iter();
    let part = |piece: &'p Piece<'_>| match piece {
        Piece::Text(text) => Part::Written(text),
        Piece::Expression { .. } => match values.next() {
            Some(value) if value.is_reference => Part::Written(&value.text),
            Some(value) if value.is_quoted => Part::Word(&value.text),
            Some(_) | None => Part::Raw,
        },
    };
    pieces.iter().map(part).collect()
}

fn read(source: &str, pointer: &str) -> Result<Parsed, EvalError> {
    parse(source).map_err(|fault| unread(fault, pointer, source))
}

/// Converts a parse error of an expression that was not checked before.
fn unread(fault: Fault, pointer: &str, source: &str) -> EvalError {
    let Fault { what, hint, .. } = fault;
    EvalError {
        pointer: pointer.to_owned(),
        expression: shown(source),
        fault: Box::new((*what).into()),
        hint,
    }
}

fn shown(source: &str) -> String {
    let source = shortened(source.trim());
    if source.contains(OPEN) { source } else { format!("${{{{ {source} }}}}") }
}
