//! `tasks.json` of Task Master: lists of tasks by tag. Each task may have one level of subtasks.

mod raw;
mod spots;
mod tags;
mod words;
mod write;

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Task};
use taskpawl_model::value::{Map, format_time};

use crate::error::Position;
use crate::existing_document::text_of;
use crate::faults::Faults;
use crate::files::Files;
use crate::ids::Ids;
use crate::items::{self, Items};
use crate::links;
use crate::own_fields::OwnFields;
use crate::preserved::{add_away, keep, keep_away, keep_if_other, keep_word};
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, set_option, whole};
use crate::states;
use crate::times::rfc3339;

pub(crate) use words::{MASTER, in_tag};
pub(crate) use write::write;

use raw::number_of_link;
use tags::{can_be_kept, tags};
use words::{FIELDS, FORMAT, OF_TAG, WORDS, key, qualified, whole_below, word_of};

pub(crate) fn is_one(text: &str) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str(text) else { return false };
    let is_tag = |value: &Value| value.get("tasks").is_some_and(Value::is_array);
    let is_plain = map.get("tasks").and_then(Value::as_array).is_some_and(|tasks| {
        tasks.first().is_some_and(|task| task.get("title").is_some() && task.get("id").is_some())
    });
    is_plain || (!map.is_empty() && !map.contains_key("tasks") && map.values().all(is_tag))
}

/// The parts of a record that only Task Master has.
#[derive(Clone)]
struct Inside {
    tag: String,
    /// The number of the parent task.
    above: Option<String>,
    /// The tag's own fields, stored with its first task only.
    of_tag: Map,
}

type Item = items::Item<Inside>;

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let (file, text) = files.first();
    let mut place = Position::of(file);
    let value = whole(text, &mut place)?;
    let tags = tags(value, &place, faults)?;
    let mut items = Items::new(options, faults);
    for (tag, records, of_tag) in tags {
        let first = items.list.len();
        let mut adding = Adding { tag: &tag, items: &mut items };
        for (place, record) in records {
            adding.add_with_subtasks(&place, record);
        }
        // The fields of a tag are stored with its first task, because a task is the only place for them here.
        let why = match items.list.get_mut(first) {
            Some(item) if can_be_kept(&of_tag) => {
                item.more.of_tag = of_tag;
                continue;
            }
            Some(_) => "it is nested too deeply",
            None if of_tag.is_empty() => continue,
            None => "it has no tasks",
        };
        let why = format!("{why}; an export into this file leaves it there");
        items.left_out.push(LeftOut::new(format!("tag {tag}"), why));
    }
    let mut reading = items.resolve(FIELDS, Some(("updatedAt", rfc3339)), |item, ids, reading| {
        task(item, ids, options, &mut reading.left_out)
    });
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "dependencies", json!(on)));
    Ok(reading)
}

/// The records of one tag, as they are added.
struct Adding<'i, 'a> {
    tag: &'i str,
    items: &'i mut Items<'a, Inside>,
}

impl Adding<'_, '_> {
    /// Adds a task with its subtasks, without those that are faulty.
    fn add_with_subtasks(&mut self, place: &Position, record: Read<Record>) {
        let mut seen = None;
        let top = record.and_then(|mut record| {
            let number = record.id("id")?;
            seen = Some(key(self.tag, &number));
            let subtasks = record.elements("subtasks")?;
            record.check(&["subtasks"])?;
            Ok((self.add(record, number.clone(), None), number, subtasks))
        });
        let (number, subtasks) = match top {
            Ok((true, number, subtasks)) => (number, subtasks),
            Ok((false, ..)) => return,
            Err(error) => {
                self.items.faults.add(error, place);
                return seen.into_iter().for_each(|key| self.items.occupy(&key, place));
            }
        };
        for (place, subtask) in subtasks {
            if let Err(error) = subtask.and_then(|subtask| self.add_subtask(subtask, &number)) {
                self.items.faults.add(error, &place);
            }
        }
    }

    fn add_subtask(&mut self, mut record: Record, number: &str) -> Read<()> {
        let below = record.id("id")?;
        let name = whole_below(number, &below);
        record.name(&name);
        if let Err(error) = record.check(&[]) {
            self.items.occupy(&key(self.tag, &name), &record.place);
            return Err(error);
        }
        // Task Master has one level of subtasks. Deeper ones stay in the file as they are.
        let deeper = record.map.get("subtasks").and_then(Value::as_array);
        for (place, deeper) in deeper.into_iter().flatten().enumerate() {
            let below = deeper.get("id").map_or_else(|| format!("#{}", place + 1), text_of);
            let why = "it is a subtask of a subtask; an export into this file leaves it there";
            self.items.left_out.push(LeftOut::new(format!("{name}.{below}"), why));
        }
        self.add(record, name, Some(number.to_owned()));
        Ok(())
    }

