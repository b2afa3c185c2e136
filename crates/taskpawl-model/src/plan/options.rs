//! Fields of tasks and calls whose values are objects.

use indexmap::IndexMap;

use super::artifacts::ARTIFACT;
use super::include::INCLUDE_SHAPE;
use super::node::{Content, Node, shortened};
use super::reader::{Reader, Segment, Shape};
use super::schedule::SCHEDULE;
use super::site::Stage;
use super::vocabulary::{CALL, INCLUDE, PLAN, PlanFields, TASK};
use super::{PlanProblem, Requires};
use crate::task::fault;
use crate::task::{
    Approval, ApprovalWord, Cache, ForEach, Hooks, Links, Question, Repeat, Retry, SandboxRequest, Worktree,
};

pub(super) const PARAM: Shape = Shape {
    what: "a parameter",
    expected: "an object such as `{type: string}`",
    fields: &["type", "default"],
    required: &[("type", "`type`")],
};

const REQUIRES: Shape = Shape {
    what: "`requires`",
    expected: "an object with `env`, a list of names",
    fields: &["env"],
    required: &[],
};

pub(super) const BUDGET: Shape = Shape {
    what: "`budget`",
    expected: "an object with `calls`, `duration` or `cost`",
    fields: &["calls", "duration", "cost"],
    required: &[],
};

const LINKS: Shape = Shape {
    what: "`links`",
    expected: "an object with lists of ids",
    fields: &["relatesTo", "discoveredFrom", "duplicates"],
    required: &[],
};

const FOR_EACH: Shape = Shape {
    what: "`forEach`",
    expected: "a list, an expression that evaluates to one, or an object with `in`",
    fields: &["in", "concurrency"],
    required: &[("in", "`in`")],
};

const REPEAT: Shape = Shape {
    what: "`repeat`",
    expected: "an object with `until` and `max`",
    fields: &["until", "max", "delay"],
    required: &[("until", "`until`"), ("max", "`max`")],
};

const RETRY: Shape = Shape {
    what: "`retry`",
    expected: "a number of attempts, or an object with `attempts`",
    fields: &["attempts", "delay", "factor", "maxDelay", "jitter", "retryOn"],
    required: &[("attempts", "`attempts`")],
};

const SANDBOX: Shape = Shape {
    what: "`sandbox`",
    expected: "an object with `net`, `read` or `write`",
    fields: &["net", "read", "write"],
    required: &[],
};

const QUESTION: Shape = Shape {
    what: "`approval`",
    expected: "`required`, or an object with `ask` or `after`",
    fields: &["ask", "options", "expires", "onExpiry", "after"],
    required: &[],
};

const WORKTREE: Shape = Shape {
    what: "`worktree`",
    expected: "`true`, or an object with `branch`, `base`, `keep`, `setup`, `link`, `copy`, `ports` or `hooks`",
    fields: &["branch", "base", "keep", "setup", "link", "copy", "ports", "hooks"],
    required: &[],
};

const CACHE: Shape = Shape {
    what: "`cache`",
    expected: "an object with `inputs` or `key`",
    fields: &["inputs", "key"],
    required: &[],
};

/// The known fields of each object, by the field that contains it.
pub(super) const OBJECTS: &[(&str, &[&str])] = &[
    ("links", LINKS.fields),
    ("forEach", FOR_EACH.fields),
    ("repeat", REPEAT.fields),
    ("retry", RETRY.fields),
    ("sandbox", SANDBOX.fields),
    ("approval", QUESTION.fields),
    ("cache", CACHE.fields),
    ("worktree", WORKTREE.fields),
    ("artifacts", ARTIFACT.fields),
    (INCLUDE, INCLUDE_SHAPE.fields),
    ("budget", BUDGET.fields),
    ("schedule", SCHEDULE.fields),
    ("requires", REQUIRES.fields),
    ("params", PARAM.fields),
];

impl<'n> Reader<'n> {
    pub(super) fn requires(&mut self, node: &'n Node<'n>) -> Option<Requires> {
        let mut requires = Requires { env: Vec::new(), at: node.at };
        self.object(node, &REQUIRES, |reader, _, value| {
            requires.env = reader.checked_texts(value, fault::check_identifier);
        })?;
        Some(requires)
    }

    pub(super) fn links(&mut self, node: &'n Node<'n>) -> Option<Links> {
        let mut links = Links::default();
        self.object(node, &LINKS, |reader, key, value| match key {
            "relatesTo" => links.relates_to = reader.ids(value),
            "discoveredFrom" => links.discovered_from = reader.ids(value),
            _ => links.duplicates = reader.ids(value),
        })?;
        Some(links)
    }

