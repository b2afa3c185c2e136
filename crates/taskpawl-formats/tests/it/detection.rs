//! Detection of the format of files, which must be unambiguous.

use taskpawl_formats::{Files, Format, detect, detected};

use crate::support::{files, path_of_sample, sample, samples};

#[test]
fn every_sample_is_recognised() {
    for format in Format::ALL.iter().copied() {
        let path = path_of_sample(format).to_string_lossy().into_owned();
        let found = detected(&path, &sample(format)).unwrap();
        assert_eq!(found.format, format, "{}", found.why);
        assert!(!found.why.is_empty());
    }
    assert_eq!(detect(&files(Format::Claude, &samples().join("claude-todos.json"))), Some(Format::Claude));
}

#[test]
fn ambiguous_files_are_not_detected() {
    for text in ["", "{}", "[]", "{\"a\": 1}", "no json", "{\"tasks\": []}", "[1]"] {
        assert_eq!(detect(&Files::single("x.json", text)), None, "{text}");
    }
}

#[test]
fn format_names_are_found_and_misspelt_ones_suggested() {
    assert_eq!(Format::from_name("beads"), Some(Format::Beads));
    assert_eq!(Format::nearest("beds"), Some(Format::Beads));
    assert_eq!(Format::nearest("Taskwarior"), Some(Format::Taskwarrior));
    assert_eq!(Format::nearest("spreadsheet"), None);
}