    /// Adds a record. Returns false if an earlier one has its number.
    fn add(&mut self, mut record: Record, name: String, above: Option<String>) -> bool {
        let own_fields = OwnFields::take(&mut record.map);
        let key = key(self.tag, &name);
        let base = qualified(self.tag, &name);
        let id = self.items.assign(&record, &key, (&base, own_fields.id.as_deref()), |record| {
            let problem = format!("number `{name}` occurs twice in the tag `{}`", self.tag);
            record.place.error("id", problem, "give one of the two another number")
        });
        let Some(id) = id else { return false };
        let own_fields = own_fields.settle(&id);
        let more = Inside { tag: self.tag.to_owned(), above, of_tag: Map::new() };
        self.items.list.push(Item { record, name, key, id, own_fields, more });
        true
    }
}

fn task(mut item: Item, ids: &Ids<'_>, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    let (mut task, mut kept) = item.begin("title", "id", options.now)?;
    let Item { mut record, own_fields, name, more: Inside { tag, above, of_tag }, .. } = item;
    keep_if_other(&mut kept, "tag", json!(tag), &json!(MASTER));
    task.description = record.text("description")?.unwrap_or_default();
    if let Some(assignee) = record.text("assignee")? {
        set_option(&mut task, "assignee", assignee);
    }
    if let Some((at, text)) = record.time("updatedAt", rfc3339)? {
        task.updated_at = at;
        keep_if_other(&mut kept, "updatedAt", json!(text), &json!(format_time(at)));
    } else {
        kept.insert("updatedAt".to_owned(), Value::Null);
    }
    // The creation time is that of the import, which may be later than the last change in the file.
    if task.updated_at < task.created_at {
        task.created_at = task.updated_at;
    }
    read_words(&mut record, &mut task, &own_fields, above.is_some(), &mut kept)?;
    let numbers = record.map.get("dependencies").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut away = Vec::new();
    for (on, value) in record.texts("dependencies")?.into_iter().zip(numbers) {
        let leads_to =
            number_of_link(&value, &name, above.as_deref(), |number| ids.get(&key(&tag, number)).is_some());
        if let Some(on) = ids.get(&key(&tag, &leads_to)).filter(|on| **on != task.id) {
            task.dependencies.push(on.clone());
        } else {
            left_out
                .push(LeftOut::new(format!("{name}: dependencies"), format!("`{on}` is not in the file")));
            away.push(value);
        }
    }
    keep_away(&mut kept, "dependencies", away);
    task.parent = match above {
        None => None,
        Some(above) => Some(ids.get(&key(&tag, &above)).cloned().ok_or_else(|| {
            record.place.error("", format!("the task `{above}` above it cannot be read"), "correct that one")
        })?),
    };
    // Both repeat the number of the parent, which the position of the subtask already gives.
    record.map.remove("parentTaskId");
    record.map.remove("parentId");
    for text in ["details", "testStrategy"] {
        if record.map.get(text).and_then(Value::as_str) == Some("") {
            record.map.remove(text);
        }
    }
    kept.extend(record.map);
    if !of_tag.is_empty() {
        kept.insert(OF_TAG.to_owned(), Value::Object(of_tag));
    }
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn read_words(
    record: &mut Record,
    task: &mut Task,
    own_fields: &OwnFields,
    is_below: bool,
    kept: &mut Map,
) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let plain = word.to_lowercase();
    let Some((_, status)) = WORDS.iter().find(|(theirs, _)| *theirs == plain) else {
        let all: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        return Err(record.wrong("status", &format!("one of {}", all.join(", ")), &json!(word)));
    };
    let status = own_fields.status.filter(|own| word_of(*own) == plain).unwrap_or(*status);
    let why = (plain == "deferred").then_some("`deferred` in Task Master");
    states::set(task, status, why);
    keep_word(kept, "status", &word, word_of(status), status);
    if let Some(word) = record.text("priority")? {
        let Some(priority) = Priority::from_word(&word.to_lowercase()) else {
            return Err(record.wrong("priority", "one of critical, high, medium, low", &json!(word)));
        };
        task.priority = priority;
        // Exports omit the default priority of subtasks and write lower case, so other words must be preserved.
        if (priority == Priority::Medium && is_below) || Priority::from_word(&word).is_none() {
            kept.insert("priority".to_owned(), json!(word));
        }
    }
    Ok(())
}
