//! Any text leads to a plan or an error.

use proptest::prelude::*;
use taskpawl_model::{parse_call, parse_plan, parse_task};

use super::errors;

#[test]
fn deep_nesting_is_refused() {
    for opening in ["[", "{\"a\":", "- ", "a: [", "[{a: "] {
        let said = errors(&opening.repeat(100_000));
        assert!(said.contains("nested more than 256 deep"), "{opening}: {said}");
    }
    let balanced = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    insta::assert_snapshot!(errors(&balanced), @r#"
    line 1, column 257: lists and objects are nested more than 256 deep
      hint: subtasks may be listed by id, then they nest to any depth
    "#);
}

#[test]
fn aliases_cannot_blow_up() {
    let levels: Vec<String> = (1..60).map(|i| format!("- &a{i} [*a{0}, *a{0}]\n", i - 1)).collect();
    assert!(
        errors(&format!("- &a0 [x, x]\n{}", levels.concat()))
            .contains("anchors and aliases are not supported")
    );
}

#[test]
fn many_errors_are_all_reported() {
    let text = "- {id: a, priority: none}\n".repeat(2_000);
    assert_eq!(parse_plan(&text).unwrap_err().errors().len(), 2_000 + 1_999);
}

#[test]
fn a_large_object_with_one_key_twice_is_refused() {
    let fields = (0..10_000).map(|i| format!("k{i}: 1, ")).collect::<Vec<_>>().concat();
    let said = errors(&format!("- {{id: a, context: {{{fields}k77: 2}}}}"));
    assert!(said.contains("key `k77` is already given at line 1, column"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = (parse_plan(&text), parse_task(&text), parse_call(&text));
    }

    #[test]
    fn anything_that_looks_like_a_plan_is_answered(
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
