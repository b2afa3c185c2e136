//! Parameter values.

use std::collections::BTreeSet;

use serde_json::Value;
use taskpawl_json::JsonError;

use super::expressions::near_param;
use super::node::shortened;
use super::{Param, ParamType, Plan, PlanError, PlanErrors, PlanProblem};
use crate::advice::hint::Hint;
use taskpawl_json::Position;

impl Plan {
    /// Sets parameters from texts, which are converted to the declared types. Lists and objects are given as JSON.
    ///
    /// # Errors
    /// Every unknown parameter and every value of a wrong type, without positions.
    pub fn set_params<'a>(
        &mut self,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), PlanErrors> {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        for (name, text) in given {
            if !names.insert(name) {
                errors.push(at_param(name, PlanProblem::RepeatedParam { name: name.to_owned() }));
                continue;
            }
            match self.params.get(name).map(|param| converted(name, param, text)) {
                Some(Ok(value)) => _ = self.values.insert(name.to_owned(), value),
                Some(Err(error)) => errors.push(error),
                None => errors.push(self.unknown_param(name)),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(PlanErrors::new(errors)) }
    }

    /// Returns the error for a parameter that the plan does not have.
    pub(super) fn unknown_param(&self, name: &str) -> PlanError {
        let known: Vec<String> = self.params.keys().cloned().collect();
        let hint = match near_param(name, &known) {
            _ if known.is_empty() => Hint::new("it declares none"),
            Some(near) => near.into(),
            None => Hint::new("it has ").list(&known),
        };
        let problem = PlanProblem::UnknownParam { name: shortened(name) };
        PlanError { hint: Some(hint), ..at_param(&shortened(name), problem) }
    }
}

fn converted(name: &str, param: &Param, text: &str) -> Result<Value, PlanError> {
    let value = match param.kind {
        ParamType::String => Some(Value::from(text)),
        ParamType::Integer
        | ParamType::Number
        | ParamType::Boolean
        | ParamType::Array
        | ParamType::Object => match taskpawl_json::read(text.trim()) {
            Ok(value) => Some(value),
            Err(JsonError::Syntax(_)) => None,
            Err(JsonError::Fault(fault)) => return Err(at_param(name, fault.problem.into())),
        },
    };
    value.filter(|value| param.kind.fits(value)).ok_or_else(|| wrong(name, param, text))
}

fn at_param(name: &str, problem: PlanProblem) -> PlanError {
    PlanError { at: Position::default(), path: format!("params.{name}"), problem, hint: None }
}

fn wrong(name: &str, param: &Param, text: &str) -> PlanError {
    let hint = match param.kind {
        ParamType::Array => Some(format!("give it as JSON: `{name}=[\"a\", \"b\"]`")),
        ParamType::Object => Some(format!("give it as JSON: `{name}={{\"key\": \"value\"}}`")),
        ParamType::Integer | ParamType::Number => Some(format!("for example `{name}=3`")),
        ParamType::Boolean => Some(format!("give `{name}=true` or `{name}=false`")),
        ParamType::String => Some("put it in quotes".to_owned()),
    };
    let (expected, found) = (param.kind.expected(), format!("`{}`", shortened(text)));
    let problem = PlanProblem::ParamType { name: name.to_owned(), expected, found };
    PlanError { hint: hint.map(Hint::from), ..at_param(name, problem) }
}

#[cfg(test)]
mod tests {
    use crate::plan::parse_plan;

    #[test]
    fn params_report_bad_json_like_plan_files() {
        let text = "params: {n: {type: integer}, o: {type: object}}\ntasks: [{id: a}]";
        let refused = |given: &[(&str, &str)]| {
            let mut plan = parse_plan(text).unwrap();
            plan.set_params(given.iter().copied()).unwrap_err().to_string()
        };
        let table = [
            (("n", "18446744073709551616"), "params.n: number `18446744073709551616` cannot be kept exactly"),
            (("o", "{\"a\": 1, \"a\": 2}"), "params.o: key `a` is already given at line 1, column 2"),
        ];
        for (given, message) in table {
            assert_eq!(refused(&[given]), message);
        }
        assert_eq!(refused(&[("n", "1"), ("n", "1")]), "params.n: parameter `n` is given twice");
    }
}
