//! JSON Schemas of the files that people write. The words of enumerations come from the model. A test compares the
//! field names with those of the plan parser.

use serde_json::{Value, json};
use taskpawl::model::plan::{OverlapWord, ParamType, Reaction};
use taskpawl::model::task::{ERROR_CLASSES, Hooks, Mode, PlanAccess, Priority, Trigger};

use crate::config::{COLLECTORS, HOSTS, Key, MCP_CONFIGS, NAMED, SANDBOX};

pub(crate) use crate::event_schema::event;

pub(crate) const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the schema of a plan file.
pub(crate) fn plan() -> Value {
    let fields = json!({
        "version": {"const": 1, "description": "The version of the format"},
        "name": {"type": "string", "description": "The name; without one that of the file"},
        "description": {"type": "string"},
        "params": params(),
        "defaults": {"type": "object", "description": "Fields that tasks have unless they say otherwise"},
        "requires": {
            "type": "object",
            "additionalProperties": false,
            "properties": {"env": {"$ref": "#/$defs/texts"}},
            "description": "Environment variables that its programs need",
        },
        "tools": {"$ref": "#/$defs/texts", "description": "Tools that another program brings"},
        "resources": {"$ref": "#/$defs/counts", "description": "Capacities of named resources"},
        "timeout": {"$ref": "#/$defs/duration"},
        "budget": budget(),
        "maxFailures": {
            "type": "integer",
            "minimum": 1,
            "description": "After so many failed tasks a run of the plan starts nothing more",
        },
        "schedule": schedule(),
        "notify": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string"},
            "description": "The program, with its arguments, that is told when something waits, failed or is finished",
        },
        "returns": {"description": "The result of a task that includes the plan: a value with expressions"},
        "tasks": {"$ref": "#/$defs/tasks"},
    });
    let object = json!({
        "type": "object",
        "required": ["tasks"],
        "properties": fields,
        "patternProperties": own_fields(),
        "additionalProperties": false,
    });
    let root = json!({"anyOf": [object, {"$ref": "#/$defs/tasks"}]});
    with_definitions("A plan of taskpawl", root)
}

fn schedule() -> Value {
    json!({
        "description": "The times at which `taskpawl serve --run` runs the plan",
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "required": ["cron"],
                "additionalProperties": false,
                "properties": {
                    "cron": {"type": "string", "minLength": 1},
                    "timezone": {"type": "string", "minLength": 1},
                    "overlap": words(OverlapWord::ALL.iter().map(|word| word.as_str())),
                    "expires": {"$ref": "#/$defs/duration"},
                    "onFailure": words(Reaction::ALL.iter().map(|word| word.as_str())),
                    "onMissed": words(Reaction::ALL.iter().map(|word| word.as_str())),
                },
            },
        ],
    })
}

fn budget() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "calls": {"type": "integer", "minimum": 1},
            "duration": {"$ref": "#/$defs/duration"},
            "cost": {"type": "number", "minimum": 0},
        },
    })
}

fn params() -> Value {
    json!({
        "type": "object",
        "description": "The parameters that the plan takes",
        "additionalProperties": {
            "type": "object",
            "required": ["type"],
            "additionalProperties": false,
            "properties": {"type": words(ParamType::ALL.iter().map(|kind| kind.as_str())), "default": true},
        },
    })
}

/// Returns the schema of a task in a plan.
pub(crate) fn task() -> Value {
    with_definitions("A task of a plan of taskpawl", json!({"$ref": "#/$defs/task"}))
}

/// Returns the schema of a tool call.
pub(crate) fn call() -> Value {
    with_definitions("A tool call of a task of taskpawl", json!({"$ref": "#/$defs/call"}))
}

