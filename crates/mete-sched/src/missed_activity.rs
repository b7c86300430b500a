//! What components know to have missed, beyond the rows that they wrote. Sources report it, and the analysis
//! sums it up, so it is in a module below both.

use serde::Serialize;

/// What components know to have missed, beyond the rows that they wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissedActivity {
    /// Runs of log handlers that the kernel left out, with the rows that they would have written.
    pub runs: u64,
    /// Address spaces that are missing from the sums of memory.
    pub spaces: u64,
    /// Context switches that the kernel did not report. They lose no row. Service time is corrected for them;
    /// what performance counters counted meanwhile is charged to no domain.
    pub switches: u64,
    /// Processes that were bound to their domain only some time after they came to belong to it.
    pub late: u64,
    /// The processor time that stands under another domain because of late binding: an upper bound, in
    /// nanoseconds.
    pub late_ns: u64,
}

impl MissedActivity {
    /// The sum of both.
    pub fn plus(self, other: MissedActivity) -> MissedActivity {
        self.with(other, u64::saturating_add)
    }

    /// What was missed since `before`; `None` if either is not known.
    pub fn since(now: Option<MissedActivity>, before: Option<MissedActivity>) -> Option<MissedActivity> {
        Some(now?.with(before?, u64::saturating_sub))
    }

    fn with(self, other: MissedActivity, of: fn(u64, u64) -> u64) -> MissedActivity {
        MissedActivity {
            runs: of(self.runs, other.runs),
            spaces: of(self.spaces, other.spaces),
            switches: of(self.switches, other.switches),
            late: of(self.late, other.late),
            late_ns: of(self.late_ns, other.late_ns),
        }
    }
}
