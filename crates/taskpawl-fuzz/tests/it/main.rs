//! Positive controls: the fuzzer finds planted faults.

use std::cell::Cell;

use taskpawl_fuzz::Target;

const JSON: Target<'_> = Target {
    name: "planted",
    corpus: &[r#"{"name": "a", "items": [1, 2, {"b": "c"}]}"#, "plain text"],
    words: &["name", "items"],
};

fn search(planted: impl Fn(&str) -> bool) -> Option<String> {
    let parse = |text: &str| {
        assert!(!planted(text), "planted");
        true
    };
    JSON.search(100_000, 1, parse).map(|found| found.input)
}

#[test]
fn planted_panics_are_found() {
    assert_eq!(search(|_| false), None);
    let is_found = |planted: &dyn Fn(&str) -> bool| search(planted).is_some_and(|input| planted(&input));
    assert!(is_found(&|text| text.contains("{{{{")), "nesting");
    assert!(is_found(&|text| text.contains("\"items\":null")), "a value of another type");
    assert!(is_found(&|text| text.contains("\"name\":18446744073709551615")), "a number that is too large");
    assert!(is_found(&|text| text.ends_with('\\')), "an unexpected end");
    assert!(is_found(&|text| text.is_empty()), "an empty input");
    assert!(is_found(&|text| text.contains("plain") && text.contains("items")), "two inputs in one");
    assert!(is_found(&|text| text.chars().count() > 10_000), "a long input");
    // A typical bug: slicing a string inside a character.
    assert!(is_found(&|text| text.contains("na")
        && text.find("me").is_some_and(|at| !text.is_char_boundary((at + 3).min(text.len())))));
}

#[test]
fn inputs_are_reproducible() {
    let found = JSON.search(100_000, 7, |text| {
        assert!(!text.contains("漢"), "planted");
        true
    });
    let found = found.unwrap();
    let again = JSON.search(found.number + 1, found.seed, |text| {
        assert!(text != found.input, "planted");
        true
    });
    assert_eq!((again.unwrap().number, found.message.as_str()), (found.number, "planted"));
}

#[test]
#[should_panic(expected = "hardly anything is read")]
fn a_target_that_accepts_too_little_fails() {
    let asked = Cell::new(0);
    JSON.fuzz_some(2000, |_| {
        asked.set(asked.get() + 1);
        asked.get() <= JSON.corpus.len()
    });
}

#[test]
fn the_corpus_directory_of_a_target_is_read() {
    let in_folder = Target { name: "Messages of MCP servers", corpus: &[], words: &[] };
    let read = Cell::new(0);
    in_folder.corpus(|text| {
        read.set(read.get() + 1);
        text.contains("jsonrpc")
    });
    assert!(read.get() >= 6, "{} inputs", read.get());
}