/// Returns the schema of a configuration file.
pub(crate) fn config() -> Value {
    let property = |key: &Key| {
        let mut schema = kind_of(*key);
        schema["description"] = key.meaning().into();
        (key.as_str().to_owned(), schema)
    };
    let (inner, outer): (Vec<&Key>, Vec<&Key>) = Key::ALL.iter().partition(|key| key.as_str().contains('.'));
    let mut properties: serde_json::Map<_, _> = outer.into_iter().map(property).collect();
    for key in inner {
        let (section, name) = key.as_str().split_once('.').expect("BUG: it was chosen by its dot");
        let section = properties
            .entry(section)
            .or_insert_with(|| json!({"type": "object", "additionalProperties": false, "properties": {}}));
        section["properties"][name] = property(key).1;
    }
    let [resources, tools, secrets, servers, agents] = NAMED.map(|(_, meaning)| meaning);
    let capacity = json!({"type": "integer", "minimum": 0});
    let resources = json!({"type": "object", "additionalProperties": capacity, "description": resources});
    properties.insert("resources".to_owned(), resources);
    let concurrency = json!({"concurrency": {"type": "integer", "minimum": 1}});
    let builtin = json!({"type": "object", "additionalProperties": false, "properties": concurrency});
    let mut http = builtin.clone();
    http["properties"]["hosts"] = json!({"type": "array", "items": {"type": "string"}, "description": HOSTS});
    let tools = json!({
        "type": "object",
        "properties": {"http_request": http},
        "additionalProperties": {"anyOf": [builtin, own_tool()]},
        "description": tools,
    });
    properties.insert("tools".to_owned(), tools);
    properties.insert("sandbox".to_owned(), sandbox());
    let secrets = json!({"type": "object", "additionalProperties": secret(), "description": secrets});
    properties.insert("secrets".to_owned(), secrets);
    // Servers have the form of other programs, each of which has fields of its own, so any object is accepted.
    let servers =
        json!({"type": "object", "additionalProperties": {"type": "object"}, "description": servers});
    properties.insert("mcpServers".to_owned(), servers);
    let agents = json!({"type": "object", "additionalProperties": agent(), "description": agents});
    properties.insert("agents".to_owned(), agents);
    let files = json!({"type": "array", "items": {"type": "string"}, "description": MCP_CONFIGS});
    properties.insert(
        "mcp".to_owned(),
        json!({"type": "object", "additionalProperties": false, "properties": {"configs": files}}),
    );
    let collectors = json!({"type": "array", "items": {"type": "string"}, "description": COLLECTORS});
    properties.insert(
        "trace".to_owned(),
        json!({"type": "object", "additionalProperties": false, "properties": {"collectors": collectors}}),
    );
    json!({
        "$schema": DRAFT,
        "title": "The configuration of taskpawl",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

/// Returns the schema of a tool's description.
fn own_tool() -> Value {
    let text = json!({"type": "string"});
    let hint = json!({"type": "boolean"});
    let param = json!({
        "type": "object",
        "description": "Keywords of JSON Schema, and `required`, `flag` and `mayBeOption`",
        "properties": {
            "required": {"description": "Without it true, unless there is a default"},
            "flag": {"type": "string", "description": "The argument for a boolean that is true"},
            "mayBeOption": {"type": "boolean", "description": "Whether its text may begin with `-`"},
        },
    });
    json!({
        "type": "object",
        "required": ["description", "argv"],
        "additionalProperties": false,
        "properties": {
            "description": text,
            "argv": {
                "type": "array",
                "minItems": 1,
                "items": {"anyOf": [text, {"type": "array", "items": text}]},
                "description": "The program and its arguments, with placeholders such as `{name}`",
            },
            "params": {"type": "object", "additionalProperties": param},
            "schema": {"description": "In place of `params`: the JSON Schema of the arguments, or its text"},
            "stdin": text,
            "env": {"type": "object", "additionalProperties": text},
            "cwd": text,
            "parse": {"const": "json"},
            "okExitCodes": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": 255}},
            "readOnly": hint,
            "idempotent": hint,
            "destructive": hint,
            "openWorld": hint,
            "timeout": text,
            "outputBytes": {"type": ["integer", "string"]},
            "concurrency": {"type": "integer", "minimum": 1},
        },
    })
}

/// Returns the schema of a coding agent.
fn agent() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "command": {"type": "array", "minItems": 1, "items": text, "description": "Its program with arguments"},
            "hosts": texts,
            "read": texts,
            "write": texts,
            "env": {"type": "object", "additionalProperties": text},
            "auth": {"type": "string", "description": "The id of the login method that it is told to use"},
        },
    })
}

