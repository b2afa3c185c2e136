//! Hostile input for the editors of other programs' files: they never panic, and each addition can be removed byte
//! for byte.

use taskpawl_formats::json_text::Json;
use taskpawl_fuzz::Target;

use super::block::Block;
use super::json::{Addition, What};

const JSON: Target<'_> = Target {
    name: "JSON files of agents",
    corpus: &[
        "{\"mcpServers\": {\"o\": {\"command\": \"x\", \"args\": [1, 2]}}}\n",
        "{\n  // one\n  \"a\": 1, /* two */\n  \"mcpServers\": {\n    \"o\": {},\n  },\n}\n",
        "{\r\n\t\"hooks\": {\"SessionStart\": [\r\n{\"x\": \"y\"}]}\r\n}",
        "{ }",
    ],
    words: &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"mcpServers\"",
        "\"taskpawl\"",
        "\"hooks\"",
        "\"SessionStart\"",
        "{}",
        "[]",
        " ",
        "\n",
        "\r\n",
        "\t",
        "// x\n",
        "/* x */",
        "\"é\"",
        "\"taskpawl prime\"",
        "null",
        "-1.5e3",
        "\u{feff}",
        "\\u0000",
        "\"",
    ],
};

fn additions() -> [Addition; 2] {
    let fields = vec![("command", Json::Plain("taskpawl".into())), ("args", Json::List(Vec::new()))];
    let element = Json::object([("command", Json::Plain("taskpawl prime".into()))]);
    [
        Addition { path: vec!["mcpServers"], what: What::Entry("taskpawl", fields) },
        Addition { path: vec!["hooks", "SessionStart"], what: What::Element(element, "taskpawl prime") },
    ]
}

fn json(text: &str) -> bool {
    let mut is_taken = false;
    for addition in additions() {
        // A search and a removal must not panic, whatever the text is.
        let _ = addition.remove(text);
        if addition.is_in(text) {
            continue;
        }
        let Ok(added) = addition.add(Some(text)) else { continue };
        is_taken = true;
        assert!(addition.is_in(&added), "{text:?} became {added:?}");
        let removed = addition.remove(&added).unwrap_or_else(|error| panic!("{error}: {added:?}"));
        assert_eq!(removed.as_deref(), Some(text), "by way of {added:?}");
    }
    is_taken
}

const TEXT: Target<'_> = Target {
    name: "instructions of agents",
    corpus: &[
        "# Mine\n\ntext\n",
        "a\r\nb",
        "\n\n",
        "<b>\nx\n<e>\n",
        "```md\n<b>\n```\n  ~~~~\n<e>\n~~~~~ \n",
    ],
    words: &["<b>", "<e>", "\n", "\r\n", "\r", " ", "#", "é", "x", "```", "\n```\n", "`", "~~~", "\n~~~\n"],
};

fn text(text: &str) -> bool {
    let lines = "one\ntwo".to_owned();
    let block = Block { begin: "<b>", end: "<e>", text: lines, head: "", is_markdown: true };
    let _ = block.remove(text);
    if block.is_in(text) {
        return true;
    }
    let Ok(added) = block.add(Some(text)) else { return false };
    assert_eq!(block.remove(&added).expect("our own marks fit").as_deref(), Some(text), "{added:?}");
    true
}

#[test]
fn the_corpus_is_changed_and_taken_back() {
    JSON.corpus(json);
    TEXT.corpus(text);
}

#[test]
fn hostile_files_panic_nothing_and_are_taken_back() {
    JSON.fuzz(json);
    TEXT.fuzz(text);
}
