//! A small kernel, and functions by which all tests read schemata.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may end so")]

pub mod fake;

use fake::Fake;
use mete_schema::kernel::Type;
use mete_schema::types::Int;
use mete_schema::{Checked, Problems, Schema, Source, check};

/// A kernel with a part of Linux's scheduler, locks and files.
pub fn kernel() -> Fake {
    let mut kernel = Fake::default();
    let letter = kernel.add(Type::Int(Int::signed(8)));
    let byte = kernel.add(Type::Int(Int::unsigned(8)));
    let entity = [("sum_exec_runtime", Type::Int(Int::unsigned(64))), ("vlag", Type::Int(Int::signed(64)))];
    let entity = kernel.add_structure("sched_entity", &entity);
    let members = [
        ("pid", Type::Int(Int::signed(32))),
        ("tgid", Type::Int(Int::signed(32))),
        ("prio", Type::Int(Int::signed(32))),
        ("flags", Type::Int(Int::unsigned(32))),
        ("comm", Type::Text(16)),
        ("se", Type::Record(entity)),
        ("in_execve", Type::Int(Int::unsigned(1))),
        ("policy_bits", Type::Int(Int::unsigned(3))),
        ("mm", Type::Pointer(None)),
        ("name", Type::Pointer(Some(letter))),
        ("load", Type::Other("a floating-point number")),
        ("cpus", Type::Array(byte, 4)),
    ];
    let task = Type::Pointer(Some(kernel.add_structure("task_struct", &members)));
    let truth = Type::Truth;
    let arguments = [
        ("preempt", truth),
        ("prev", task.clone()),
        ("next", task.clone()),
        ("prev_state", Type::Int(Int::unsigned(32))),
    ];
    kernel.add_tracepoint("sched_switch", &arguments);
    kernel.add_tracepoint("sched_wakeup", &[("p", task.clone())]);
    kernel.add_tracepoint(
        "cpu_idle",
        &[("cpu", Type::Int(Int::unsigned(32))), ("pid", Type::Int(Int::signed(32)))],
    );
    kernel.add_tracepoint(
        "contention_begin",
        &[("lock", Type::Pointer(None)), ("flags", Type::Int(Int::unsigned(32)))],
    );
    kernel.add_record("sched:sched_wakeup", &[("pid", Type::Int(Int::signed(32))), ("comm", Type::Text(16))]);
    kernel.add_function("vfs_read", &[("count", Type::Int(Int::unsigned(64)))], Type::Int(Int::signed(64)));
    kernel
}

/// Reads and checks one file.
pub fn read(text: &str) -> Result<(Schema, Checked), (Vec<Source>, Problems)> {
    let sources = vec![Source::new("test.mete", text)];
    let checked = Schema::read(&sources)
        .and_then(|schema| check(&schema, Some(&kernel())).map(|checked| (schema, checked)));
    checked.map_err(|problems| (sources, problems))
}

/// The message about a schema with mistakes; empty if it has none.
pub fn refusal(text: &str) -> String {
    read(text).err().map(|(sources, problems)| problems.render(&sources, false)).unwrap_or_default()
}
