//! Reads one processor's records, in order, with every gap in its place (KLOG-6).
//!
//! One block is in memory at a time, so memory does not grow with the trace.

use crate::block::{Damage, FLAG_LAST, HEADER_BYTES, Header, What, offset, u64_at};
use crate::completeness::Account;
use crate::file::{BlockFile, ReadError, is_unwritten};
use crate::record::{Head, Record, STAMP_OFFSET, unfold};

/// Events that occurred and are not in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The processor.
    pub processor: u32,
    /// The number of the file that they would be in.
    pub file: u32,
    /// Serial number of the first of them.
    pub first_serial: u64,
    /// How many.
    pub events: u64,
    /// Time stamp of the last record before the gap; `None` if there is none.
    pub after: Option<u64>,
    /// Whether the trace has lost them: they were recorded, but their block cannot be read. If
    /// not, they found no room in the buffer when they occurred.
    pub unreadable: bool,
}

/// What comes next in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// A gap in the serial numbers.
    Lost(Gap),
}

/// One step through a file. A record is looked at by [`ProcessorReader::record`].
#[derive(Debug)]
pub enum Step {
    /// A record.
    Record,
    /// A gap.
    Lost(Gap),
    /// A part that cannot be read; the next step goes on behind it.
    Unreadable(ReadError),
}

/// Goes through one processor's file.
#[derive(Debug)]
pub struct ProcessorReader {
    file: BlockFile,
    first_block: u64,
    next_block: u64,
    end_block: u64,
    until: Option<u64>,
    header: Header,
    bytes: Vec<u8>,
    /// The current record and the place behind it.
    at: usize,
    next_at: usize,
    /// The serial number that should come next.
    expected: u64,
    started: bool,
    last_time: Option<u64>,
    account: Account,
    /// What the recorder said at its end that there is, until the file's end has been compared with it.
    promised: Option<Account>,
    /// What that comparison has found to be missing.
    owed: Option<Owed>,
    /// Whether the last block that was gone on to cannot be read, which is said.
    is_unreadable: bool,
}

/// What occurred behind the end of a file.
#[derive(Debug)]
struct Owed {
    /// Serial number behind the last event.
    end_serial: u64,
    /// Of those, events that were recorded and could not be written.
    unwritten: u64,
    /// Whether it was in the file once.
    is_cut: bool,
}

impl ProcessorReader {
    /// Goes through the whole file.
    pub fn new(file: BlockFile) -> ProcessorReader {
        ProcessorReader::between(file, None, None)
    }

    /// Goes through the blocks in which there may be records of these times, bounds included.
    /// Records of other times come along.
    pub fn between(file: BlockFile, from: Option<u64>, until: Option<u64>) -> ProcessorReader {
        let ordered = file.is_ordered();
        let first = from.filter(|_| ordered).map_or(0, |time| file.find(time));
        // The last block tells where the recording ends.
        let first = first.min(file.blocks().saturating_sub(1));
        let account = Account { processor: file.processor(), ..Account::default() };
        ProcessorReader {
            first_block: first,
            next_block: first,
            end_block: file.blocks(),
            until: until.filter(|_| ordered),
            header: Header::default(),
            bytes: Vec::new(),
            at: 0,
            next_at: 0,
            expected: 0,
            // The count begins at 0 where the file begins with the first block of all.
            started: first == 0 && file.first_number() == 0,
            last_time: None,
            account,
            promised: None,
            owed: None,
            is_unreadable: false,
            file,
        }
    }

    /// The description of a finished recording says that there is so much: what the file has not is missing.
    pub fn promised(mut self, account: Option<Account>) -> ProcessorReader {
        self.promised = account;
        self
    }

    /// The file has the events of programs on this processor, if on any.
    pub fn of_programs(mut self, programs_of: Option<u32>) -> ProcessorReader {
        self.account.programs_of = programs_of;
        self
    }

    /// The processor that what is in the file happened on.
    fn place(&self) -> u32 {
        self.account.programs_of.unwrap_or(self.account.processor)
    }

    /// What was gone through so far.
    pub fn account(&self) -> Account {
        let end_serial = self.expected;
        let lost = end_serial - self.account.first_serial - self.account.records;
        Account { end_serial, lost, ..self.account }
    }

    /// The file.
    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// How many blocks were gone on to, and how many there are behind the first one.
    pub fn blocks(&self) -> (u64, u64) {
        (self.next_block - self.first_block, self.end_block - self.first_block)
    }

    /// The latest time stamp so far.
    pub fn last_time(&self) -> Option<u64> {
        self.last_time
    }

