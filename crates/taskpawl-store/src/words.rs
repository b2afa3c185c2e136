//! Stable numeric codes of model enums in a database, and case-insensitive text search.

use taskpawl_model::task::{ActorKind, Entry, GateState, Priority, StatusKind, Trigger, Work};

/// The numeric code of an enum value. The codes are written out because they must never change in existing
/// files.
pub(crate) trait Code: Copy + 'static {
    const VALUES: &'static [Self];

    fn code(self) -> i64;

    fn from_code(code: i64) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.code() == code)
    }
}

macro_rules! codes {
    ($name:ident { $($variant:ident = $code:literal),+ $(,)? }) => {
        impl Code for $name {
            const VALUES: &'static [Self] = Self::ALL;

            fn code(self) -> i64 {
                match self { $(Self::$variant => $code),+ }
            }
        }
    };
}

codes! { StatusKind {
    Todo = 0, InProgress = 1, BlockedDependency = 2, BlockedWaiting = 3, BlockedOther = 4, Done = 5, Failed = 6,
    Cancelled = 7, Skipped = 8,
} }
codes! { GateState { Wait = 0, Ready = 1, Block = 2, Skip = 3 } }
codes! { Work { Calls = 0, Manual = 1, Automatic = 2 } }
codes! { Entry { Open = 0, Waiting = 1, Shut = 2 } }
codes! { Trigger { AllDone = 0, AnyDone = 1, AllFinished = 2, AnyFailed = 3 } }
codes! { ActorKind { Unknown = 0, Person = 1, Agent = 2, Run = 3, Program = 4 } }
codes! { Priority { Critical = 0, High = 1, Medium = 2, Low = 3 } }