    pub(super) fn for_each(&mut self, node: &'n Node<'n>) -> Option<ForEach> {
        let mut for_each = ForEach { list: serde_json::Value::Null, concurrency: None };
        if let Content::Text(_) | Content::List(_) = &node.content {
            for_each.list = self.list_of_for_each(node);
            return Some(for_each);
        }
        self.object(node, &FOR_EACH, |reader, key, value| match key {
            "concurrency" => for_each.concurrency = reader.count(value),
            _ => for_each.list = reader.list_of_for_each(value),
        })?;
        Some(for_each)
    }

    fn list_of_for_each(&mut self, node: &'n Node<'n>) -> serde_json::Value {
        if let Content::Text(_) | Content::List(_) = &node.content {
            self.expression_site(Stage::List, node);
            return self.json(node);
        }
        self.wrong_type(node, "a list, or text with an expression that evaluates to one");
        serde_json::Value::Null
    }

    pub(super) fn repeat(&mut self, node: &'n Node<'n>) -> Option<Repeat> {
        let mut repeat = Repeat { until: String::new(), max: 1, delay: None };
        self.object(node, &REPEAT, |reader, key, value| match key {
            "until" => {
                reader.expression_site(Stage::Until, value);
                repeat.until = reader.filled_text(value).unwrap_or_default();
            }
            "max" => repeat.max = reader.count(value).unwrap_or(1),
            _ => repeat.delay = reader.pause(value),
        })?;
        Some(repeat)
    }

    /// Reads a retry policy; a number alone is the number of attempts.
    pub(super) fn retry(&mut self, node: &'n Node<'n>) -> Option<Retry> {
        let mut retry = Retry {
            attempts: 1,
            delay: None,
            factor: None,
            max_delay: None,
            jitter: None,
            retry_on: Vec::new(),
        };
        if node.as_number().is_some() {
            retry.attempts = self.count(node)?;
            return Some(retry);
        }
        self.object(node, &RETRY, |reader, key, value| match key {
            "attempts" => retry.attempts = reader.count(value).unwrap_or(1),
            "delay" => retry.delay = reader.pause(value),
            "factor" => retry.factor = reader.number(value, 1.0, "at least 1"),
            "maxDelay" => retry.max_delay = reader.pause(value),
            "jitter" => retry.jitter = reader.flag(value),
            _ => retry.retry_on = reader.one_or_many(value, Self::failure),
        })?;
        Some(retry)
    }

    /// Reads an entry of `retryOn`: an exit code or an error class.
    fn failure(&mut self, node: &'n Node<'n>) -> Option<serde_json::Value> {
        let is_exit_code = node.as_number().is_some_and(|number| !number.is_f64());
        if node.as_str().is_none() && !is_exit_code {
            self.wrong_type(node, "an exit code or a failure class");
            return None;
        }
        let failure = self.json(node);
        self.checked(node, fault::check_failure(&failure)).then_some(failure)
    }

    pub(super) fn sandbox(&mut self, node: &'n Node<'n>) -> Option<SandboxRequest> {
        let mut sandbox = SandboxRequest::default();
        self.object(node, &SANDBOX, |reader, key, value| match key {
            "net" => sandbox.net = reader.flag(value).unwrap_or_default(),
            "read" => sandbox.read = reader.texts(value),
            _ => sandbox.write = reader.texts(value),
        })?;
        Some(sandbox)
    }

    pub(super) fn approval(&mut self, node: &'n Node<'n>) -> Option<Approval> {
        const KNOWN: &str =
            "allowed are `required` and an object: `{ask, options, expires, onExpiry, after}`";
        if node.as_object().is_some() {
            return self.question(node).map(Approval::Question);
        }
        let problem = match node.as_str() {
            Some(word) => match ApprovalWord::from_word(word) {
                Some(word) => return Some(Approval::Word(word)),
                None => PlanProblem::UnknownWord { what: "approval", word: shortened(word) },
            },
            None => PlanProblem::WrongType { expected: QUESTION.expected, found: node.describe() },
        };
        self.report_with(node.at, problem, KNOWN);
        None
    }

