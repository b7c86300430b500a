//! The papers' reader, for comparison (thesis §4.5.2, figure 4.10): it reads the whole file and then
//! looks whether the index has moved. If so it begins again, after clearing the control register's
//! flags where it is told to.
//!
//! It differs from the thesis in what our layout differs in: the index counts rows for ever and is
//! masked to a place here, so that, as there, the row before the index must be compared, too.

use std::sync::atomic::{Ordering, fence};

use mete_log::{Area, Control, FileId};

/// What one analysis came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// How often the file was read.
    pub trials: u32,
    /// Rows that were new in the trial that succeeded.
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
    /// A reader that clears the flags when it was disturbed, or one that does not.
    pub fn new(area: Area<'a>, file: FileId, control: Control, clears: bool) -> Restart<'a> {
        Restart { area, file, control, clears, last_stamp: 0 }
    }

    /// One analysis: `limit` trials at most. `begin` is called at the beginning of each trial and
    /// `each` for each row that is new, also in trials that turn out to be in vain.
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
        if self.clears && trials > 1 {
            register.set_control(self.control);
        }
        if let Some((_, newest)) = found {
            self.last_stamp = newest;
        }
        Analysis { trials, rows: found.map_or(0, |(rows, _)| rows), is_complete: found.is_some() }
    }

    /// Reads the file once: how many rows were new and the newest stamp, or `None` if it was written
    /// meanwhile.
    fn trial(&self, each: &mut impl FnMut(&[u64])) -> Option<(u64, u64)> {
        let before = self.position();
        let (mut rows, mut newest) = (0, self.last_stamp);
        let mut words = [0; 4];
        // From behind the row that may be being written, around to the one before it.
        for step in 1..self.control.rows() {
            let row = self.row(before.0 + step, &mut words);
            let stamp = row.last().copied().unwrap_or(0);
            if stamp > newest {
                each(row);
                (rows, newest) = (rows + 1, stamp);
            }
        }
        // The thesis' mfence: the rows are read before the index is read again.
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
