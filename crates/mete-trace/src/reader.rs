//! Reads one processor's records, in order, with every gap in its place (KLOG-6).
//!
//! One block is in memory at a time, so memory does not grow with the trace.

use mete_log::Ticks;

use crate::block::{Damage, DamageKind, HEADER_BYTES, Header, offset, u64_at};
use crate::completeness::Account;
use crate::file::{BlockFile, ReadError, is_unwritten};
use crate::gap::Gap;
use crate::record::{Head, Record, STAMP_OFFSET, unfold};
use crate::tally::Tally;

/// The next thing in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// A gap in the serial numbers.
    Lost(Gap),
}

/// One step through a file. The record of a step is in [`ProcessorReader::record`].
#[derive(Debug)]
pub enum Step {
    /// A record.
    Record,
    /// A gap.
    Lost(Gap),
    /// A part that cannot be read. The next step goes on after it.
    Unreadable(ReadError),
}

/// Goes through one processor's file.
#[derive(Debug)]
pub struct ProcessorReader {
    file: BlockFile,
    first_block: u64,
    next_block: u64,
    end_block: u64,
    until: Option<Ticks>,
    header: Header,
    bytes: Vec<u8>,
    /// The offset of the current record in `bytes`, and the offset after it.
    at: usize,
    next_at: usize,
    /// The serial number that should come next.
    expected: u64,
    started: bool,
    last_time: Option<Ticks>,
    /// What was read, whatever its time.
    read: Read,
    /// What was read of the wanted time.
    tally: Tally,
    /// The processor on which the programs ran whose own events these are.
    programs_of: Option<u32>,
    /// What the description promises to be in the file, until that has been compared with what the file has.
    promised: Option<Account>,
    /// What is missing at the end, as found by that comparison.
    missing: Option<MissingAtEnd>,
    /// Whether the last block could not be read, which has been reported.
    is_unreadable: bool,
}

/// What was read of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    records: u64,
    /// Events in blocks that cannot be read.
    unreadable: u64,
    /// Whether the block was read that says that it is the last one.
    has_end: bool,
}

/// Events that occurred after the end of a file.
#[derive(Debug)]
struct MissingAtEnd {
    /// One more than the serial number of the last event.
    end_serial: u64,
    /// How many of them were recorded and could not be written.
    unwritten: u64,
    /// Whether they were in the file once.
    is_cut: bool,
}

impl ProcessorReader {
    /// Goes through the whole file.
    pub fn new(file: BlockFile) -> ProcessorReader {
        ProcessorReader::between(file, None, None)
    }

