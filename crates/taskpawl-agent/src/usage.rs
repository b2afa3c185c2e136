//! Consumption that agents report.

use serde_json::{Map, Value, json};

/// Adds up the consumption of one session.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "each is about costs, and of another extent")]
pub(crate) struct Usage {
    /// The cost of the whole session, as the agent reported it last.
    pub(crate) session_cost: f64,
    /// The cost of this call so far, over all of its starts.
    pub(crate) call_cost: f64,
    /// True if the agent has reported a cost.
    pub(crate) has_cost: bool,
}

impl Usage {
    /// Takes the `usage_update` of a session. Returns the cost since the last one. Costs of an agent add up over a session, and a
    /// session may be older than the call.
    pub(crate) fn take_update(&mut self, update: &Value, is_replay: bool) -> Option<Value> {
        let cost =
            update.pointer("/cost/amount")?.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0)?;
        let more = (cost - self.session_cost).max(0.0);
        self.session_cost = self.session_cost.max(cost);
        self.has_cost = true;
        if is_replay || more == 0.0 {
            return None;
        }
        self.call_cost += more;
        Some(json!({"cost": more}))
    }
}

/// Returns the tokens in the end of a turn.
pub(crate) fn tokens_of_turn(response: &Value) -> Option<Value> {
    let usage = response.get("usage")?;
    let fields = [
        ("inputTokens", "inputTokens"),
        ("outputTokens", "outputTokens"),
        ("totalTokens", "tokens"),
        ("cachedReadTokens", "cachedReadTokens"),
        ("cachedWriteTokens", "cachedWriteTokens"),
        ("thoughtTokens", "thoughtTokens"),
    ];
    let known = fields.iter().filter_map(|(theirs, ours)| {
        let count = usage.get(theirs)?.as_u64()?;
        Some(((*ours).to_owned(), Value::from(count)))
    });
    let known: Map<String, Value> = known.collect();
    (!known.is_empty()).then_some(Value::Object(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_session_are_counted_once() {
        let mut usage = Usage::default();
        let cost = |amount: f64| json!({"used": 1, "size": 2, "cost": {"amount": amount, "currency": "USD"}});
        assert_eq!(usage.take_update(&cost(0.5), true), None);
        assert_eq!(usage.take_update(&cost(0.75), false), Some(json!({"cost": 0.25})));
        assert_eq!(usage.take_update(&cost(0.75), false), None);
        // A smaller amount, and one that is no number, take nothing back.
        assert_eq!(usage.take_update(&cost(0.1), false), None);
        assert_eq!(usage.take_update(&json!({"cost": {"amount": -1}}), false), None);
        assert!((usage.call_cost - 0.25).abs() < 1e-9);
    }

    #[test]
    fn tokens_are_those_of_the_turn() {
        let response = json!({"usage": {"totalTokens": 5, "inputTokens": 2, "outputTokens": 3, "other": 1}});
        let tokens = json!({"tokens": 5, "inputTokens": 2, "outputTokens": 3});
        assert_eq!(tokens_of_turn(&response), Some(tokens));
        assert_eq!(tokens_of_turn(&json!({"usage": {"totalTokens": "many"}})), None);
        assert_eq!(tokens_of_turn(&json!({})), None);
    }
}
