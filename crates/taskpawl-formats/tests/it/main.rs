//! Every format against samples of the programs themselves, against itself, and against hostile input.

mod detection;
mod errors;
mod fuzz;
mod property;
mod samples;
mod support;
mod table;
mod tools;
