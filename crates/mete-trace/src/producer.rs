//! The Rust producer: records events into one processor's buffer.

use core::sync::atomic::Ordering;

use mete_log::Ticks;
use rustix::thread::futex;

use crate::buffer::Buffer;
use crate::protocol::{self, Place};
use crate::record::{HEADER_BYTES, Head, MAX_BYTES, PADDING};

/// What happened to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the flush thread is to be called at the low-water mark"]
pub enum Outcome {
    /// It is in the buffer.
    Written,
    /// It is in the buffer, and less is free now than the low-water mark asks for. The caller should
    /// [call](Producer::call_flush) the flush thread. Without a call that thread comes later by itself.
    WrittenAtMark,
    /// There was no room. Its serial number is taken, so the gap shows the loss.
    Lost,
}

/// Records into one buffer. Any number of producers may share it. They should run on the buffer's own
/// processor, because otherwise they slow each other down.
///
/// A producer in another process may be killed after it took a place and before it wrote its record. It
/// leaves a hole, at which the flush thread stops; see [`Consumer::abandon`](crate::Consumer::abandon).
#[derive(Clone, Copy, Debug)]
pub struct Producer<'a> {
    buffer: Buffer<'a>,
}

impl<'a> Producer<'a> {
    /// A producer for this buffer.
    pub fn new(buffer: Buffer<'a>) -> Producer<'a> {
        Producer { buffer }
    }

    /// Records one event: its number and its fields' words. It takes no lock, makes no system call, and
    /// executes one locked instruction. It may call `clock` several times; the last reading is the time
    /// stamp.
    ///
    /// An event that is larger than the largest record, or whose number means padding, is lost.
    #[inline(always)]
    pub fn record(&self, event: u16, fields: &[u64], clock: impl Fn() -> Ticks) -> Outcome {
        let bytes = HEADER_BYTES + fields.len() * 8;
        if bytes > MAX_BYTES || event == PADDING {
            return self.lose();
        }
        let claim = self.claim(bytes as u32, clock);
        let Ok(place) = claim else { return Outcome::Lost };
        if place.padding > 0 {
            self.pad(&place);
        }
        self.write(event, bytes as u16, fields, &place);
        let mark = self.buffer.mark();
        // Only the record that crosses the mark asks for a call: the ones after it would only repeat it.
        let crosses = place.used >= mark && place.used - place.padding - (bytes as u32) < mark;
        if crosses { Outcome::WrittenAtMark } else { Outcome::Written }
    }

    #[inline(always)]
    fn claim(&self, bytes: u32, clock: impl Fn() -> Ticks) -> Result<Place, u32> {
        let (reserve, released) = (self.buffer.reserve_word(), self.buffer.released_word());
        protocol::claim(reserve, released, self.buffer.capacity(), bytes, || clock().get())
    }

    #[inline(always)]
    fn write(&self, event: u16, bytes: u16, fields: &[u64], place: &Place) {
        let words = self.buffer.data_from(place.offset);
        let head = Head { event, bytes, serial: place.serial };
        let body = core::iter::once(place.stamp).chain(fields.iter().copied());
        protocol::commit(&words[0], head.to_word(), words[1..].iter().zip(body));
    }

    #[cold]
    fn pad(&self, place: &Place) {
        let at = self.buffer.capacity() - place.padding;
        let head = Head { event: PADDING, bytes: place.padding as u16, serial: 0 };
        protocol::commit(&self.buffer.data_from(at)[0], head.to_word(), core::iter::empty());
    }

    /// Takes a serial number for an event that will not be written.
    #[cold]
    fn lose(&self) -> Outcome {
        self.miss(1);
        Outcome::Lost
    }

    /// Takes the serial numbers of this number of events that are known to be lost, so that the gap shows the
    /// loss.
    pub fn miss(&self, events: u32) {
        self.buffer.reserve_word().fetch_add(u64::from(events) << 32, Ordering::Relaxed);
    }

    /// Wakes the flush thread, in whatever process it runs. This makes a system call.
    #[cold]
    pub fn call_flush(&self) {
        let calls = self.buffer.calls();
        calls.fetch_add(1, Ordering::Release);
        // A failure means that no thread sleeps there.
        let _ = futex::wake(calls, futex::Flags::empty(), 1);
    }
}