fn sandbox() -> Value {
    let texts = |meaning: &str| json!({"type": "array", "items": {"type": "string"}, "description": meaning});
    json!({
        "type": "object",
        "description": SANDBOX.meaning,
        "additionalProperties": false,
        "properties": {
            "mode": {"enum": ["on", "strict", "off"], "description": "Whether there is a sandbox, and which"},
            "net": {"type": "boolean", "description": "Whether programs use the network"},
            "write": texts("Further paths that programs write, beside the project"),
            "read": texts("Further paths that programs read, beside the system, the home without its secrets, and the project"),
            "env": texts("Variables that programs see beside the usual ones; NAME_* is all that begin so"),
            "hide": texts("Paths that programs do not read"),
            "protect": texts("Paths in the project that programs do not write"),
            "wants": texts("Hosts and ports that `taskpawl allow --proposed` asks about, such as host:NAME and port:5432; opens nothing"),
            "memory": {"type": "string", "description": "How much memory programs use together, such as 4GiB"},
            "processes": {"type": "integer", "minimum": 1, "description": "How many processes programs are together"},
        },
    })
}

/// Returns the schema of a secret's source.
fn secret() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {
            "env": {"type": "string"},
            "file": {"type": "string", "pattern": "^~?/"},
            "command": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        },
    })
}

fn kind_of(key: Key) -> Value {
    if key == Key::RunNotify {
        json!({"type": "array", "items": {"type": "string"}})
    } else if key == Key::RunRetry {
        json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "object"}]})
    } else if key.is_number() {
        json!({"type": "integer"})
    } else {
        json!({"type": "string"})
    }
}

fn with_definitions(title: &str, mut root: Value) -> Value {
    root["$schema"] = DRAFT.into();
    root["title"] = title.into();
    root["$defs"] = definitions();
    root
}

fn definitions() -> Value {
    json!({
        "id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "duration": {"type": "string", "pattern": "^[0-9][0-9.]*(ms|s|m|h)$", "examples": ["10ms", "0.5s", "5m", "2h"]},
        "texts": one_or_many(&json!({"type": "string"})),
        "counts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "tasks": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/task"}]}},
        "task": task_object(),
        "call": call_object(),
        "retry": retry(),
        "sandbox": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "net": {"type": "boolean"},
                "read": {"$ref": "#/$defs/texts"},
                "write": {"$ref": "#/$defs/texts"},
            },
        },
        "approval": {"anyOf": [{"const": "required"}, question()]},
    })
}

/// Returns the pattern of names that are reserved for authors' own fields.
fn own_fields() -> Value {
    json!({"^x-.": true})
}

fn task_object() -> Value {
    let mut fields = task_fields();
    for (name, field) in task_work_fields().as_object_mut().into_iter().flatten() {
        fields[name] = field.take();
    }
    let named = json!([{"required": ["id"]}, {"required": ["name"]}]);
    json!({
        "type": "object",
        "anyOf": named,
        "properties": fields,
        "patternProperties": own_fields(),
        "additionalProperties": false,
    })
}

