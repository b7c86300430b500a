//! The flush thread's side of a buffer: takes complete records out, in order, and accounts for every serial
//! number (KLOG-6).
//!
//! The consumer trusts nothing in the buffer. It loads a record's first word once and checks it, and copies
//! the record with the size in that word. If the buffer changes afterwards, nothing else changes.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::protocol::{self, Reserve};
use crate::record::{Head, MAX_BYTES, PADDING, unfold};

/// A buffer held something that no producer writes. Its whole content was thrown away. The next good record
/// shows the loss by its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Garbled {
    /// More bytes are reserved than the buffer has.
    #[error("{used} bytes are reserved in a recording buffer of {capacity}; a producer garbled it")]
    Reserve {
        /// Bytes reserved and not released.
        used: u64,
        /// Bytes of the buffer.
        capacity: u32,
    },
    /// The first word of a record is one that no producer writes.
    #[error(
        "at byte {position} of a recording buffer is {word:#x}, which is not the beginning of a record; a producer garbled it"
    )]
    Head {
        /// Bytes since recording began.
        position: u64,
        /// The word.
        word: u64,
    },
    /// A serial number was given out before, or not yet.
    #[error(
        "at byte {position} of a recording buffer is serial number {serial}, but {expected} or a later one must follow; a producer garbled it"
    )]
    Serial {
        /// Bytes since recording began.
        position: u64,
        /// The low half of the record's serial number.
        serial: u32,
        /// The lowest number that is possible there.
        expected: u64,
    },
}

/// What one pass took out of the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Records handed out.
    pub records: u64,
    /// Bytes given back to the producers.
    pub bytes: u64,
    /// Whether the pass ended at a place that is reserved but not written yet.
    pub stalled: bool,
}

/// Takes records out of one buffer. A buffer must have one consumer at a time. With two, each would get some
/// of the records, or take them for garbled.
#[derive(Debug)]
pub struct Consumer<'a> {
    buffer: Buffer<'a>,
    /// Bytes ever released: the consumer's own count, never read back from the memory.
    released: u64,
    /// The serial number that follows the last one handed out.
    next_serial: u64,
    record: Box<[u64; MAX_BYTES / 8]>,
}

/// How far one pass over the buffer has come.
struct DrainPass {
    position: u64,
    end: u64,
    end_serial: u64,
}

/// What stands at the current position of a pass.
enum BufferEntry {
    Record { serial: u64, bytes: usize },
    Padding { bytes: usize },
    Nothing,
}

