//! The tests of the converters: one program, which is built once and runs them beside each other.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;
mod perfetto_proto;
#[path = "../../../mete-trace/tests/common/written.rs"]
mod written;

mod any_bytes;
mod ctf;
mod names;
mod perfetto;
mod schedule;
mod table;
mod text_forms;
