use serde::{Deserialize, Serialize};

use crate::task::spec::word_enum;

word_enum! {
    /// The source of a duration.
    DurationSource {
        /// The duration of the last success.
        Took = "took",
        /// The estimate of the author.
        Estimate = "estimate",
        /// The median of the known durations.
        Median = "median",
        /// No duration is known; all tasks count the same.
        Unknown = "unknown",
        /// The task ends by itself and takes no time.
        None = "none",
    }
}
