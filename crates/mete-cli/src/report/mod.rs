//! What was logged in an interval, as tables and as JSON.

mod json;
pub mod tables;

pub use mete_sched::interval::{Interval, Logged, Queues, is_idle, service_ns};
pub use mete_sched::other_programs::Program;
