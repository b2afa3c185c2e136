//! A small second model of statuses, gates and graph rules. Both models receive the same random commands and must agree
//! on the results.
//!
//! It is written from the tables of statuses, triggers and commands. It keeps no counters: every question is answered
//! by inspecting all tasks again, and gates are applied until nothing changes any more. Everything that a run evaluates
//! itself (conditions, items, rounds, retries, approvals, limits) is missing here; [`interpret`](crate::interpret)
//! covers that.

mod authors;
mod draw;
mod items;
mod offers;
mod people;
mod play;
mod previews;
mod runs;

pub use items::Flaw;
pub use offers::{OfferFlaw, Offers, take_offers};
pub use play::{Difference, Tally, play};
pub use previews::take_previews;
