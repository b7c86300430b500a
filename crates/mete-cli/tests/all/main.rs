//! The tests of the command: one program, which is built once and runs them beside each other.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

mod descriptors;
mod failures;
mod flight;
mod full_disk;
mod help;
mod lab;
mod left_behind;
mod log;
mod log_phases;
mod outputs;
mod parameters;
mod plots;
mod readme;
mod record;
mod record_probes;
mod replay;
mod same_everywhere;
mod schedule;
mod schema;
mod sim;
mod sim_runs;
mod stopped;
mod study;
mod surroundings;
mod trace;
mod width;