    fn question(&mut self, node: &'n Node<'n>) -> Option<Question> {
        let mut question = Question {
            ask: String::new(),
            after: false,
            options: Vec::new(),
            expires: None,
            on_expiry: None,
        };
        let mut on_expiry = None;
        self.object(node, &QUESTION, |reader, key, value| match key {
            "ask" => question.ask = reader.filled_text(value).unwrap_or_default(),
            "options" => question.options = reader.texts(value),
            "expires" => question.expires = reader.period(value),
            "after" => question.after = reader.flag(value).unwrap_or_default(),
            _ => on_expiry = Some(value),
        })?;
        let has_text =
            node.as_object().into_iter().flatten().any(|entry| entry.key == "ask" && !entry.value.is_null());
        if !has_text && !question.after {
            self.report(node.at, PlanProblem::Missing { field: "`ask`", of: QUESTION.what });
        }
        // The default answer is checked against the options, so it comes after all other fields, wherever the author
        // wrote it.
        if let Some(value) = on_expiry {
            question.on_expiry =
                self.within(Segment::Key("onExpiry"), |reader| reader.on_expiry(value, &question));
        }
        Some(question)
    }

    fn on_expiry(&mut self, node: &'n Node<'n>, question: &Question) -> Option<String> {
        let word = self.filled_text(node)?;
        self.checked(node, fault::check_answer(&word, question)).then_some(word)
    }

    /// Reads the worktree of a task. `false` means none, also against the defaults of the plan.
    pub(super) fn worktree(&mut self, node: &'n Node<'n>) -> Option<Worktree> {
        if let Content::Bool(is_wanted) = &node.content {
            return is_wanted.then(Worktree::default);
        }
        let mut worktree = Worktree::default();
        self.object(node, &WORKTREE, |reader, key, value| match key {
            "branch" => worktree.branch = reader.option(value, Self::filled_text),
            "base" => worktree.base = reader.option(value, Self::filled_text),
            "link" => worktree.link = reader.checked_texts(value, fault::check_link),
            "copy" => worktree.copy = reader.checked_texts(value, fault::check_pattern),
            "hooks" => worktree.hooks = reader.option(value, Self::hooks).unwrap_or_default(),
            "ports" => {
                let ports = reader.count(value);
                worktree.ports = ports.filter(|ports| reader.checked(value, fault::check_ports(*ports)));
            }
            // Those of a task are read when its other calls are complete.
            "setup" if !reader.in_defaults => {}
            "setup" => worktree.setup = reader.setup_calls(value, 0),
            _ => worktree.keep = reader.option(value, Self::flag).unwrap_or_default(),
        })?;
        for (field, text) in [("branch", &worktree.branch), ("base", &worktree.base)] {
            if let Some(text) = text {
                self.checked(node, fault::check_reference(field, text));
            }
        }
        Some(worktree)
    }

    fn hooks(&mut self, node: &'n Node<'n>) -> Option<Hooks> {
        self.word(node, "value of `hooks`", Hooks::ALL, Hooks::from_word)
    }

    pub(super) fn cache(&mut self, node: &'n Node<'n>) -> Option<Cache> {
        let mut cache = Cache::default();
        self.object(node, &CACHE, |reader, key, value| {
            if key == "inputs" {
                cache.inputs = reader.checked_texts(value, fault::check_pattern);
            } else {
                reader.expression_site(Stage::Key, value);
                cache.key = reader.filled_text(value);
            }
        })?;
        Some(cache)
    }

    /// Reads resources: an object with amounts, or names that stand for one unit each.
    pub(super) fn resources(&mut self, node: &'n Node<'n>) -> IndexMap<String, u32> {
        if node.as_list().is_none() && node.as_str().is_none() && !node.is_null() {
            return self.counts(node);
        }
        let names = self.one_or_many(node, Self::filled_text);
        names.into_iter().map(|name| (name, 1)).collect()
    }

    /// Reads an object with names and counts.
    pub(super) fn counts(&mut self, node: &'n Node<'n>) -> IndexMap<String, u32> {
        let entries = self.entries(node, "an object with names and whole numbers").unwrap_or_default();
        let count = |entry: &'n super::node::Entry<'n>| {
            let count = self.within(Segment::Key(&entry.key), |reader| reader.count(&entry.value))?;
            Some((entry.key.clone().into_owned(), count))
        };
        entries.iter().filter_map(count).collect()
    }

    /// Checks that a task needs no more of a resource than the plan declares.
    pub(super) fn check_capacity(&mut self, at: super::Position, wanted: &IndexMap<String, u32>) {
        for (resource, &wanted) in wanted {
            if let Some(&capacity) = self.capacities.get(resource).filter(|capacity| **capacity < wanted) {
                let problem = PlanProblem::Capacity { resource: resource.clone(), wanted, capacity };
                self.report_with(
                    at,
                    problem,
                    "request less, or raise the capacity in `resources` of the plan",
                );
            }
        }
    }
}

/// Returns the fields allowed in plan files, for their JSON schema.
pub fn plan_fields() -> PlanFields {
    PlanFields { plan: PLAN.known, task: TASK.known, call: CALL.known, objects: OBJECTS }
}
