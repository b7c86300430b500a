//! How large anything may be. Without these, a schema could hang the parser, overflow its stack, or ask
//! for records that no buffer takes.

/// Bytes of one schema file.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Files of one schema.
pub const MAX_FILES: usize = 64;
/// Letters of a name: the kernel's own limit for symbols is far beyond what people write.
pub const MAX_NAME_LETTERS: usize = 64;
/// Parts of one expression: names, numbers, operators and pairs of parentheses. Whatever walks an
/// expression may therefore recurse.
pub const MAX_EXPRESSION_PARTS: usize = 256;
/// Events of one schema, over all its files.
pub const MAX_EVENTS: usize = 1024;
/// Fields of one event.
pub const MAX_FIELDS: usize = 64;
/// Bytes of one record, its header included: BPF programs build it on a stack of 512.
pub const MAX_RECORD_BYTES: usize = 256;
/// Virtual counters: as many as the switch programs of the kernel component keep.
pub const MAX_COUNTERS: u64 = 16;
/// Instrumentation points of one schema.
pub const MAX_POINTS: usize = 1024;
/// Events that one point logs.
pub const MAX_LOGS_OF_A_POINT: usize = 64;
/// Events that all points of one place log: one program does that, and jumps over what is not to be logged.
pub const MAX_LOGS_OF_A_PLACE: usize = 256;
/// Letters of a probe point's name: programs have room for no more where they publish it.
pub const MAX_PROBE_LETTERS: usize = 64;
/// Problems that are told of one schema; whoever has more begins with these.
pub const MAX_PROBLEMS: usize = 32;
