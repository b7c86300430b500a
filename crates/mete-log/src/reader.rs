//! The reader: one pass over the new rows of a log file, without a lock and without stopping the producer
//! (LOG-10, design decision D2).
//!
//! The papers' reader restarts if the index moved while it read, and has to disable the producer to make sure
//! that it finishes at all (thesis §4.5.2). Here the index counts rows for ever, so the reader can tell which
//! of the rows that it copied may have been overwritten. It drops exactly these, counts them, and goes on. It
//! copies a piece before it checks it, and looks at the rows only afterwards. So nothing that the producer
//! does later can change a row that was found good (LOG-11).

use core::sync::atomic::Ordering;

use crate::area::{Area, Register};
use crate::control::Control;
use crate::copy::copy_words;
use crate::{FileId, Row, ring};

/// The number of words copied before the index is checked again: 16 KiB. That is large enough that checking
/// costs little compared with copying, and small enough to stay in the first-level cache.
const CHUNK_WORDS: usize = 2048;

/// The result of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "loss is never silent: `overwritten` and `refused` are part of the result"]
pub struct Poll {
    /// Rows that were good and were handed to the caller.
    pub rows: u64,
    /// Rows that were written and overwritten before they could be read.
    pub overwritten: u64,
    /// Rows that the producer could not write since the last pass: the file was frozen or busy.
    pub refused: u64,
}

impl core::ops::AddAssign for Poll {
    fn add_assign(&mut self, other: Poll) {
        self.rows = self.rows.saturating_add(other.rows);
        self.overwritten = self.overwritten.saturating_add(other.overwritten);
        self.refused = self.refused.saturating_add(other.refused);
    }
}

/// The file's index has a value that no sound producer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The count of rows went down. At its next pass the reader goes on from the new value.
    #[error("log file {file}: the count of rows went back from {before} to {now}; its producer garbled it")]
    IndexWentBack {
        /// The file.
        file: FileId,
        /// The number of rows written, as of the last pass.
        before: u64,
        /// The number of rows written that the producer gives now.
        now: u64,
    },
}

/// Good rows, one behind the other, copied out of the shared memory.
pub struct Rows<'a> {
    control: Control,
    words: &'a [u64],
    first: u64,
}

impl<'a> Rows<'a> {
    /// The number of the first row here, counted since the file began.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The rows' words, [`Control::row_bytes`] apart.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// The rows, decoded, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row> + use<'a> {
        let control = self.control;
        self.words.chunks_exact(row_words(control)).map(move |words| Row::decode(control, words))
    }
}

/// Reads one log file on one processor: how far it has been read. Each call gets the area, so that the caller
/// can own the memory as well.
///
/// The control word is the reader's own copy, taken when the file was configured. It is never read back from
/// shared memory. A cursor belongs to one area; with another one it reads nonsense, but safely.
#[derive(Clone, Debug)]
pub struct Cursor {
    file: FileId,
    control: Control,
    next: u64,
    refused: u64,
}

impl Cursor {
    /// A cursor at the next row that is written.
    ///
    /// A control word that describes no file inside the area's data has no rows to read. The cursor then only
    /// counts the rows that are written.
    pub fn new(area: Area<'_>, file: FileId, control: Control) -> Cursor {
        let control = if control.lies_inside(area.shape()) { control } else { Control::OFF };
        let register = area.register(file);
        // Relaxed: a count on its own.
        let refused = register.lost.load(Ordering::Relaxed);
        Cursor { file, control, next: ring::written(&register.index), refused }
    }

    /// A cursor at the oldest row that is still there.
    pub fn from_oldest(area: Area<'_>, file: FileId, control: Control) -> Cursor {
        let mut cursor = Cursor::new(area, file, control);
        cursor.next = ring::first_intact(cursor.next, control.rows());
        cursor
    }

    /// The file.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The file's control word.
    pub fn control(&self) -> Control {
        self.control
    }

    /// One pass, row by row. See [`Cursor::poll_rows`].
    ///
    /// # Errors
    ///
    /// As [`Cursor::poll_rows`].
    pub fn poll(&mut self, area: Area<'_>, mut each: impl FnMut(Row)) -> Result<Poll, ReadError> {
        self.poll_rows(area, |rows| rows.iter().for_each(&mut each))
    }

