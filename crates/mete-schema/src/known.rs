//! Values that every point has in addition to its own arguments.

use crate::counter;
use crate::limits::MAX_COUNTERS;
use crate::types::Int;

/// A value that is known wherever something is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KnownValue {
    /// The processor, `u32`.
    Cpu,
    /// The kernel's number of the running thread, `int`.
    Pid,
    /// The kernel's number of the running process, `int`.
    Tgid,
    /// The name of the running thread, `char[16]`.
    Comm,
    /// The time stamp of the event, `u64`.
    Time,
    /// The accounting domain of the running thread, `u16`.
    Domain,
    /// The kernel's `task_struct` of the running thread.
    Current,
    /// A virtual counter.
    Counter(u8),
}

/// All known values but the counters, by name.
pub const KNOWN: [(&str, KnownValue); 7] = [
    ("cpu", KnownValue::Cpu),
    ("pid", KnownValue::Pid),
    ("tgid", KnownValue::Tgid),
    ("comm", KnownValue::Comm),
    ("time", KnownValue::Time),
    ("domain", KnownValue::Domain),
    ("current", KnownValue::Current),
];

/// The word before the dot that means a known value, even where the point has an argument of the same name:
/// `here.pid`.
pub const HERE: &str = "here";
/// The word before the dot that means an argument: `args.pid`.
pub const ARGS: &str = "args";

impl KnownValue {
    /// The value of this name.
    pub fn by_name(name: &str) -> Option<KnownValue> {
        if let Some((_, known)) = KNOWN.iter().find(|(known, _)| *known == name) {
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
