//! The question which of the refused access to remember. Nothing is preselected, and there is no word for all of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};

use taskpawl::tools::NamedGrant;

use super::asked::{Asked, TriedAddress};
use crate::shown::Shown;
use crate::text::clean;

/// The most entries that a program alone has asked for.
const MAX_ALONE: usize = 20;

/// The most names in a list of tasks or programs.
const MAX_NAMES: usize = 5;

/// Returns the refused access as text: numbered if the project names it, without numbers if a program alone has asked for it.
pub(super) fn text(named: &[Asked], alone: &[Asked]) -> Shown {
    let mut text = Shown::new();
    if !named.is_empty() {
        text.push("named in the project:\n");
    }
    for (number, asked) in named.iter().enumerate() {
        let place = asked.place.as_deref().unwrap_or_default();
        text.push(format!("{:3}  {}  in {}; {}\n", number + 1, shown(&asked.grant), clean(place), by(asked)));
    }
    if !alone.is_empty() {
        text.push("asked for by a program alone:\n");
    }
    for asked in alone.iter().take(MAX_ALONE) {
        text.push(format!("     {}  {}\n", shown(&asked.grant), by(asked)));
    }
    let more = alone.len().saturating_sub(MAX_ALONE);
    if more > 0 {
        text.push(format!("     and {more} more, in `sandbox.refused` of the results\n"));
    }
    text
}

/// Returns the literal addresses that programs tried, as text.
pub(super) fn addresses_text(addresses: &[TriedAddress]) -> Shown {
    let mut text = Shown::new();
    if !addresses.is_empty() {
        text.push("literal addresses, which no grant opens (hosts are granted by name):\n");
    }
    for tried in addresses.iter().take(MAX_ALONE) {
        let tasks = list(&tried.tasks.iter().map(ToString::to_string).collect::<Vec<_>>());
        text.push(format!("     {}  task {tasks}, {}\n", clean(&tried.address), calls(tried.calls)));
    }
    text
}

fn list(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{}`", clean(name))).collect();
    shown.join(", ") + if names.len() > MAX_NAMES { " …" } else { "" }
}

fn calls(count: usize) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// Returns a grant for people; names in other scripts are shown in both forms.
pub(super) fn shown(grant: &NamedGrant) -> String {
    let text = clean(&grant.to_string());
    match grant {
        NamedGrant::Host(host) => match unicode(host.name()) {
            Some(unicode) => format!("{text} ({})", clean(&unicode)),
            None => text,
        },
        NamedGrant::Off
        | NamedGrant::Net
        | NamedGrant::Port(_)
        | NamedGrant::Read(_)
        | NamedGrant::Write(_)
        | NamedGrant::Socket(_)
        | NamedGrant::Env(_)
        | _ => text,
    }
}

/// Returns a name with its punycode labels decoded; `None` without such a label.
fn unicode(name: &str) -> Option<String> {
    let decoded = |label: &str| match label.strip_prefix("xn--") {
        Some(code) => punycode::decode(code).unwrap_or_else(|()| label.to_owned()),
        None => label.to_owned(),
    };
    let text = name.split('.').map(decoded).collect::<Vec<_>>().join(".");
    (text != name).then_some(text)
}

fn by(asked: &Asked) -> String {
    let tasks = list(&asked.tasks.iter().map(ToString::to_string).collect::<Vec<_>>());
    let programs = list(&asked.programs.iter().cloned().collect::<Vec<_>>());
    format!("task {tasks}, program {programs}, {}", calls(asked.calls))
}

/// Asks which access to remember. The numbers stand for what the project names; everything else is typed out.
pub(super) fn chosen(named: &[Asked], alone: &[Asked]) -> Vec<NamedGrant> {
    let mut grants = Vec::new();
    if !named.is_empty() {
        let question = "Numbers to remember, such as `1 3`; Enter for none: ".to_owned().into();
        grants.extend(by_number(named, &answer(&question).unwrap_or_default()));
    }
    if !alone.is_empty() {
        let question = "Type the names to remember, separated by spaces; Enter for none: ".to_owned().into();
        grants.extend(by_name(&alone[..alone.len().min(MAX_ALONE)], &answer(&question).unwrap_or_default()));
    }
    grants
}

fn by_number(named: &[Asked], answer: &str) -> Vec<NamedGrant> {
    let numbers = answer.split([' ', ',']).filter_map(|word| word.parse::<usize>().ok());
    numbers.filter_map(|number| Some(named.get(number.checked_sub(1)?)?.grant.clone())).collect()
}

fn by_name(alone: &[Asked], answer: &str) -> Vec<NamedGrant> {
    let is_typed = |grant: &NamedGrant, word: &str| {
        let text = grant.to_string();
        text == word || text.split_once(':').is_some_and(|(_, name)| name == word)
    };
    let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
    words
        .filter_map(|word| Some(alone.iter().find(|asked| is_typed(&asked.grant, word))?.grant.clone()))
        .collect()
}

/// Asks on the controlling terminal, even if the standard streams are redirected; `None` without an answer.
pub(super) fn answer(question: &Shown) -> Option<String> {
    let mut terminal = fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    terminal.write_all(question.as_str().as_bytes()).ok()?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use taskpawl::model::value::TaskId;

    use super::*;

    fn asked(grant: &str, place: Option<&str>) -> Asked {
        Asked {
            grant: grant.parse().unwrap(),
            tasks: [TaskId::new("install")].into(),
            programs: ["npm".to_owned()].into(),
            calls: 2,
            plans: ["p".to_owned()].into(),
            place: place.map(str::to_owned),
        }
    }

    #[test]
    fn what_the_project_names_has_a_number_and_all_else_is_typed_out() {
        let named = [asked("host:packages.example.org", Some("package-lock.json line 3"))];
        let alone = [asked("host:xn--pypal-4ve.example", None), asked("port:5432", None)];
        let shown = text(&named, &alone).as_str().replace('\u{430}', "(Cyrillic a)");
        insta::assert_snapshot!(shown, @"
        named in the project:
          1  host:packages.example.org  in package-lock.json line 3; task `install`, program `npm`, 2 calls
        asked for by a program alone:
             host:xn--pypal-4ve.example (p(Cyrillic a)ypal.example)  task `install`, program `npm`, 2 calls
             port:5432  task `install`, program `npm`, 2 calls
        ");
        let texts =
            |grants: Vec<NamedGrant>| grants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(texts(by_number(&named, "1, 2 all *")), "host:packages.example.org");
        assert_eq!(texts(by_name(&alone, "1 all * 5432")), "port:5432");
        assert_eq!(texts(by_name(&alone, "xn--pypal-4ve.example")), "host:xn--pypal-4ve.example");
    }
}
