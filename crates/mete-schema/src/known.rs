//! Values that every point has in addition to its own arguments.

use crate::counter;
use crate::limits::MAX_COUNTERS;
use crate::types::Int;

/// A value that is known wherever something is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KnownValue {
    /// The processor.
    Cpu,
    /// The kernel's number of the running thread.
    Pid,
    /// The kernel's number of the running process.
    Tgid,
    /// The name of the running thread.
    Comm,
    /// The time stamp of the event.
    Time,
    /// The accounting domain of the running thread.
    Domain,
    /// The kernel's structure of the running thread.
    Current,
    /// A virtual counter.
    Counter(u8),
}

/// All known values but the counters: name, value and description.
pub const KNOWN: [(&str, KnownValue, &str); 7] = [
    ("cpu", KnownValue::Cpu, "the processor, `u32`"),
    ("pid", KnownValue::Pid, "the running thread, as the kernel numbers it, `int`"),
    ("tgid", KnownValue::Tgid, "the running process, `int`"),
    ("comm", KnownValue::Comm, "the name of the running thread, `char[16]`"),
    ("time", KnownValue::Time, "the time stamp of the event, `u64`"),
    ("domain", KnownValue::Domain, "the accounting domain of the running thread, `u16`"),
    ("current", KnownValue::Current, "the running thread, a `task_struct` of the kernel"),
];

/// The word before the dot that means a known value, even where the point has an argument of the same name: `here.pid`.
pub const HERE: &str = "here";
/// The word before the dot that means an argument: `args.pid`.
pub const ARGS: &str = "args";

impl KnownValue {
    /// The value of this name.
    pub fn by_name(name: &str) -> Option<KnownValue> {
        if let Some((_, known, _)) = KNOWN.iter().find(|(known, ..)| *known == name) {
            return Some(*known);
        }
        let number = counter::number(name).filter(|number| *number < MAX_COUNTERS)?;
        Some(KnownValue::Counter(number as u8))
    }

    /// Its type, if it is a number.
    pub fn int(self) -> Option<Int> {
        match self {
            KnownValue::Cpu => Some(Int::unsigned(32)),
            KnownValue::Pid | KnownValue::Tgid => Some(Int::signed(32)),
            KnownValue::Time | KnownValue::Counter(_) => Some(Int::unsigned(64)),
            KnownValue::Domain => Some(Int::unsigned(16)),
            KnownValue::Comm | KnownValue::Current => None,
        }
    }
}
