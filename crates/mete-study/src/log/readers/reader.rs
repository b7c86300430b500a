//! The readers that are compared, behind one interface. Each makes the analysis of a scheduler.

use std::hint::black_box;

use mete_log::{Area, Control, Cursor, DomainId, FileId, row};
use mete_measure::Reason;

use super::result::{Scheme, TRIALS};
use crate::log::restart::{Analysis, Restart};

/// The row of the thesis: correspondent and time stamp.
pub(super) const ROW_BYTES: u64 = 16;

/// The analysis of a scheduler: it counts how often each correspondent occurs (thesis §4.5.3).
pub(super) struct Counts([u64; 256]);

impl Counts {
    #[inline(always)]
    fn add(&mut self, correspondent: DomainId) {
        self.0[correspondent.index() & 255] += 1;
    }
}

/// The correspondent that a row's first word names.
#[inline(always)]
fn correspondent(who: u64) -> DomainId {
    row::who_parts(who).2
}

pub(super) enum Reader<'a> {
    Ours { area: Area<'a>, start: Cursor, cursor: Cursor, counts: Counts },
    Restart { reader: Restart<'a>, start: Box<dyn Fn() -> Restart<'a> + 'a>, counts: Counts },
}

impl<'a> Reader<'a> {
    /// A reader of this log file of the area, which begins with the oldest row.
    pub(super) fn new(area: Area<'a>, scheme: Scheme, file: FileId, control: Control) -> Reader<'a> {
        let counts = Counts([0; 256]);
        if scheme == Scheme::Ours {
            let start = Cursor::from_oldest(area, file, control);
            return Reader::Ours { area, cursor: start.clone(), start, counts };
        }
        let clears = scheme == Scheme::RestartClearing;
        let start = Box::new(move || Restart::new(area, file, control, clears));
        Reader::Restart { reader: start(), start, counts }
    }

    pub(super) fn analyse(&mut self) -> Result<Analysis, Reason> {
        match self {
            Reader::Ours { area, cursor, counts, .. } => {
                let poll = cursor.poll_rows(*area, |rows| {
                    let words = rows.words().as_chunks::<{ ROW_BYTES as usize / 8 }>().0;
                    words.iter().for_each(|words| counts.add(correspondent(words[0])));
                })?;
                // Nothing reads the counts, so the compiler could leave the counting out.
                black_box(&mut *counts);
                Ok(Analysis { trials: 1, rows: poll.rows, is_complete: true })
            }
            Reader::Restart { reader, counts, .. } => {
                let analysis = reader.analyse(
                    TRIALS,
                    || (),
                    |words| {
                        counts.add(correspondent(words.first().copied().unwrap_or(0)));
                    },
                );
                black_box(&mut *counts);
                Ok(analysis)
            }
        }
    }

    /// Goes back to the row with which the reader began.
    pub(super) fn begin_anew(&mut self) {
        match self {
            Reader::Ours { start, cursor, .. } => *cursor = start.clone(),
            Reader::Restart { reader, start, .. } => *reader = start(),
        }
    }
}
