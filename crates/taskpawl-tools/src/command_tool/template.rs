//! Templates of arguments: texts with placeholders such as `{name}`.
//!
//! The value of a placeholder never becomes more than one argument, and never an option that the author of the tool did
//! not write: nothing is split, and no shell is involved.

use std::collections::BTreeMap;

use serde_json::Value;

use super::param::{Param, is_name};

/// Text with placeholders.
#[derive(Clone, Debug)]
pub(super) struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Param(String),
}

/// Values of the parameters that have one.
pub(super) type Values<'a> = BTreeMap<&'a str, &'a Value>;

/// Value that is not acceptable at its position in the template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) param: String,
    /// Description of the problem, worded to follow the name of the parameter.
    pub(super) problem: String,
}

impl Unfit {
    pub(super) fn nul(param: &str) -> Self {
        Self {
            param: param.to_owned(),
            problem: "contains a NUL character, which cannot be passed to a program".to_owned(),
        }
    }
}

impl Template {
    /// Parses a template. The error is worded to follow the name of the field.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        const BRACES: &str = "write `{name}` for a parameter, and `{{` or `}}` for a literal brace";

        let (mut pieces, mut literal) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let inner = rest.split_once('}').filter(|(name, _)| brace == "{" && is_name(name));
            let Some((name, after)) = inner else {
                return Err(format!("has a brace outside of a placeholder: {BRACES}"));
            };
            pieces.extend(piece_of(std::mem::take(&mut literal)));
            pieces.push(Piece::Param(name.to_owned()));
            rest = after;
        }
        literal.push_str(rest);
        pieces.extend(piece_of(literal));
        Ok(Self { text: text.to_owned(), pieces })
    }

    /// Returns the parameters in the template.
    pub(super) fn params(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Param(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Fills in all values; `None` if one is missing.
    pub(super) fn fill(&self, values: &Values<'_>) -> Option<String> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Param(name) => filled.push_str(&text_of(values.get(name.as_str())?)),
            }
        }
        Some(filled)
    }

    /// Returns the parameter if the template is a single placeholder.
    fn alone(&self) -> Option<&str> {
        match &self.pieces[..] {
            [Piece::Param(name)] => Some(name),
            _ => None,
        }
    }

    /// Returns the parameter whose value begins the filled text.
    fn first_param(&self, values: &Values<'_>) -> Option<&str> {
        let is_seen = |piece: &&Piece| match piece {
            Piece::Text(_) => true,
            Piece::Param(name) => values.get(name.as_str()).is_some_and(|value| !text_of(value).is_empty()),
        };
        match self.pieces.iter().find(is_seen) {
            Some(Piece::Param(name)) => Some(name),
            Some(Piece::Text(_)) | None => None,
        }
    }
}

fn piece_of(text: String) -> Option<Piece> {
    (!text.is_empty()).then_some(Piece::Text(text))
}

/// Formats a value: strings as they are, all other values as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Template of a program and its arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Argv {
    groups: Vec<Group>,
}

/// Arguments that are present or absent together; most groups have one.
#[derive(Clone, Debug)]
struct Group {
    templates: Vec<Template>,
    /// Set if the group was written as a list.
    is_list: bool,
}

impl Argv {
    /// Parses the template. The error contains the path to the element.
    pub(super) fn parse(
        elements: &[Value],
        params: &BTreeMap<String, Param>,
    ) -> Result<Self, (Vec<String>, String)> {
        let mut groups = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let at = vec![index.to_string()];
            let inner = element.as_array();
            let (texts, is_list) =
                (inner.map_or(std::slice::from_ref(element), Vec::as_slice), inner.is_some());
            let mut templates = Vec::new();
            for (inner, text) in texts.iter().enumerate() {
                let mut at = at.clone();
                at.extend(is_list.then(|| inner.to_string()));
                let text = text.as_str().ok_or_else(|| {
                    (
                        at.clone(),
                        "has to be a text, or a list of texts that are included or left out together"
                            .to_owned(),
                    )
                })?;
                let template = Template::parse(text).map_err(|problem| (at.clone(), problem))?;
                if text.contains('\0') {
                    return Err((at, "contains a NUL character".to_owned()));
                }
                templates.push(template);
            }
            let group = Group { templates, is_list };
            group.check(index, params).map_err(|problem| (at, problem))?;
            groups.push(group);
        }
        Ok(Self { groups })
    }

    /// Returns the parameters in the template.
    pub(super) fn params(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().flat_map(Group::params)
    }

    /// Returns the elements as they were written, groups in brackets.
    pub(super) fn shown(&self) -> Vec<String> {
        let shown = |group: &Group| {
            let texts: Vec<&str> = group.templates.iter().map(|template| template.text.as_str()).collect();
            if group.is_list { format!("[{}]", texts.join(" ")) } else { texts.concat() }
        };
        self.groups.iter().map(shown).collect()
    }

    /// Fills in the values; returns the program and its arguments.
    pub(super) fn fill(
        &self,
        params: &BTreeMap<String, Param>,
        values: &Values<'_>,
    ) -> Result<Vec<String>, Unfit> {
        let mut filled = Filled { params, argv: Vec::new(), is_after_dashes: false };
        for group in &self.groups {
            filled.group(group, values)?;
        }
        Ok(filled.argv)
    }
}

