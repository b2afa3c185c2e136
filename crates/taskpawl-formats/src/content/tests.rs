//! Edits of lists, and the items that are still the same.

use taskpawl_model::command::SourceRecord;
use taskpawl_model::value::Timestamp;

use super::*;
use crate::known::Known;
use crate::reading::Options;

/// Returns items from lines: a heading begins with `#`, an item of an item with a blank.
fn items(text: &str, has_number: bool) -> Vec<ContentItem> {
    let (mut items, mut heading, mut above): (Vec<ContentItem>, Vec<String>, String) =
        (Vec::new(), Vec::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            heading = vec![title.to_owned()];
            continue;
        }
        let mut under = heading.clone();
        match line.strip_prefix(' ') {
            Some(_) => under.push(above.clone()),
            None => line.clone_into(&mut above),
        }
        let text = line.trim().to_owned();
        items.push(ContentItem {
            text,
            under,
            headings: heading.len(),
            has_number,
            ..ContentItem::default()
        });
    }
    items
}

/// Returns the line that each item had before; `-` for a new one. Lines are counted without headings, from 1.
fn lines_before(before: &str, now: &str, has_number: bool) -> String {
    lines_of(&items(before, has_number), &items(now, has_number), |_, record| record)
}

fn lines_of(
    before: &[ContentItem],
    now: &[ContentItem],
    change: impl Fn(usize, SourceRecord) -> SourceRecord,
) -> String {
    let first = find(before, &mut Ids::new(&Options::at(Timestamp::default())));
    let records = first.records.into_iter().enumerate().map(|(place, record)| change(place, record));
    let known = Known::written(first.ids.iter().cloned().zip(records));
    let options = Options { known, ..Options::at(Timestamp::default()) };
    let now = find(now, &mut Ids::new(&options));
    let line = |id: &TaskId| first.ids.iter().position(|before| before == id).map(|place| place + 1);
    let lines = now.ids.iter().map(|id| line(id).map_or_else(|| "-".to_owned(), |line| line.to_string()));
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_numbered_section_between_others_moves_no_item() {
    let before = "# 1. Setup\n1.1 Write tests\n1.2 Write docs\n# 2. Login\n2.1 Write tests\n2.2 Write docs";
    let first = "# 1. Prepare\n1.1 Write tests\n1.2 Write docs\n# 2. Setup\n2.1 Write tests\n2.2 Write docs\n# 3. Login\n3.1 Write tests\n3.2 Write docs";
    assert_eq!(lines_before(before, first, true), "- - 1 2 3 4");
    let between = "# 1. Setup\n1.1 Write tests\n1.2 Write docs\n# 2. Between\n2.1 Write tests\n# 3. Login\n3.1 Write tests\n3.2 Write docs";
    assert_eq!(lines_before(before, between, true), "1 2 - 3 4");
    let removed = "# 1. Login\n1.1 Write tests\n1.2 Write docs";
    assert_eq!(lines_before(before, removed, true), "3 4");
    let swapped = "# 1. Login\n1.1 Write tests\n1.2 Write docs\n# 2. Setup\n2.1 Write tests\n2.2 Write docs";
    assert_eq!(lines_before(before, swapped, true), "3 4 1 2");
}

#[test]
fn numbers_of_headings_and_items_above_are_places() {
    let before = "# Phase 1: Setup\nWrite tests\n# Phase 2: Login\nWrite tests";
    let now = "# Phase 1: Prepare\nWrite tests\n# Phase 2: Setup\nWrite tests\n# Phase 3: Login\nWrite tests";
    for has_number in [false, true] {
        assert_eq!(lines_before(before, now, has_number), "- 1 2");
    }
    let before = "1. Setup\n 1.1 Write tests\n2. Login\n 2.1 Write tests";
    let now = "1. Prepare\n 1.1 Write tests\n2. Setup\n 2.1 Write tests\n3. Login\n 3.1 Write tests";
    assert_eq!(lines_before(before, now, true), "- - 1 2 3 4");
    // A number that is part of the text tells items apart only where they are not numbered.
    assert_eq!(lines_before("3 retries\n5 retries", "4 retries\n3 retries\n5 retries", false), "- 1 2");
}

#[test]
fn among_equals_the_neighbours_decide() {
    let before = "1.1 Build\n1.2 Write tests\n1.3 Deploy\n1.4 Write tests";
    let now = "1.1 Plan\n1.2 Write tests\n1.3 Build\n1.4 Write tests\n1.5 Deploy\n1.6 Write tests";
    assert_eq!(lines_before(before, now, true), "- - 1 2 3 4");
    let bare = |text: &str| text.lines().map(|line| &line[4..]).collect::<Vec<_>>().join("\n");
    assert_eq!(lines_before(&bare(before), &bare(now), false), "- - 1 2 3 4");
    let before = "Write tests\nBuild\nWrite tests\nDeploy";
    let now = "Write tests\nPlan\nWrite tests\nBuild\nWrite tests\nDeploy";
    assert_eq!(lines_before(before, now, false), "- - 1 2 3 4");
    assert_eq!(lines_before("Call\nCall", "Call\nCall\nCall", false), "1 2 -");
    // The heading before an item is new or renamed, and its other neighbours identify it.
    let before = "1. Set up\n1.1 Test\n2. Model\n2.1 Test\n3. API\n3.1 Test";
    let now = "1. New\n1.1 Test\n2. Set up\n2.1 Test\n3. Model\n3.1 Test\n4. API changed\n4.1 Test";
    assert_eq!(lines_before(before, now, true), "- - 1 2 3 4 5 6");
    assert_eq!(lines_before("A\nTest\nB\nTest", "X\nTest\nY\nTest\nZ\nTest", false), "- 2 - 4 - -");
}

#[test]
fn an_equal_text_elsewhere_is_only_the_same_if_nothing_else_can_be() {
    assert_eq!(lines_before("# A\nTest", "# B\nTest", false), "1");
    assert_eq!(lines_before("# A\nTest\n# B\nTest", "# C\nTest\n# D\nTest", false), "1 2");
    assert_eq!(lines_before("# A\nTest", "# C\nTest\n# D\nTest", false), "- -");
}

#[test]
fn a_text_that_was_removed_comes_back_where_it_was() {
    let gone = |_, record| SourceRecord { gone: true, ..record };
    let lines = |before: &str, now: &str| lines_of(&items(before, false), &items(now, false), gone);
    assert_eq!(lines("# A\nTest", "# A\nTest"), "1");
    assert_eq!(lines("# A\nTest", "# B\nTest"), "-");
    assert_eq!(lines("# A\nTest\nTest", "# A\nTest\nTest"), "1 2");
    assert_eq!(lines("# A\nTest\nTest", "# A\nTest"), "-");
}

#[test]
fn a_number_is_no_word_that_items_share() {
    assert_eq!(lines_before("1.1 A\n1.2 Pay\n1.3 B", "1.1 A\n1.2 Sleep\n1.3 B", true), "1 - 3");
    assert_eq!(lines_before("1.1 A\n1.2 Pay\n1.3 B", "1.1 A\n1.2 Pay twice\n1.3 B", true), "1 2 3");
}

#[test]
fn repeated_ids_stay_in_their_order() {
    let item = |id: &str, text: &str| ContentItem {
        id: Some(id.to_owned()),
        text: text.to_owned(),
        ..ContentItem::default()
    };
    let list = [item("T001", "a"), item("T001", "b"), item("T002", "c")];
    assert_eq!(lines_of(&list, &list, |_, record| record), "1 2 3");
}