    /// One pass: every row written before the pass began and not overwritten by now, oldest first, in pieces.
    /// It takes time proportional to the file's size at most, whatever the producer does.
    ///
    /// Files without entries have no rows to hand to the caller; their occurrences are counted in
    /// [`Poll::rows`].
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the producer's count went back. No row was handed to the caller then.
    pub fn poll_rows(&mut self, area: Area<'_>, mut each: impl FnMut(&Rows<'_>)) -> Result<Poll, ReadError> {
        let register = area.register(self.file);
        let end = self.check_index(ring::written(&register.index))?;
        let mut poll = Poll { refused: self.newly_refused(register), ..Poll::default() };
        if self.control.entry_words() == 0 {
            poll.rows = end - self.next;
            self.next = end;
        }
        // By the index as of now, so that at most one ring is left to read, whatever the index becomes later.
        self.skip_to_intact(end, end, &mut poll);
        if self.next < end {
            self.pass_pieces(area, end, &mut poll, &mut each);
        }
        Ok(poll)
    }

    /// One pass over a file whose newest row says everything: it is a running total, or a value of which only
    /// the present one counts. Answers with that row, if it is new; [`Poll::rows`] is the number of rows that
    /// it stands for. Rows that were overwritten are no loss here and are not counted as lost.
    ///
    /// # Errors
    ///
    /// As [`Cursor::poll_rows`].
    pub fn poll_newest(&mut self, area: Area<'_>) -> Result<(Poll, Option<Row>), ReadError> {
        let register = area.register(self.file);
        let end = self.check_index(ring::written(&register.index))?;
        let mut poll = Poll { refused: self.newly_refused(register), ..Poll::default() };
        if end == self.next {
            return Ok((poll, None));
        }
        // There is no intact row only if the producer laps the file all the time. The next pass then sees
        // what this one did not.
        let Some((last, row)) = self.newest_at(area) else { return Ok((poll, None)) };
        // A newest row that lies before `next` (the index went back meanwhile) counts as one.
        poll.rows = last + 1 - self.next.min(last);
        self.next = last + 1;
        Ok((poll, Some(row)))
    }

    /// The newest row that is intact: the answer of an adding file. The cursor stays where it is.
    pub fn newest(&self, area: Area<'_>) -> Option<Row> {
        self.newest_at(area).map(|(_, row)| row)
    }

    /// The same, with the row's number.
    fn newest_at(&self, area: Area<'_>) -> Option<(u64, Row)> {
        let register = area.register(self.file);
        let mut words = [0; 4];
        let row = &mut words[..row_words(self.control)];
        // To spoil a try, the writer has to lap the whole file during one copy, so a few tries are enough.
        for _ in 0..16 {
            let last = ring::written(&register.index).checked_sub(1)?;
            self.copy(area, last, row);
            if last >= ring::first_intact(ring::written_by_now(&register.index), self.control.rows()) {
                return Some((last, Row::decode(self.control, row)));
            }
        }
        None
    }

    /// The number of rows written, unless it went back.
    fn check_index(&mut self, now: u64) -> Result<u64, ReadError> {
        let before = self.next;
        if now >= before {
            return Ok(now);
        }
        self.next = now;
        Err(ReadError::IndexWentBack { file: self.file, before, now })
    }

    /// The number of rows refused since this was asked last.
    fn newly_refused(&mut self, register: &Register) -> u64 {
        // Relaxed: a count on its own.
        let refused = register.lost.load(Ordering::Relaxed);
        // Modulo 2^64: the producer can garble this count, too.
        let newly = refused.wrapping_sub(self.refused);
        self.refused = refused;
        newly
    }

    /// Reads the new rows, piece by piece. A function of its own, so that a poll that finds nothing new, as
    /// most do, needs no buffer on its stack.
    #[inline(never)]
    fn pass_pieces(&mut self, area: Area<'_>, end: u64, poll: &mut Poll, each: &mut impl FnMut(&Rows<'_>)) {
        let mut piece = [0; CHUNK_WORDS];
        while self.next < end {
            self.pass_piece(area, end, &mut piece, poll, each);
        }
    }

    /// Copies the next piece, finds out which of its rows are good, and hands these to the caller.
    fn pass_piece(
        &mut self,
        area: Area<'_>,
        end: u64,
        piece: &mut [u64; CHUNK_WORDS],
        poll: &mut Poll,
        each: &mut impl FnMut(&Rows<'_>),
    ) {
        let register = area.register(self.file);
        self.skip_to_intact(ring::written(&register.index), end, poll);
        let row = row_words(self.control);
        let first = self.next;
        let count = (end - first).min((CHUNK_WORDS / row) as u64).min(self.rows_to_the_end(first));
        let piece = &mut piece[..count as usize * row];
        self.copy(area, first, piece);

        // Only now: rows that were overwritten while they were copied lie before the first intact one.
        self.skip_to_intact(ring::written_by_now(&register.index), first + count, poll);
        let good = &piece[(self.next - first) as usize * row..];
        if !good.is_empty() {
            each(&Rows { control: self.control, words: good, first: self.next });
        }
        poll.rows += first + count - self.next;
        self.next = first + count;
    }

    /// Moves on past the rows that have been overwritten, up to `end`, and counts them.
    fn skip_to_intact(&mut self, written: u64, end: u64, poll: &mut Poll) {
        let intact = ring::first_intact(written, self.control.rows()).clamp(self.next, end);
        poll.overwritten += intact - self.next;
        self.next = intact;
    }

    /// The number of rows from this one up to the end of the ring's memory.
    fn rows_to_the_end(&self, first: u64) -> u64 {
        // A power of two, because the control word lies inside the area.
        let rows = self.control.rows();
        rows - (first & (rows - 1))
    }

    /// Copies the words from row `first` on.
    #[inline]
    fn copy(&self, area: Area<'_>, first: u64, out: &mut [u64]) {
        copy_words(area.row_words(self.control.place(first), out.len()), out);
    }
}

/// The number of 64-bit words from one row to the next: 1, 2 or 4, because the control word lies inside the
/// area.
fn row_words(control: Control) -> usize {
    control.row_bytes() as usize / 8
}
