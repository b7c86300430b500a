//! How large the parts of a schema may be. Without these limits, a schema could hang the parser, overflow its
//! stack, or ask for records that fit into no buffer.

/// Bytes of one schema file.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Files of one schema.
pub const MAX_FILES: usize = 64;
/// Letters of a name. The kernel's own limit for symbols is far larger than the names that people write.
pub const MAX_NAME_LETTERS: usize = 64;
/// Parts of one expression: names, numbers, operators and pairs of parentheses. Because of this limit, code
/// that walks an expression may recurse.
pub const MAX_EXPRESSION_PARTS: usize = 256;
/// Events of one schema, over all its files.
pub const MAX_EVENTS: usize = 1024;
/// Fields of one event.
pub const MAX_FIELDS: usize = 64;
/// Bytes of one record, its header included. BPF programs may build a record on their stack, which has 512
/// bytes.
pub const MAX_RECORD_BYTES: usize = 256;
/// Virtual counters. The switch programs of the kernel component keep the same number.
pub const MAX_COUNTERS: u64 = 16;
/// Instrumentation points of one schema.
pub const MAX_POINTS: usize = 1024;
/// Events that one point logs.
pub const MAX_LOGS_OF_A_POINT: usize = 64;
/// Events that all points of one place log together. One program logs them all, and jumps over those whose
/// conditions do not hold.
pub const MAX_LOGS_OF_A_PLACE: usize = 256;
/// Letters of a probe point's name. Programs have no room for more where they publish the name.
pub const MAX_PROBE_LETTERS: usize = 64;
/// Problems that are reported of one schema. An author with more mistakes begins with these.
pub const MAX_PROBLEMS: usize = 32;