fn task_fields() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"$ref": "#/$defs/texts"});
    json!({
        "id": {"$ref": "#/$defs/id"},
        "name": {"type": "string", "description": "A short title"},
        "description": text,
        "priority": words(Priority::ALL.iter().map(|priority| priority.as_str())),
        "dueDate": {"type": "string", "description": "2026-05-31, which is the end of that day in UTC, or 2026-05-31T12:00:00Z"},
        "notBefore": {"type": "string", "description": "It does not start before this time: 2026-05-31T12:00:00Z, or a date, from its first moment in UTC"},
        "assignee": text,
        "labels": texts,
        "dependencies": texts,
        "needs": {"$ref": "#/$defs/texts", "description": "Short for `dependencies`"},
        "subtasks": one_or_many(&json!({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/task"}]})),
        "include": include(),
        "links": {
            "type": "object",
            "additionalProperties": false,
            "properties": {"relatesTo": texts, "discoveredFrom": texts, "duplicates": texts},
        },
        "metadata": {
            "type": "object",
            "properties": {
                "toolCalls": one_or_many(&json!({"$ref": "#/$defs/call"})),
                "context": {"type": "object"},
            },
        },
        "context": {"type": "object", "description": "Values for expressions"},
        "estimate": {"$ref": "#/$defs/duration"},
        "milestone": {"type": "boolean", "description": "A join that ends by itself"},
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Variables for its programs",
        },
        "cwd": {"type": "string", "description": "Working directory of its programs"},
        "shell": {
            "anyOf": [{"enum": ["sh", "bash"]}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
            "description": "Interpreter of `run`: `sh -e`, `bash -eo pipefail`, or a program with arguments",
        },
        "idempotent": {"type": "boolean", "description": "Its programs may start again when their end is unknown"},
    })
}

fn include() -> Value {
    let file = json!({"type": "string", "minLength": 1, "description": "A path from the file of the plan, or a name of `plan list`"});
    let with = json!({"type": "object", "description": "The parameters of the included plan"});
    let object = json!({
        "type": "object",
        "required": ["file"],
        "additionalProperties": false,
        "properties": {"file": file, "with": with},
    });
    json!({"anyOf": [object, {"type": "string", "minLength": 1}], "description": "The plan whose tasks are its subtasks"})
}

fn task_work_fields() -> Value {
    let calls = one_or_many(&json!({"$ref": "#/$defs/call"}));
    let text = json!({"type": "string", "minLength": 1});
    let artifact = json!({
        "type": "object",
        "required": ["path"],
        "additionalProperties": false,
        "properties": {"path": text, "name": text, "type": text},
    });
    json!({
        "trigger": words(Trigger::ALL.iter().map(|trigger| trigger.as_str())),
        "when": {"type": "string", "description": "A condition: an expression"},
        "forEach": {
            "type": ["string", "array", "object"],
            "required": ["in"],
            "additionalProperties": false,
            "properties": {"in": {"type": ["string", "array"]}, "concurrency": {"type": "integer", "minimum": 1}},
        },
        "repeat": repeat(),
        "rework": {"type": "integer", "minimum": 1, "description": "Rounds in which its agent corrects work that fails `verify`"},
        "mode": words(Mode::ALL.iter().map(|mode| mode.as_str())),
        "retry": {"$ref": "#/$defs/retry"},
        "timeout": {"$ref": "#/$defs/duration"},
        "resources": {"anyOf": [{"$ref": "#/$defs/texts"}, {"$ref": "#/$defs/counts"}]},
        "writes": {"$ref": "#/$defs/texts"},
        "worktree": worktree(&calls),
        "runsOn": {"$ref": "#/$defs/texts"},
        "sends": {"$ref": "#/$defs/texts"},
        "sandbox": {"$ref": "#/$defs/sandbox"},
        "trustInputs": {"$ref": "#/$defs/texts"},
        "approval": {"$ref": "#/$defs/approval"},
        "cache": {
            "type": "object",
            "additionalProperties": false,
            "properties": {"inputs": {"$ref": "#/$defs/texts"}, "key": {"type": "string"}},
        },
        "run": run(),
        "call": calls,
        "calls": calls,
        "toolCalls": calls,
        "verify": calls,
        "artifacts": {
            "description": "Files that it leaves in `$TASKPAWL_ARTIFACTS`: without them it fails",
            "anyOf": [artifact, text, {"type": "array", "items": {"anyOf": [artifact, text]}}],
        },
    })
}

fn repeat() -> Value {
    json!({
        "type": "object",
        "required": ["until", "max"],
        "additionalProperties": false,
        "properties": {
            "until": {"type": "string"},
            "max": {"type": "integer", "minimum": 1},
            "delay": {"$ref": "#/$defs/duration"},
        },
    })
}

fn worktree(calls: &Value) -> Value {
    json!({
        "type": ["boolean", "object", "null"],
        "additionalProperties": false,
        "properties": {
            "branch": {"type": "string"},
            "base": {"type": "string"},
            "keep": {"type": "boolean"},
            "setup": calls,
            "link": {"$ref": "#/$defs/texts"},
            "copy": {"$ref": "#/$defs/texts"},
            "ports": {"type": "integer", "minimum": 1, "maximum": 20},
            "hooks": words(Hooks::ALL.iter().map(|hooks| hooks.as_str())),
        },
        "description": "Its calls run in a git worktree on a branch of the task, which ends with a commit",
    })
}

fn run() -> Value {
    json!({
        "description": "A command for the tool `shell`, or a program with its arguments for `exec`",
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
        ],
    })
}

fn call_object() -> Value {
    json!({
        "type": "object",
        "description": "{toolName: TOOL, args: {…}}, or short {TOOL: args}, {run: …}",
        "properties": {
            "id": {"$ref": "#/$defs/id"},
            "toolName": {"type": "string", "minLength": 1},
            "args": {"type": "object"},
            "when": {"type": "string"},
            "saveAs": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "keep": {
                "type": "string",
                "pattern": "^[0-9]+(B|kB|KiB|MB|MiB)$",
                "description": "The most bytes of its result that are kept, up to 16MiB; without it 256KiB",
            },
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": {"$ref": "#/$defs/duration"},
            "sandbox": {"$ref": "#/$defs/sandbox"},
            "trustInputs": {"$ref": "#/$defs/texts"},
            "approval": {"$ref": "#/$defs/approval"},
            "emit": {"type": "boolean"},
            "verify": {"type": "boolean", "description": "It checks the work of the task, after all other calls"},
            "setup": {"type": "boolean", "description": "It prepares the worktree of the task, before all other calls"},
            "planAccess": words(PlanAccess::ALL.iter().map(|access| access.as_str())),
            "idempotent": {"type": "boolean"},
            "run": run(),
        },
    })
}

fn retry() -> Value {
    let fields = json!({
        "attempts": {"type": "integer", "minimum": 1, "description": "All starts, the first included"},
        "delay": {"$ref": "#/$defs/duration"},
        "factor": {"type": "number", "minimum": 1},
        "maxDelay": {"$ref": "#/$defs/duration"},
        "jitter": {"type": "boolean"},
        "retryOn": one_or_many(&json!({"anyOf": [
            {"enum": ERROR_CLASSES},
            {"type": "integer", "minimum": 1, "maximum": 255},
        ]})),
    });
    let object = json!({
        "type": "object",
        "required": ["attempts"],
        "additionalProperties": false,
        "properties": fields,
    });
    json!({"anyOf": [{"type": "integer", "minimum": 1}, object]})
}

fn question() -> Value {
    json!({
        "type": "object",
        "anyOf": [{"required": ["ask"]}, {"required": ["after"]}],
        "additionalProperties": false,
        "properties": {
            "ask": {"type": "string"},
            "after": {"type": "boolean"},
            "options": {"$ref": "#/$defs/texts"},
            "expires": {"$ref": "#/$defs/duration"},
            "onExpiry": {"type": "string"},
        },
    })
}

fn words(words: impl Iterator<Item = &'static str>) -> Value {
    json!({"enum": words.collect::<Vec<_>>()})
}

fn one_or_many(item: &Value) -> Value {
    json!({"anyOf": [item, {"type": "array", "items": item}]})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use std::sync::Arc;

    use taskpawl::async_trait;
    use taskpawl::model::plan::{expand_plan, parse_plan, plan_fields, plan_value, read_plan_file};
    use taskpawl::tools::{CallContext, Registry, Tool, ToolError, ToolSpec};

    use super::*;

    /// A tool that makes the argument validation usable for schemas.
    #[derive(Debug)]
    struct Checker(ToolSpec);

    #[async_trait]
    impl Tool for Checker {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn call(&self, _: CallContext, args: Value) -> Result<Value, ToolError> {
            Ok(args)
        }
    }

    fn registry() -> Registry {
        let mut root = plan();
        let definitions = root["$defs"].take();
        root.as_object_mut().unwrap().remove("$defs");
        let schema = json!({"type": "object", "properties": {"plan": root}, "$defs": definitions});
        let mut registry = Registry::new();
        registry.register(Arc::new(Checker(ToolSpec::new("plan", "", schema)))).unwrap();
        registry
    }

    fn accepts(registry: &Registry, plan: &Value) -> Result<(), ToolError> {
        registry.get("plan").unwrap().check_args(&json!({ "plan": plan }))
    }

    const EVERYTHING: &str = r#"{
        "version": 1, "name": "all", "description": "every form",
        "params": {"target": {"type": "string", "default": "x"}},
        "defaults": {"priority": "high"}, "resources": {"db": 2}, "timeout": "2h",
        "budget": {"calls": 10, "duration": "1h", "cost": 1.5}, "maxFailures": 3, "notify": ["notify-send", "x"],
        "schedule": {"cron": "0 3 * * *", "timezone": "Europe/Berlin", "overlap": "queue", "expires": "6h", "onMissed": "none"},
        "requires": {"env": ["HOME"]}, "returns": {"made": "${{ tasks.run.result.stdout }}"},
        "tasks": [
            "a name alone",
            {"id": "run", "run": "make", "timeout": "0.5s", "labels": "x", "writes": ["out"], "resources": "db"},
            {"id": "argv", "run": ["make", "all"], "retry": 3, "mode": "parallel", "estimate": "5m"},
            {"id": "call", "call": {"exec": {"argv": ["make"]}, "saveAs": "made", "idempotent": true}, "needs": "run"},
            {"id": "agent", "call": {"agent": {"prompt": "x"}}, "verify": {"run": "make test"}, "rework": 2, "approval": {"after": true},
             "artifacts": ["plan.md", {"path": "a.bin", "name": "b", "type": "application/zip"}]},
            {"id": "calls", "toolCalls": [{"toolName": "log", "args": {"message": "x"}, "timeout": "1s"}],
             "dependencies": ["run", "argv"], "trigger": "any_done", "context": {"a": 1}, "dueDate": "2026-05-31"},
            {"name": "above", "subtasks": [{"name": "below", "milestone": true}, "call"], "when": "true",
             "approval": {"ask": "go?", "options": ["yes"], "expires": "1h", "onExpiry": "yes"}},
            {"id": "items", "forEach": {"in": [1, 2], "concurrency": 1}, "run": "echo ${{ item }}"},
            {"id": "long", "metadata": {"toolCalls": [{"run": "x"}], "context": {}, "own": 1},
             "retry": {"attempts": 2, "delay": "1s", "factor": 2, "maxDelay": "1m", "jitter": true, "retryOn": ["timeout", 1]},
             "repeat": {"until": "attempt > 1", "max": 3}, "cache": {"inputs": "src/**"}, "sandbox": {"net": true, "read": ["/x"]},
             "links": {"relatesTo": ["run"]}, "x-ticket": "a field of one's own"}
        ]
    }"#;

    #[test]
    fn the_schema_accepts_what_the_parser_reads() {
        let registry = registry();
        let read = parse_plan(EVERYTHING).unwrap_or_else(|errors| panic!("{errors}"));
        for plan in
            [serde_json::from_str(EVERYTHING).unwrap(), expand_plan(&read), json!(["one", {"id": "two"}])]
        {
            accepts(&registry, &plan).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn the_schema_of_a_tool_has_the_fields_that_descriptions_have() {
        let schema = own_tool();
        let mut fields: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert!(fields.remove("concurrency"));
        assert_eq!(fields, taskpawl::tools::CommandTool::FIELDS.iter().copied().collect());
    }

    #[test]
    fn the_schema_accepts_the_examples() {
        let registry = registry();
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let folders = std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path());
        let files =
            folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let is_plan = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "yaml");
        let plans: Vec<_> = files.map(|entry| entry.unwrap().path()).filter(is_plan).collect();
        assert!(plans.len() >= 2, "{plans:?}");
        for path in plans {
            let files = taskpawl::PlanDirectory::of_file(path.parent().unwrap(), &path);
            let text = std::fs::read_to_string(&path).unwrap();
            accepts(&registry, &plan_value(&text).unwrap()).unwrap();
            let plan = read_plan_file(&text, &files).unwrap();
            accepts(&registry, &expand_plan(&plan))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    #[test]
    fn the_schema_refuses_what_the_parser_refuses() {
        let registry = registry();
        for plan in [
            json!({"name": "no tasks"}),
            json!({"tasks": [{"description": "neither id nor name"}]}),
            json!({"tasks": [{"id": "a/b"}]}),
            json!({"tasks": [{"id": "a", "priority": "urgent"}]}),
            json!({"tasks": [{"id": "a", "timeout": 5}]}),
            json!({"tasks": [{"id": "a", "retry": {"delay": "1s"}}]}),
            json!({"tasks": [{"id": "a", "retry": {"attempts": 2, "retryOn": "sometimes"}}]}),
            json!({"tasks": [{"id": "a", "retry": {"attempts": 2, "retryOn": [0]}}]}),
            json!({"tasks": [{"id": "a", "subtasks": [{"id": "b", "milestone": "yes"}]}]}),
            json!({"version": 2, "tasks": []}),
            json!({"tasks": [{"id": "a", "ticket": 1}]}),
            json!({"tasks": [], "ticket": 1}),
            json!({"tasks": [], "params": {"x": {"type": "text"}}}),
        ] {
            assert!(accepts(&registry, &plan).is_err(), "the schema accepts {plan}");
            assert!(parse_plan(&plan.to_string()).is_err(), "the parser reads {plan}");
        }
    }

    #[test]
    fn the_schema_has_the_fields_that_the_parser_knows() {
        let known = plan_fields();
        let schema = plan();
        let objects = [&schema["anyOf"][0], &schema["$defs"]["task"], &schema["$defs"]["call"]];
        for (object, known) in objects.into_iter().zip([known.plan, known.task, known.call]) {
            let fields: BTreeSet<&str> =
                object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(fields, known.iter().copied().collect());
        }
    }

    /// Collects the field names of all objects within a schema.
    fn closed<'s>(schema: &'s Value, root: &'s Value, found: &mut Vec<BTreeSet<&'s str>>) {
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            closed(&root["$defs"][name], root, found);
        }
        if let Some(fields) = schema["properties"].as_object() {
            found.push(fields.keys().map(String::as_str).collect());
        }
        closed_all(&schema["anyOf"], root, found);
        if schema["additionalProperties"].is_object() {
            closed(&schema["additionalProperties"], root, found);
        }
    }

    fn closed_all<'s>(schemas: &'s Value, root: &'s Value, found: &mut Vec<BTreeSet<&'s str>>) {
        schemas.as_array().into_iter().flatten().for_each(|schema| closed(schema, root, found));
    }

    #[test]
    fn the_objects_of_the_schema_have_the_fields_that_the_parser_knows() {
        let schema = plan();
        for (field, known) in plan_fields().objects {
            let of_plan = &schema["anyOf"][0]["properties"][field];
            let of_task = &schema["$defs"]["task"]["properties"][field];
            // Except for `resources`, no field is an object both in plans and in tasks.
            let property = if of_task.is_null() { of_plan } else { of_task };
            let mut found = Vec::new();
            closed(property, &schema, &mut found);
            assert_eq!(found, [known.iter().copied().collect::<BTreeSet<&str>>()], "{field}");
        }
    }
}