    /// The record that the last step came to.
    pub fn record(&self) -> Record<'_> {
        let bytes = &self.bytes[self.at..self.next_at];
        Record {
            processor: self.place(),
            file: self.file.processor(),
            serial: self.expected.wrapping_sub(1),
            event: Head::from_word(u64_at(bytes, 0)).event,
            time: u64_at(bytes, STAMP_OFFSET),
            bytes,
        }
    }

    /// One step; `None` at the end.
    #[inline]
    pub fn step(&mut self) -> Option<Step> {
        loop {
            if self.next_at < self.bytes.len() {
                return Some(self.step_in_block());
            }
            if let Some(gap) = self.gap_to(self.header.end_serial, false) {
                return Some(Step::Lost(gap));
            }
            let Some(next) = self.next_block() else { return self.end() };
            match next {
                Ok(None) => {}
                Ok(Some(gap)) => return Some(Step::Lost(gap)),
                Err(error) => return Some(Step::Unreadable(error)),
            }
        }
    }

    #[inline]
    fn step_in_block(&mut self) -> Step {
        let head = Head::from_word(u64_at(&self.bytes, self.next_at));
        let serial = unfold(self.expected, head.serial);
        if let Some(gap) = self.gap_to(serial, false) {
            return Step::Lost(gap);
        }
        self.at = self.next_at;
        self.next_at += usize::from(head.bytes);
        self.expected = serial + 1;
        let time = u64_at(&self.bytes, self.at + STAMP_OFFSET);
        self.note(time);
        Step::Record
    }

    #[inline]
    fn note(&mut self, time: u64) {
        let is_first = self.account.records == 0;
        self.account.first_time = if is_first { time } else { self.account.first_time.min(time) };
        self.account.records += 1;
        let latest = self.last_time.map_or(time, |last| last.max(time));
        self.last_time = Some(latest);
        self.account.last_time = latest;
    }

    /// The gap up to a serial number, if there is one. The count goes on behind it.
    #[inline]
    fn gap_to(&mut self, serial: u64, unreadable: bool) -> Option<Gap> {
        let events = serial.checked_sub(self.expected).filter(|events| *events > 0)?;
        let (processor, file, first_serial) = (self.place(), self.file.processor(), self.expected);
        self.expected = serial;
        self.account.unwritten += if unreadable { events } else { 0 };
        Some(Gap { processor, file, first_serial, events, after: self.last_time, unreadable })
    }

    /// Goes on to the next block; says what is missing between.
    fn next_block(&mut self) -> Option<Result<Option<Gap>, ReadError>> {
        if self.next_block >= self.end_block {
            return None;
        }
        let block = self.next_block;
        self.next_block += 1;
        self.next_at = 0;
        let read = self.file.read(block, &mut self.bytes);
        self.is_unreadable = read.is_err();
        let header = match read {
            Ok(header) => header,
            Err(error) => return Some(Err(self.unreadable(block, error))),
        };
        if self.until.is_some_and(|until| header.records > 0 && header.first_time > until) {
            self.bytes.clear();
            self.next_block = self.end_block;
            self.promised = None;
            return None;
        }
        Some(self.enter(block, header))
    }

    /// Blocks without anything in them are gone over together.
    fn unreadable(&mut self, block: u64, error: ReadError) -> ReadError {
        if !is_unwritten(&error) {
            return error;
        }
        self.next_block = self.file.end_of_nothing(block);
        if self.next_block > block + 1 { self.file.unwritten(block, self.next_block) } else { error }
    }

    /// Behind the last block: what the recorder has said to be there and is not.
    fn end(&mut self) -> Option<Step> {
        if let Some(promised) = self.promised.take() {
            let Account { end_serial, unwritten, .. } = promised;
            let owed = Owed { end_serial, unwritten, is_cut: self.is_cut(&promised) };
            let is_news = owed.is_cut && self.file.is_there() && !self.is_unreadable;
            (self.owed, self.account.ended) = (Some(owed), true);
            if is_news {
                let path = self.file.path().to_owned();
                let (end_serial, promised) = (self.expected, end_serial);
                return Some(Step::Unreadable(ReadError::Short { path, end_serial, promised }));
            }
        }
        let owed = self.owed.take()?;
        let gap = self.gap_to(owed.end_serial, owed.is_cut)?;
        self.account.unwritten += if owed.is_cut { 0 } else { owed.unwritten.min(gap.events) };
        Some(Step::Lost(gap))
    }

    /// Whether blocks that the recorder has written are gone. One that a full disk kept from writing its last block has
    /// counted the others.
    fn is_cut(&self, promised: &Account) -> bool {
        let Account { records, unwritten, ended, .. } = self.account;
        let has_all = self.first_block > 0 || records + unwritten >= promised.records;
        !ended && (promised.ended || !has_all)
    }

    fn enter(&mut self, block: u64, header: Header) -> Result<Option<Gap>, ReadError> {
        if !self.started {
            self.started = true;
            self.expected = header.first_serial - header.lost_before;
            self.account.first_serial = self.expected;
        }
        if header.first_serial < self.expected {
            self.bytes.clear();
            let what = What::Field("first serial number");
            return Err(self.file.damaged(block, Damage { at: offset::FIRST_SERIAL, what }));
        }
        self.next_at = HEADER_BYTES;
        self.header = header;
        self.account.ended |= header.flags & FLAG_LAST != 0;
        // What the block's own header does not call lost was in blocks that cannot be read.
        let unreadable = self.gap_to(header.first_serial - header.lost_before, true);
        Ok(unreadable.or_else(|| self.gap_to(header.first_serial, false)))
    }
}