impl<'a> Consumer<'a> {
    /// The consumer of a buffer into which nothing was recorded yet.
    pub fn new(buffer: Buffer<'a>) -> Consumer<'a> {
        Consumer::at(buffer, 0)
    }

    /// The consumer of a buffer that began at this serial number.
    pub(crate) fn at(buffer: Buffer<'a>, next_serial: u64) -> Consumer<'a> {
        Consumer { buffer, released: 0, next_serial, record: Box::new([0; MAX_BYTES / 8]) }
    }

    /// The buffer.
    pub fn buffer(&self) -> Buffer<'a> {
        self.buffer
    }

    /// Events that occurred up to now: the serial number of the next event.
    pub fn occurred(&self) -> u64 {
        unfold(self.next_serial, self.buffer.reserved().serial)
    }

    /// The serial number that follows the last one handed out.
    pub fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// One pass over the complete records: hands each of them to `sink`, with its serial number. The pass
    /// ends when there is no further complete record, when `sink` refuses one (which stays in the buffer), or
    /// when everything is handed out that was reserved when the pass began. At the end of the pass the places
    /// go back to the producers.
    ///
    /// # Errors
    ///
    /// [`Garbled`] if the memory holds something that no producer writes. The buffer is empty then.
    pub fn drain(&mut self, mut sink: impl FnMut(u64, &[u64]) -> bool) -> Result<Drained, Garbled> {
        let mut drained = Drained::default();
        let result = self.walk(&mut sink, &mut drained);
        if result.is_err() {
            self.abandon();
        }
        result.map(|()| drained)
    }

    fn walk(
        &mut self,
        sink: &mut impl FnMut(u64, &[u64]) -> bool,
        drained: &mut Drained,
    ) -> Result<(), Garbled> {
        let mut pass = self.begin()?;
        while pass.position < pass.end {
            let bytes = match self.look(&pass)? {
                BufferEntry::Record { serial, bytes } => {
                    // A refused record stays uncleared in the buffer, and the next pass finds it again.
                    if !sink(serial, &self.record[..bytes / 8]) {
                        break;
                    }
                    self.next_serial = serial + 1;
                    drained.records += 1;
                    bytes
                }
                BufferEntry::Padding { bytes } => bytes,
                BufferEntry::Nothing => {
                    drained.stalled = true;
                    break;
                }
            };
            // Zeroed before it is given back: a producer takes a zero word for a place that is not written
            // yet.
            self.clear(pass.position, bytes);
            pass.position += bytes as u64;
        }
        drained.bytes = pass.position - self.released;
        self.give_back(pass.position);
        Ok(())
    }

    fn begin(&self) -> Result<DrainPass, Garbled> {
        let Reserve { words, serial } = self.buffer.reserved();
        let used = u64::from(words.wrapping_sub((self.released >> 3) as u32)) * 8;
        let capacity = self.buffer.capacity();
        if used > u64::from(capacity) {
            return Err(Garbled::Reserve { used, capacity });
        }
        // This is right as long as fewer than 2^32 events occur between two passes. Of that number, a buffer
        // holds at most one in 64; the others are lost, and a lost event changes the serial number and
        // nothing else. So no other word tells that it went round, and 2^32 more events are lost than the gap
        // says. The flush thread looks many times a second. Only a disk that takes no block for longer than
        // producers need for 2^32 events, some twenty seconds at the least, keeps it from looking
        // (docs/limits.md).
        let end_serial = unfold(self.next_serial, serial);
        Ok(DrainPass { position: self.released, end: self.released + used, end_serial })
    }

    /// Looks at the current position of the pass. A record is copied out.
    fn look(&mut self, pass: &DrainPass) -> Result<BufferEntry, Garbled> {
        let words = self.words_at(pass.position);
        let word = protocol::committed(&words[0]);
        if word == 0 {
            return Ok(BufferEntry::Nothing);
        }
        let head = Head::from_word(word);
        let bytes = usize::from(head.bytes);
        // A record must lie within what is reserved, and before the end of the data, around which none wraps.
        let garbled = Garbled::Head { position: pass.position, word };
        if bytes as u64 > pass.end - pass.position || bytes / 8 > words.len() {
            return Err(garbled);
        }
        if head.event == PADDING {
            let fills = bytes / 8 == words.len() && bytes.is_multiple_of(8);
            return if fills { Ok(BufferEntry::Padding { bytes }) } else { Err(garbled) };
        }
        if !head.is_sound() {
            return Err(garbled);
        }
        let serial = self.check_serial(head.serial, pass)?;
        copy(&words[..bytes / 8], &mut self.record[..bytes / 8]);
        // The word that was checked, and not the one that may stand in the buffer by now.
        self.record[0] = word;
        Ok(BufferEntry::Record { serial, bytes })
    }

    fn check_serial(&self, low: u32, pass: &DrainPass) -> Result<u64, Garbled> {
        let serial = unfold(self.next_serial, low);
        if serial < pass.end_serial {
            Ok(serial)
        } else {
            Err(Garbled::Serial { position: pass.position, serial: low, expected: self.next_serial })
        }
    }

    /// Throws away the buffer's content and goes on after it. This is for a buffer with a hole that a killed
    /// producer has left, when no producer writes into it any more. What is thrown away shows as a gap.
    pub fn abandon(&mut self) {
        // Only up to what is reserved by now. Everything is cleared, because an unwritten place must be zero.
        let reserved = self.buffer.reserved();
        self.buffer.data_from(0).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let ahead = u64::from(reserved.words.wrapping_sub((self.released >> 3) as u32)) * 8;
        self.give_back(self.released + ahead);
    }

    fn give_back(&mut self, position: u64) {
        self.released = position;
        protocol::release(self.buffer.released_word(), position);
    }

    fn clear(&self, position: u64, bytes: usize) {
        let words = &self.words_at(position)[..bytes / 8];
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn words_at(&self, position: u64) -> &'a [AtomicU64] {
        self.buffer.data_from((position & u64::from(self.buffer.capacity() - 1)) as u32)
    }
}

fn copy(from: &[AtomicU64], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Ordering::Relaxed);
    }
}
