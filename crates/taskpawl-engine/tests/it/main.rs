//! Tests of the engine through what it makes public.

mod random_plans;
