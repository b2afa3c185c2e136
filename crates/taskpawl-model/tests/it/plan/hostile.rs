//! Every text gives a plan or an error, never a panic.

use proptest::prelude::*;
use taskpawl_model::plan::{parse_call, parse_plan, parse_task};

use super::errors;

#[test]
fn deep_nesting_is_refused() {
    for opening in ["[", "{\"a\":", "- ", "a: [", "[{a: "] {
        let report = errors(&opening.repeat(100_000));
        assert!(report.contains("nested more than 256 deep"), "{opening}: {report}");
    }
    let balanced = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    insta::assert_snapshot!(errors(&balanced), @r#"
    line 1, column 257: lists and objects are nested more than 256 deep
      hint: subtasks may be listed by id, then they nest to any depth
    "#);
}

#[test]
fn aliases_cannot_expand_exponentially() {
    let levels: Vec<String> = (1..60).map(|i| format!("- &a{i} [*a{0}, *a{0}]\n", i - 1)).collect();
    assert!(
        errors(&format!("- &a0 [x, x]\n{}", levels.concat()))
            .contains("anchors and aliases are not supported")
    );
}

#[test]
fn all_of_many_errors_are_reported() {
    let text = "- {id: a, priority: none}\n".repeat(2_000);
    assert_eq!(parse_plan(&text).unwrap_err().errors().len(), 2_000 + 1_999);
}

#[test]
fn duplicate_key_in_a_large_object_is_refused() {
    let fields = (0..10_000).map(|i| format!("k{i}: 1, ")).collect::<Vec<_>>().concat();
    let report = errors(&format!("- {{id: a, context: {{{fields}k77: 2}}}}"));
    assert!(report.contains("key `k77` is already given at line 1, column"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_parses_or_fails(text in any::<String>()) {
        let _ = (parse_plan(&text), parse_task(&text), parse_call(&text));
    }

    #[test]
    fn plan_like_text_parses_or_fails(
        words in proptest::collection::vec(
            prop_oneof![
                Just("tasks"), Just("id"), Just("needs"), Just("run"), Just("subtasks"), Just("a"), Just("b"), Just(": "),
                Just(":"), Just("\n"), Just("\n  "), Just("\n- "), Just("- "), Just("["), Just("]"), Just("{"), Just("}"),
                Just(", "), Just("\""), Just("'"), Just("|"), Just(">"), Just("#"), Just("*"), Just("&"), Just("!"),
                Just("?"), Just("---"), Just("..."), Just("%"), Just("\t"), Just("5"), Just("call"), Just("metadata"),
                Just("defaults"), Just("retry"), Just("\\u"), Just("é"), Just("\u{7f}"), Just("\r"), Just("null"),
            ],
            0..60,
        )
    ) {
        let text = words.concat();
        let _ = (parse_plan(&text), parse_task(&text), parse_call(&text));
    }
}
