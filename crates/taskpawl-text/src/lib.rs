//! Text for messages: suggestions for misspelt names, one-line texts, deceptive characters, durations, sizes and error chains; and names of programs that run others.
//!
//! Every crate that writes messages depends on this one, so that a misspelt word gets the same suggestion everywhere.

mod byte_size;
mod duration;
mod error_chain;
mod line;
mod programs;
mod suggest;
mod visible;

pub use byte_size::byte_size;
pub use duration::duration;
pub use error_chain::error_chain;
pub use line::{cut, head, plain_line, revealed_line, tail, without_sequences};
pub use programs::{RUN_BY_WORD, RUNNERS, SHELLS};
pub use suggest::{near, nearest, nearest_or_longer, only_nearest, word_hint};
pub use visible::{escaped, is_deceptive, is_hidden, revealed};
