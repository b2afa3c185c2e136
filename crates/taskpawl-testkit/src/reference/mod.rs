//! A small second model of states, gates and graph rules, and random commands that both models must answer alike.
//!
//! It is written from the tables of states, triggers and commands. It keeps no counts: every question is answered by looking at
//! all tasks again, and what gates do is repeated until nothing changes any more. What a run finds out by itself (conditions,
//! items, rounds, retries, decisions, limits) is not in it: that is what [`interpret`](crate::interpret) is for.

mod authors;
mod draw;
mod items;
mod offers;
mod people;
mod play;
mod runs;

pub use items::Flaw;
pub use offers::{OfferFlaw, Offers, take_offers};
pub use play::{Difference, Tally, play};
