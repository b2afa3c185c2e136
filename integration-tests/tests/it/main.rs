//! Tests over whole processes.
