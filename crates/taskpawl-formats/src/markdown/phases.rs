//! The order of the items of spec-kit: phases follow one another.

use std::collections::BTreeMap;

use taskpawl_model::value::TaskId;

use super::dialect::Dialect;
use super::items::Item;
use crate::error::{FormatError, Position};
use crate::faults::Faults;

/// The most dependencies that the phases of a file give its items: two phases of thousands of items would need millions.
const MAX_DEPENDENCIES: usize = 1_000_000;

/// Returns the dependencies of the items of spec-kit: each waits for the one before it, and for all before it that run beside
/// each other. So phases follow one another, too.
pub(super) fn phases(
    file: &str,
    items: &[Item<'_>],
    ids: &[TaskId],
    faults: &mut Faults,
) -> BTreeMap<usize, Vec<TaskId>> {
    let mut needs = BTreeMap::new();
    let mut room = MAX_DEPENDENCIES;
    let (mut before, mut now): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut last: Option<usize> = None;
    for (place, item) in items.iter().enumerate().filter(|(_, item)| item.above.is_none()) {
        let is_same_phase = last.is_some_and(|last| items[last].headings == item.headings);
        let is_beside = last.is_some_and(|last| Dialect::is_beside(&items[last].tags))
            && Dialect::is_beside(&item.tags)
            && is_same_phase;
        if !is_beside {
            before = std::mem::take(&mut now);
        }
        now.push(place);
        last = Some(place);
        let Some(rest) = room.checked_sub(before.len()) else {
            faults.add_line(too_many(file, item, &ids[place], before.len()));
            continue;
        };
        room = rest;
        needs.insert(place, before.iter().map(|place| ids[*place].clone()).collect());
    }
    needs
}

fn too_many(file: &str, item: &Item<'_>, id: &TaskId, count: usize) -> FormatError {
    let line = u32::try_from(item.line + 1).ok();
    let place = Position { line, record: id.to_string(), ..Position::of(file) };
    let problem =
        format!("it would wait for {count} items, and a file has at most {MAX_DEPENDENCIES} dependencies");
    place.error("dependencies", problem, "put one item without `[P]` between the phases")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::items::items;

    fn needs_of(text: &str) -> (Vec<usize>, Faults) {
        let items = items(text, Dialect::SpecKit);
        let ids: Vec<TaskId> = (0..items.len()).map(|n| TaskId::new(format!("t{n}"))).collect();
        let mut faults = Faults::default();
        let needs = phases("tasks.md", &items, &ids, &mut faults);
        ((0..items.len()).map(|place| needs.get(&place).map_or(0, Vec::len)).collect(), faults)
    }

    #[test]
    fn items_beside_each_other_wait_for_those_before() {
        let (needs, _) =
            needs_of("## A\n- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n## B\n- [ ] T004 [P] d\n");
        assert_eq!(needs, [0, 1, 1, 2]);
    }

    #[test]
    fn phases_of_thousands_of_items_are_bounded() {
        let phase = "- [ ] [P] something\n".repeat(1_500);
        let (needs, faults) = needs_of(&format!("## A\n{phase}## B\n{phase}## C\n- [ ] T001 last\n"));
        assert!(needs.iter().sum::<usize>() <= MAX_DEPENDENCIES);
        let faults = faults.into_left_out(&crate::Files::single("tasks.md", String::new()));
        // 666 items wait for all 1,500; the last item still has room for its own.
        assert_eq!(faults.len(), 1_500 - 666 + 1);
        let why = "it would wait for 1500 items, and a file has at most 1000000 dependencies";
        assert_eq!((faults[0].line, faults[0].why.as_str()), (Some(2_169), why));
    }
}
