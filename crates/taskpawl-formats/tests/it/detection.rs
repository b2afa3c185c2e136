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

#[test]
fn a_faulty_file_does_not_hide_the_format_of_the_others() {
    let task = r#"{"id":"1","subject":"A","status":"pending"}"#;
    for (other, is_found) in
        [("<<<<<<< ours", true), ("", true), (r#"{"id":"2"}"#, true), ("{}", false), ("[]", false)]
    {
        let mut files = Files::single("1.json", task);
        files.insert("2.json", other);
        assert_eq!(detect(&files).is_some(), is_found, "{other}");
    }
    let mut files = Files::single("1.json", "no JSON");
    files.insert("2.json", "no JSON");
    assert_eq!(detect(&files), None);
}
