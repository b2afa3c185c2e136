//! The tables of filters, tests and names. The parser, the evaluator and the language reference share them.

/// A filter, a test or a name, with its documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Its name.
    pub name: &'static str,
    /// The minimum number of positional arguments.
    pub least: usize,
    /// The maximum number of positional arguments.
    pub most: usize,
    /// The named arguments.
    pub named: &'static [&'static str],
    /// A description for the language reference.
    pub meaning: &'static str,
    /// An example.
    pub example: &'static str,
    /// The value of the example, as JSON.
    pub gives: &'static str,
}

const fn word(
    name: &'static str,
    (least, most): (usize, usize),
    named: &'static [&'static str],
    meaning: &'static str,
    (example, gives): (&'static str, &'static str),
) -> Word {
    Word { name, least, most, named, meaning, example, gives }
}

/// The filter that fails for values of another type.
pub(super) const TYPED: &str = "typed";

/// The root names of values. Their examples are evaluated with the data of the tests.
pub static ROOTS: &[Word] = &[
    word("params", (0, 0), &[], "a parameter of the plan", ("params.region", r#""eu""#)),
    word(
        "context",
        (0, 0),
        &[],
        "a value of the task's own context, or the result of an earlier call of the task, by `saveAs` or its id",
        ("context.fetch.json.count", "3"),
    ),
    word(
        "tasks",
        (0, 0),
        &[],
        "`context`, `result`, `results`, `artifacts`, `status` or `error` of a task that this one depends on, or of an own subtask",
        ("tasks['build-lib'].result.exitCode", "0"),
    ),
    word(
        "env",
        (0, 0),
        &[],
        "an environment variable of the run, in arguments of calls; it must be the whole expression, and only the reference is stored",
        ("env.REGION", r#""${secret:env.REGION}""#),
    ),
    word("item", (0, 0), &[], "the item of the list, in tasks with `forEach`", ("item.name", r#""north""#)),
    word(
        "index",
        (0, 0),
        &[],
        "the position of the item, from 0, in tasks with `forEach`",
        ("index + 1", "3"),
    ),
    word(
        "attempt",
        (0, 0),
        &[],
        "the number of claims of the task, including this one",
        ("attempt > 1", "false"),
    ),
];

/// All filters.
pub static FILTERS: &[Word] = &[
    word("abs", (0, 0), &[], "the number without its sign", ("-3 | abs", "3")),
    word(
        "default",
        (1, 2),
        &[],
        "a fallback for a value that is missing or none; with `true` as second argument also for an empty or false one",
        ("context.fetch.json.page | default(1)", "1"),
    ),
    word(
        "first",
        (0, 0),
        &[],
        "the first item or character; missing when there is none",
        ("[4, 5] | first", "4"),
    ),
    word(
        "float",
        (0, 1),
        &[],
        "a number parsed from a text; the value in parentheses if it is invalid",
        ("'1.5' | float", "1.5"),
    ),
    word(
        "fromjson",
        (0, 0),
        &[],
        "the value parsed from a JSON text",
        (r#"'{"a": [1]}' | fromjson"#, r#"{"a":[1]}"#),
    ),
    word(
        "int",
        (0, 1),
        &[],
        "a whole number from a text or number, truncated towards zero; the value in parentheses if it is invalid",
        ("' 42\n' | int", "42"),
    ),
    word("items", (0, 0), &[], "an object as a list of `[key, value]`", ("{'a': 1} | items", r#"[["a",1]]"#)),
    word(
        "join",
        (0, 1),
        &["attribute"],
        "the items joined to one text, with a separator",
        ("[1, 2] | join('-')", r#""1-2""#),
    ),
    word("keys", (0, 0), &[], "the keys of an object as a list", ("{'a': 1, 'b': 2} | keys", r#"["a","b"]"#)),
    word(
        "last",
        (0, 0),
        &[],
        "the last item or character; missing when there is none",
        ("'abc' | last", r#""c""#),
    ),
    word("length", (0, 0), &[], "the number of items, fields or characters", ("'häuser' | length", "6")),
    word("lines", (0, 0), &[], "the lines of a text as a list", ("'a\nb\n' | lines", r#"["a","b"]"#)),
    word(
        "list",
        (0, 0),
        &[],
        "the characters of a text or the keys of an object as a list; a list unchanged",
        ("'ab' | list", r#"["a","b"]"#),
    ),
    word("lower", (0, 0), &[], "the text in lower case", ("'AbC' | lower", r#""abc""#)),
    word(
        "map",
        (0, 0),
        &["attribute", "default"],
        "one field of every item",
        ("[{'a': 1}, {'a': 2}] | map(attribute='a')", "[1,2]"),
    ),
    word("max", (0, 0), &["attribute"], "the greatest item", ("[3, 1, 2] | max", "3")),
    word("min", (0, 0), &["attribute"], "the smallest item", ("[3, 1, 2] | min", "1")),
    word(
        "partial",
        (0, 0),
        &[],
        "the stored part of a truncated value; without it an expression that reads one fails",
        ("tasks.plain.result.stdout | partial", r#""{}""#),
    ),
    word(
        "raw",
        (0, 0),
        &[],
        "in `command` of `shell`: the unquoted text instead of one quoted word; the call then waits for an approval. It must come last",
        ("params.region | raw", r#""eu""#),
    ),
    word(
        "rejectattr",
        (1, 3),
        &[],
        "the items with an empty or false field; with a test or an operator as second argument, those that do not pass it",
        ("[{'a': 1}, {'a': 2}] | rejectattr('a', '==', 1)", r#"[{"a":2}]"#),
    ),
    word(
        "replace",
        (2, 2),
        &[],
        "the text with one part replaced by another",
        ("'a-b' | replace('-', '+')", r#""a+b""#),
    ),
    word(
        "reverse",
        (0, 0),
        &[],
        "the items or characters from the last to the first",
        ("[1, 2] | reverse", "[2,1]"),
    ),
    word(
        "round",
        (0, 1),
        &[],
        "the number rounded to the given number of decimal digits, 0 by default",
        ("1.25 | round(1)", "1.3"),
    ),
    word(
        "selectattr",
        (1, 3),
        &[],
        "the items with a field that is neither empty nor false; with a test or an operator as second argument, those that pass it",
        ("[{'a': 1}, {'a': 2}] | selectattr('a', '==', 1)", r#"[{"a":1}]"#),
    ),
    word(
        "sort",
        (0, 0),
        &["attribute", "reverse"],
        "the items in order: numbers or texts",
        ("[3, 1] | sort", "[1,3]"),
    ),
    word(
        "split",
        (0, 2),
        &[],
        "the parts of a text between separators, with an optional maximum of splits; at whitespace by default",
        ("'a,b' | split(',')", r#"["a","b"]"#),
    ),
    word("string", (0, 0), &[], "the value as text", ("1.5 | string", r#""1.5""#)),
    word("sum", (0, 0), &["attribute"], "the sum of the items", ("[1, 2] | sum", "3")),
    word(
        "tojson",
        (0, 0),
        &[],
        "the value as JSON text",
        ("{'a': [1, none]} | tojson", r#""{\"a\":[1,null]}""#),
    ),
    word(
        "trim",
        (0, 1),
        &[],
        "the text without leading and trailing whitespace, or without these characters",
        ("' a\n' | trim", r#""a""#),
    ),
    word(
        TYPED,
        (1, 2),
        &[],
        "the value, if its type is `string`, `integer`, `number`, `boolean`, `array` or `object`; others are an error, which names the second argument",
        ("[1] | typed('array')", "[1]"),
    ),
    word("unique", (0, 0), &["attribute"], "the distinct items", ("[1, 2, 1] | unique", "[1,2]")),
    word("upper", (0, 0), &[], "the text in upper case", ("'abc' | upper", r#""ABC""#)),
    word(
        "urlencode",
        (0, 0),
        &[],
        "the text percent-encoded for a URL",
        ("'a b&c' | urlencode", r#""a%20b%26c""#),
    ),
    word("values", (0, 0), &[], "the values of an object as a list", ("{'a': 1} | values", "[1]")),
];

/// All tests, used as `value is TEST` and `value is not TEST`.
pub static TESTS: &[Word] = &[
    word("boolean", (0, 0), &[], "true or false", ("true is boolean", "true")),
    word(
        "defined",
        (0, 0),
        &[],
        "the value exists; it may be none",
        ("context.fetch.json.page is defined", "false"),
    ),
    word("divisibleby", (1, 1), &[], "a whole number without remainder", ("6 is divisibleby(3)", "true")),
    word("endingwith", (1, 1), &[], "a text that ends with this", ("'a.rs' is endingwith('.rs')", "true")),
    word("even", (0, 0), &[], "an even whole number", ("2 is even", "true")),
    word("false", (0, 0), &[], "exactly false", ("0 is false", "false")),
    word("float", (0, 0), &[], "a number that is not a whole number", ("1.5 is float", "true")),
    word("integer", (0, 0), &[], "a whole number", ("1 is integer", "true")),
    word("mapping", (0, 0), &[], "an object", ("{} is mapping", "true")),
    word("none", (0, 0), &[], "the value exists and is none", ("none is none", "true")),
    word("number", (0, 0), &[], "a number", ("1.5 is number", "true")),
    word("odd", (0, 0), &[], "an odd whole number", ("3 is odd", "true")),
    word("sequence", (0, 0), &[], "a list", ("[] is sequence", "true")),
    word(
        "startingwith",
        (1, 1),
        &[],
        "a text that begins with this",
        ("'abc' is startingwith('ab')", "true"),
    ),
    word("string", (0, 0), &[], "a text", ("'a' is string", "true")),
    word("true", (0, 0), &[], "exactly true", ("1 is true", "false")),
    word(
        "undefined",
        (0, 0),
        &[],
        "the value does not exist",
        ("context.fetch.json.page is undefined", "true"),
    ),
];

/// Returns the filter with this name; `d` and `count` are aliases of Jinja.
pub(super) fn filter(name: &str) -> Option<&'static Word> {
    let name = match name {
        "d" => "default",
        "count" => "length",
        name => name,
    };
    FILTERS.iter().find(|word| word.name == name)
}

/// Returns the test with this name.
pub(super) fn test(name: &str) -> Option<&'static Word> {
    TESTS.iter().find(|word| word.name == name)
}

impl Word {
    /// Returns the accepted arguments in words.
    pub(super) fn takes(&self) -> String {
        let plain = match (self.least, self.most) {
            (0, 0) if self.named.is_empty() => return "no arguments".to_owned(),
            (0, 0) => String::new(),
            (least, most) if least == most => format!("{} ", count(least)),
            (0, most) => format!("at most {} ", count(most)),
            (least, most) => format!("{least} to {} ", count(most)),
        };
        let named: Vec<String> = self.named.iter().map(|name| format!("`{name}=`")).collect();
        let named = named.join(" and ");
        match (plain.is_empty(), named.is_empty()) {
            (true, _) => named,
            (false, true) => plain.trim_end().to_owned(),
            (false, false) => format!("{plain}and {named}"),
        }
    }
}

fn count(number: usize) -> String {
    if number == 1 { "1 argument".to_owned() } else { format!("{number} arguments") }
}
