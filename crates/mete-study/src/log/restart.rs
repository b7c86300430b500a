//! The papers' reader, for comparison (thesis §4.5.2, figure 4.10). It reads the whole file and then checks
//! whether the index has moved. If so it begins again. One of its two forms first clears the flags of the
//! control register.
//!
//! It differs from the thesis only where our layout does. Here the index counts rows forever and is masked to
//! a place in the file. So the stamp of the row before the index must be compared, too, as in the thesis.

use std::sync::atomic::{Ordering, fence};

use mete_log::{Area, Control, FileId};

/// The result of one analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// How often the analysis read the file.
    pub trials: u32,
    /// The number of new rows in the trial that succeeded.
    pub rows: u64,
    /// Whether a trial succeeded.
    pub is_complete: bool,
}

/// A reader of one log file whose rows end in a time stamp.
pub struct Restart<'a> {
    area: Area<'a>,
    file: FileId,
    control: Control,
    clears: bool,
    last_stamp: u64,
}

impl<'a> Restart<'a> {
    /// A reader that clears the flags after a disturbed trial, or one that does not.
    pub fn new(area: Area<'a>, file: FileId, control: Control, clears: bool) -> Restart<'a> {
        Restart { area, file, control, clears, last_stamp: 0 }
    }

    /// Makes one analysis of at most `limit` trials. It calls `begin` at the beginning of each trial, and
    /// `each` for each new row, also in trials that fail in the end.
    pub fn analyse(&mut self, limit: u32, mut begin: impl FnMut(), mut each: impl FnMut(&[u64])) -> Analysis {
        let register = self.area.register(self.file);
        let mut trials = 0;
        let found = loop {
            begin();
            trials += 1;
            let found = self.trial(&mut each);
            if found.is_some() || trials == limit {
                break found;
            }
            if self.clears {
                register.set_control(Control::OFF);
            }
        };
        // Only a disturbed trial has cleared the flags.
        if self.clears && trials > 1 {
            register.set_control(self.control);
        }
        if let Some((_, newest)) = found {
            self.last_stamp = newest;
        }
        Analysis { trials, rows: found.map_or(0, |(rows, _)| rows), is_complete: found.is_some() }
    }

    /// Reads the file once. The answer is the number of new rows and the newest stamp, or `None` if a writer
    /// has written meanwhile.
    fn trial(&self, each: &mut impl FnMut(&[u64])) -> Option<(u64, u64)> {
        let before = self.position();
        let (mut rows, mut newest) = (0, self.last_stamp);
        let mut words = [0; 4];
        // The row at the index may be half written. So the trial begins behind it and ends with the row
        // before it.
        for step in 1..self.control.rows() {
            let row = self.row(before.0 + step, &mut words);
            // The stamp is the last entry of a row.
            let stamp = row.last().copied().unwrap_or(0);
            // Rows with older stamps were read by an analysis before.
            if stamp > newest {
                each(row);
                (rows, newest) = (rows + 1, stamp);
            }
        }
        // This is the mfence of the thesis: the rows must be read before the index is read again.
        fence(Ordering::SeqCst);
        (self.position() == before).then_some((rows, newest))
    }

    /// The place of the next row and the stamp of the last one, as the thesis compares them.
    fn position(&self) -> (u64, u64) {
        let index = self.area.register(self.file).index.load(Ordering::Acquire) & (self.control.rows() - 1);
        let mut words = [0; 4];
        let last = self.row(index.wrapping_sub(1), &mut words);
        (index, last.last().copied().unwrap_or(0))
    }

    fn row<'w>(&self, index: u64, words: &'w mut [u64; 4]) -> &'w [u64] {
        let used = self.control.entry_words() as usize;
        for (nth, word) in words[..used].iter_mut().enumerate() {
            *word = self.area.row_word(self.control.place(index), nth).load(Ordering::Relaxed);
        }
        &words[..used]
    }
}
