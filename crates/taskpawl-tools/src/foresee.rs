//! Problems that a call would meet, found from its arguments before it is stored.

use std::path::Path;

use serde_json::Value;

use crate::registry::RegisteredTool;
use crate::root::is_surely_outside;

/// A problem that a call would meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    /// Short name of the kind: the error class of the call, or `missing_program`.
    pub code: &'static str,
    /// Argument with the problem, such as `argv[0]`.
    pub field: String,
    /// Description of the problem.
    pub message: String,
    /// True if the call cannot succeed as it stands; otherwise another machine may have what is missing.
    pub is_certain: bool,
}

impl RegisteredTool {
    /// Returns the problems that a call with these arguments would meet in the project at `root`. Arguments with
    /// expressions are known only when the call starts.
    pub fn foresee(&self, args: &Value, root: &Path) -> Vec<Foreseen> {
        let mut found = self.tool().foresee(args);
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        if let Some(path) = self.tool().file_beneath_root(args)
            && !path.contains("${{")
            && is_surely_outside(Path::new(path), [root, &real])
        {
            let message =
                format!("`{path}` leads out of the project, where `{}` has no access", self.spec().name);
            let field = name_of(args, path).to_owned();
            found.push(Foreseen { code: "outside_root", field, message, is_certain: true });
        }
        found
    }
}

/// Returns the name of the argument with this value.
fn name_of<'a>(args: &'a Value, value: &str) -> &'a str {
    let has_it = |(_, other): &(&String, &Value)| other.as_str() == Some(value);
    args.as_object().and_then(|args| args.iter().find(has_it)).map_or("path", |(name, _)| name)
}

/// Returns the problem of a program that is not on the search path of this process.
pub(crate) fn missing_program(name: &str, field: &str) -> Option<Foreseen> {
    if name.is_empty() || name.contains('/') || name.contains("${{") || name.contains("${secret:") {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    let message = format!("no program `{name}` is on the search path (PATH)");
    (!is_there).then_some(Foreseen {
        code: "missing_program",
        field: field.to_owned(),
        message,
        is_certain: false,
    })
}
