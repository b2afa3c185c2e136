//! Tests of the model through what it makes public.

mod plan;
mod schedule;
mod tables;
