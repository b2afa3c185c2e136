//! The field `schedule` of a plan: the times at which a server runs it by itself.

use super::node::Node;
use super::reader::{Reader, Shape};
use super::{OverlapWord, PlanSchedule, Reaction};
use crate::value::Period;

pub(super) const SCHEDULE: Shape = Shape {
    what: "`schedule`",
    expected: "a cron expression such as `0 3 * * *`, or an object with `cron`",
    fields: &["cron", "timezone", "overlap", "expires", "onFailure", "onMissed"],
    required: &[("cron", "`cron`")],
};

/// The time zone of a schedule that names none.
const UTC: &str = "UTC";

/// The default of `expires`.
const EXPIRES: Period = Period(std::time::Duration::from_secs(12 * 3600));

impl<'n> Reader<'n> {
    pub(super) fn schedule(&mut self, node: &'n Node<'n>) -> Option<PlanSchedule> {
        let mut schedule = PlanSchedule {
            cron: String::new(),
            timezone: UTC.to_owned(),
            overlap: OverlapWord::Skip,
            expires: EXPIRES,
            on_failure: Reaction::Notify,
            on_missed: Reaction::Notify,
            at: node.at,
            zone_at: node.at,
        };
        if node.as_str().is_some() {
            schedule.cron = self.filled_text(node)?;
            return Some(schedule);
        }
        self.object(node, &SCHEDULE, |reader, key, value| match key {
            "cron" => {
                schedule.at = value.at;
                schedule.cron = reader.filled_text(value).unwrap_or_default();
            }
            "timezone" => {
                schedule.zone_at = value.at;
                schedule.timezone = reader.filled_text(value).unwrap_or_default();
            }
            "overlap" => {
                let word = reader.word(value, "overlap", OverlapWord::ALL, OverlapWord::from_word);
                schedule.overlap = word.unwrap_or(schedule.overlap);
            }
            "expires" => schedule.expires = reader.period(value).unwrap_or(schedule.expires),
            "onFailure" => schedule.on_failure = reader.reaction(value, "onFailure"),
            _ => schedule.on_missed = reader.reaction(value, "onMissed"),
        })?;
        Some(schedule)
    }

    fn reaction(&mut self, node: &'n Node<'n>, what: &'static str) -> Reaction {
        self.word(node, what, Reaction::ALL, Reaction::from_word).unwrap_or(Reaction::Notify)
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{expand_plan, parse_plan, plan_from_json};

    #[test]
    fn an_expression_alone_has_the_defaults() {
        let plan = parse_plan("schedule: 0 3 * * *\ntasks: []").unwrap();
        let short = plan.schedule.clone().unwrap();
        let text = serde_json::to_value(&short).unwrap();
        let expected = serde_json::json!({
            "cron": "0 3 * * *", "timezone": "UTC", "overlap": "skip", "expires": "12h", "onFailure": "notify",
            "onMissed": "notify",
        });
        assert_eq!(text, expected);
        assert_eq!((short.at.line, short.at.column), (1, 11));
        let again = plan_from_json(&expand_plan(&plan)).unwrap().schedule.unwrap();
        assert_eq!(serde_json::to_value(again).unwrap(), expected);
    }

    #[test]
    fn wrong_fields_are_refused_with_their_position() {
        let refused = |schedule: &str| {
            parse_plan(&format!("schedule: {schedule}\ntasks: []")).unwrap_err().to_string().trim().to_owned()
        };
        for (schedule, part) in [
            ("3", "expected a cron expression"),
            ("{timezone: UTC}", "`cron`"),
            ("{cron: 0 3 * * *, zone: UTC}", "zone"),
            ("{cron: 0 3 * * *, overlap: stop}", "stop"),
            ("{cron: 0 3 * * *, expires: 0s}", "longer than zero"),
            ("{cron: 0 3 * * *, onMissed: mail}", "mail"),
        ] {
            let text = refused(schedule);
            assert!(text.contains(part) && text.contains("schedule"), "{schedule}: {text}");
        }
    }
}
