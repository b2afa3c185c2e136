//! What programs that embed taskpawl rely on.

mod facade;
mod runs;
mod sizes;
mod support;
