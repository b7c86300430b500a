//! What was changed, and how to put it back. The scheduler and its watchers have the same ledger: the
//! watchers build theirs from the [`Record`]s that the scheduler writes before each change.

/// One change that is about to be made.
pub(super) trait Record: Sized {
    /// How long one is in a journal.
    const BYTES: usize;

    fn to_bytes(&self) -> Vec<u8>;

    /// From as many bytes as a record has.
    fn from_bytes(bytes: &[u8]) -> Self;
}

/// All changes of one kind.
pub(super) trait Ledger: Default {
    type Record: Record;

    /// The first bytes of a journal of this kind, which say the form of its records, too.
    const MAGIC: [u8; 8];
    /// The extension of the names of its journals.
    const EXTENSION: &'static str;

    fn note(&mut self, record: Self::Record);

    /// Whether a record would change nothing in the ledger.
    fn has(&self, record: &Self::Record) -> bool;

    /// The records from which this ledger can be built again.
    fn records(&self) -> impl Iterator<Item = Self::Record>;

    /// Forgets what has ended and needs no putting back.
    fn forget_ended(&mut self);

    /// Puts everything back.
    fn restore(&self) -> Restored;
}

/// How putting back went, in numbers of what was changed: threads, or control groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Restored {
    /// Those that are as they were before.
    pub restored: usize,
    /// Those that have ended meanwhile.
    pub ended: usize,
    /// Those that another program has changed meanwhile. They stay so.
    pub left_alone: usize,
    /// Those that the kernel refused to change.
    pub failed: usize,
    /// Those that this process had no means to look at. They are left to its watchers, or to the next start
    /// of the program.
    pub left: usize,
}

impl std::fmt::Display for Restored {
    /// For people: how many of each, but for what there is none of.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Restored { restored, ended, left_alone, failed, left } = *self;
        let parts = [
            (restored, "put back"),
            (ended, "of what had ended"),
            (left_alone, "left alone because another program changed them meanwhile"),
            (failed, "failed"),
            (left, "left to the processes that watch over them"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<_> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        f.write_str(if parts.is_empty() { "none was changed" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

impl std::ops::Add for Restored {
    type Output = Restored;

    fn add(self, other: Restored) -> Restored {
        Restored {
            restored: self.restored + other.restored,
            ended: self.ended + other.ended,
            left_alone: self.left_alone + other.left_alone,
            failed: self.failed + other.failed,
            left: self.left + other.left,
        }
    }
}
