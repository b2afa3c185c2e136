//! The operators in the language reference, with examples.

use taskpawl_model::expr::Word;

const fn word(
    name: &'static str,
    meaning: &'static str,
    (example, gives): (&'static str, &'static str),
) -> Word {
    Word { name, least: 0, most: 0, named: &[], meaning, example, gives }
}

/// All operators and forms, from the loosest binding to the tightest.
pub(super) static OPERATORS: &[Word] = &[
    word("A if C else B", "A if C is true, else B", ("'eu' if params.deploy else 'us'", r#""eu""#)),
    word("or", "the left value if it is true, else the right one", ("'' or 'x'", r#""x""#)),
    word("and", "the left value if it is false, else the right one", ("1 and 'x'", r#""x""#)),
    word("not", "true if the value is none, false, 0 or empty", ("not []", "true")),
    word("== !=", "true if two values are equal; `1` and `1.0` are", ("1 == 1.0", "true")),
    word("< <= > >=", "compares two numbers or two texts", ("'a' < 'b'", "true")),
    word(
        "in, not in",
        "true if a list contains an item, an object a key, or a text a substring",
        ("'b' in ['a', 'b']", "true"),
    ),
    word(
        "+ -",
        "sum and difference of numbers; `+` also joins two texts or two lists",
        ("[1] + [2]", "[1,2]"),
    ),
    word("~", "two values as one text", ("'n' ~ 1", r#""n1""#)),
    word("* / // %", "product, quotient, whole quotient and remainder of numbers", ("7 // 2", "3")),
    word("-", "the negative number", ("-params.count", "-3")),
    word("|", "a filter; several may follow each other", ("' A ' | trim | lower", r#""a""#)),
    word("is, is not", "a test", ("params.region is string", "true")),
    word(
        ".name ['name'] [0]",
        "a field or an item; negative positions count from the end",
        ("params.list[-1]", r#""c""#),
    ),
    word("[1:2]", "a part of a list or text", ("'abcd'[1:3]", r#""bc""#)),
    word(
        "range(n), range(a, b)",
        "the whole numbers from 0 or a, excluding the last",
        ("range(3)", "[0,1,2]"),
    ),
    word(
        "'…' 1 1.5 true false none [] {}",
        "texts, numbers, the values of JSON (`none` for null), lists and objects",
        ("{'a': [1, none]}", r#"{"a":[1,null]}"#),
    ),
];