    /// Goes through the blocks that may have records of this time, bounds included. Other records in these
    /// blocks are handed out, too. Gaps are handed out if their events may have been in this time.
    pub fn between(file: BlockFile, from: Option<Ticks>, until: Option<Ticks>) -> ProcessorReader {
        let ordered = file.is_ordered();
        let first = from.filter(|_| ordered).map_or(0, |time| file.find(time));
        // At least the last block is read: it tells where the recording ends.
        let first = first.min(file.blocks().saturating_sub(1));
        let account = Account { processor: file.processor(), ..Account::default() };
        let tally = Tally::of_time(from, until, ordered, account);
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
            // If the file begins with the recording's first block, the serial numbers begin at 0.
            started: first == 0 && file.first_number() == 0,
            last_time: None,
            read: Read::default(),
            tally,
            programs_of: None,
            promised: None,
            missing: None,
            is_unreadable: false,
            file,
        }
    }

    /// Tells the reader what the file must have according to the description of a finished recording. What
    /// the file does not have of it is reported as missing.
    pub fn promised(mut self, account: Option<Account>) -> ProcessorReader {
        self.promised = account;
        self
    }

    /// Tells the reader that the file has the events of programs on this processor, if it has.
    pub fn of_programs(mut self, programs_of: Option<u32>) -> ProcessorReader {
        self.programs_of = programs_of;
        self
    }

    /// Leaves out of gaps and account what was before this time, though reading may begin earlier.
    pub fn accounting_from(mut self, from: Option<Ticks>) -> ProcessorReader {
        self.tally.count_from(from);
        self
    }

    /// The processor on which the events in the file occurred.
    fn place(&self) -> u32 {
        self.programs_of.unwrap_or(self.file.processor())
    }

    /// What has been read so far of the wanted time.
    pub fn account(&self) -> Account {
        Account { programs_of: self.programs_of, ..self.tally.account() }
    }

    /// The file.
    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// The number of blocks that were read, and the number of blocks from the first one on.
    pub fn blocks(&self) -> (u64, u64) {
        (self.next_block - self.first_block, self.end_block - self.first_block)
    }

    /// The latest time stamp so far.
    pub fn last_time(&self) -> Option<Ticks> {
        self.last_time
    }

    /// The record of the last step.
    pub fn record(&self) -> Record<'_> {
        let bytes = &self.bytes[self.at..self.next_at];
        Record {
            processor: self.place(),
            file: self.file.processor(),
            serial: self.expected.wrapping_sub(1),
            event: Head::from_word(u64_at(bytes, 0)).event,
            time: Ticks::new(u64_at(bytes, STAMP_OFFSET)),
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
            if let Some(gap) = self.gap_to(self.header.end_serial.get(), None, false) {
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
        let time = Ticks::new(u64_at(&self.bytes, self.next_at + STAMP_OFFSET));
        let serial = unfold(self.expected, head.serial);
        if let Some(gap) = self.gap_to(serial, Some(time), false) {
            return Step::Lost(gap);
        }
        self.at = self.next_at;
        self.next_at += usize::from(head.bytes);
        self.expected = serial + 1;
        self.read.records += 1;
        self.last_time = Some(self.last_time.map_or(time, |last| last.max(time)));
        self.tally.record(serial, time);
        Step::Record
    }

    /// The gap from the expected serial number to `serial`, if there is one that may have been in the wanted
    /// time. After it, `serial` is expected. The record at `serial` is from the time `before`, if there is
    /// one.
    #[inline]
    fn gap_to(&mut self, serial: u64, before: Option<Ticks>, unreadable: bool) -> Option<Gap> {
        let gap = self.go_to(serial, before, unreadable)?;
        let unwritten = if unreadable { gap.events } else { 0 };
        self.read.unreadable += unwritten;
        self.tally.gap(&gap, unwritten).then_some(gap)
    }

    /// The same, whatever the time. The gap is not counted.
    #[inline]
    fn go_to(&mut self, serial: u64, before: Option<Ticks>, unreadable: bool) -> Option<Gap> {
        let events = serial.checked_sub(self.expected).filter(|events| *events > 0)?;
        let (processor, file, first_serial) = (self.place(), self.file.processor(), self.expected);
        self.expected = serial;
        Some(Gap { processor, file, first_serial, events, after: self.last_time, before, unreadable })
    }

    /// Goes to the next block. Returns the gap before it, if there is one; `None` at the end.
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
        Some(self.enter(block, header))
    }

    /// Reads no further, if this block is after the wanted time. All later records are later still, because
    /// the file is in order of time. Only what was lost before the block may have been in that time.
    fn stop_before(&mut self, mut header: Header) -> Header {
        if self.until.is_none_or(|until| header.records == 0 || header.first_time <= until.get()) {
            return header;
        }
        self.bytes.clear();
        self.next_block = self.end_block;
        self.promised = None;
        self.tally.end();
        header.end_serial = header.first_serial;
        header
    }

    /// The error for an unreadable block. Blocks into which nothing was written are skipped together.
    fn unreadable(&mut self, block: u64, error: ReadError) -> ReadError {
        if !is_unwritten(&error) {
            return error;
        }
        self.next_block = self.file.end_of_nothing(block);
        if self.next_block > block + 1 { self.file.unwritten(block, self.next_block) } else { error }
    }

    /// After the last block: reports what the description promises and the file does not have.
    fn end(&mut self) -> Option<Step> {
        let is_past = self.until.is_some_and(|until| self.last_time.is_some_and(|last| last > until));
        if let Some(promised) = self.promised.take().filter(|_| !is_past) {
            let Account { end_serial, unwritten, .. } = promised;
            let missing = MissingAtEnd { end_serial, unwritten, is_cut: self.is_cut(&promised) };
            let is_news = missing.is_cut && self.file.is_there() && !self.is_unreadable;
            // Reported once: the next call finds `promised` empty, and hands out the gap.
            self.missing = Some(missing);
            self.tally.end();
            if is_news {
                let path = self.file.path().to_owned();
                let (end_serial, promised) = (self.expected, end_serial);
                return Some(Step::Unreadable(ReadError::Short { path, end_serial, promised }));
            }
        }
        let missing = self.missing.take()?;
        let gap = self.go_to(missing.end_serial, None, missing.is_cut)?;
        let unwritten = if missing.is_cut { gap.events } else { missing.unwritten.min(gap.events) };
        self.tally.gap(&gap, unwritten).then_some(Step::Lost(gap))
    }

    /// Whether blocks are gone that the recorder has written. If a full disk kept it from writing the last
    /// block, the description still counts the others.
    fn is_cut(&self, promised: &Account) -> bool {
        let Read { records, unreadable, has_end } = self.read;
        let has_all = self.first_block > 0 || records + unreadable >= promised.records;
        !has_end && (promised.ended || !has_all)
    }

    fn enter(&mut self, block: u64, header: Header) -> Result<Option<Gap>, ReadError> {
        if !self.started {
            self.started = true;
            self.expected = (header.first_serial - header.lost_before).get();
            self.tally.begin(self.expected);
        }
        if header.first_serial < self.expected {
            self.bytes.clear();
            // Its events were accounted for already, so the block does not belong here. Its records are not
            // read.
            let what = DamageKind::Field("first serial number");
            return Err(self.file.damaged(block, Damage { at: offset::FIRST_SERIAL, what }));
        }
        self.next_at = HEADER_BYTES;
        if header.is_last() {
            self.read.has_end = true;
            self.tally.end();
        }
        let first_time = (header.records > 0).then(|| Ticks::new(header.first_time.get()));
        self.header = self.stop_before(header);
        // Missing events that the block's own header does not count as lost were in blocks that cannot be
        // read.
        let unreadable = self.gap_to((header.first_serial - header.lost_before).get(), first_time, true);
        Ok(unreadable.or_else(|| self.gap_to(header.first_serial.get(), first_time, false)))
    }
}