impl Group {
    fn params(&self) -> impl Iterator<Item = &str> {
        self.templates.iter().flat_map(Template::params)
    }

    /// Checks the group at index `index` of the template.
    fn check(&self, index: usize, params: &BTreeMap<String, Param>) -> Result<(), String> {
        if index == 0 && (self.is_list || self.params().next().is_some()) {
            return Err("must be the program itself, without placeholders".to_owned());
        }
        if index == 0 && self.templates.iter().all(|template| template.text.is_empty()) {
            return Err("has to name a program".to_owned());
        }
        if self.is_list && self.params().next().is_none() {
            return Err("is a group without a placeholder; write its elements separately".to_owned());
        }
        for name in self.params() {
            let is_flag = params.get(name).is_some_and(|param| param.flag.is_some());
            if is_flag && (self.is_list || self.templates[0].alone() != Some(name)) {
                return Err(format!(
                    "has `{{{name}}}` together with other text, although it has a `flag`; write it as a separate element"
                ));
            }
        }
        let mut lists = self.params().filter(|name| params.get(*name).is_some_and(|param| param.is_list));
        let first = lists.next();
        match lists.find(|name| Some(*name) != first) {
            Some(second) => Err(format!(
                "contains two lists, `{}` and `{second}`; only one can be repeated",
                first.unwrap_or_default()
            )),
            None => Ok(()),
        }
    }
}

/// Arguments under construction.
struct Filled<'a> {
    params: &'a BTreeMap<String, Param>,
    argv: Vec<String>,
    /// Set after a literal `--` in the template: everything that follows is an operand.
    is_after_dashes: bool,
}

impl Filled<'_> {
    /// Adds a group: not at all if a value is missing, and once for each item of a list.
    fn group(&mut self, group: &Group, values: &Values<'_>) -> Result<(), Unfit> {
        if group.params().any(|name| !values.contains_key(name)) {
            return Ok(());
        }
        let mut lists = group.params().filter_map(|name| Some((name, values[name].as_array()?)));
        let Some((list, items)) = lists.next() else { return self.once(group, values) };
        if let Some((other, _)) = lists.find(|(name, _)| *name != list) {
            let problem = format!("is a list, and so is `{list}`; only one of them can be a list");
            return Err(Unfit { param: other.to_owned(), problem });
        }
        for item in items {
            let mut values = values.clone();
            values.insert(list, item);
            self.once(group, &values)?;
        }
        Ok(())
    }

    fn once(&mut self, group: &Group, values: &Values<'_>) -> Result<(), Unfit> {
        for template in &group.templates {
            let flag = template.alone().and_then(|name| Some((name, self.params.get(name)?.flag.as_ref()?)));
            if let Some((name, flag)) = flag {
                self.argv.extend((values.get(name) == Some(&&Value::Bool(true))).then(|| flag.clone()));
                continue;
            }
            let text = template.fill(values).unwrap_or_default();
            self.check(template, values, &text)?;
            self.is_after_dashes |= text == "--" && template.params().next().is_none();
            self.argv.push(text);
        }
        Ok(())
    }

    /// Refuses a value that would become an option which the author of the tool did not write.
    fn check(&self, template: &Template, values: &Values<'_>, text: &str) -> Result<(), Unfit> {
        if text.contains('\0') {
            return Err(Unfit::nul(template.params().next().unwrap_or_default()));
        }
        let Some(name) = template.first_param(values).filter(|_| text.starts_with('-')) else {
            return Ok(());
        };
        if self.is_after_dashes || self.params.get(name).is_some_and(|param| param.may_be_option) {
            return Ok(());
        }
        let problem = format!(
            "begins with `-`, so `{}` would parse it as an option; the definition of the tool can put `--` before it, use `--option={{{name}}}`, or set `mayBeOption = true`",
            self.argv.first().map_or("the program", String::as_str)
        );
        Err(Unfit { param: name.to_owned(), problem })
    }
}
