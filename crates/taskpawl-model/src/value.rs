//! Values of fields: ids, keys, texts, periods, sizes, paths, selectors and secrets.

pub mod bounded;
pub(crate) mod byte_size;
pub(crate) mod id;
pub(crate) mod key_map;
pub mod paths;
pub(crate) mod period;
pub(crate) mod secret;
pub(crate) mod selector;
pub(crate) mod shared;
pub mod shell;
pub(crate) mod time_text;
pub(crate) mod usage;

pub use byte_size::{ByteSize, ByteSizeError};
pub use id::{CallId, IdError, Key, MAX_ID_BYTES, RunId, TaskId, check_id, id_from_name};
pub use indexmap::IndexMap;
pub use key_map::KeyMap;
pub use period::{Period, PeriodError};
pub use secret::{
    SecretFault, SecretPiece, is_secret_name, mentions_secret, secret_names, secret_pieces, used_variables,
    variable_names, variable_of_reference,
};
pub use selector::Selector;
pub use shared::{Shared, SharedText};
pub use taskpawl_text::{escaped, is_deceptive, revealed};
pub use time_text::{Timestamp, format_time};
pub use usage::{add_usage, cost};

/// A JSON object.
pub type Map = serde_json::Map<String, serde_json::Value>;
