//! The packets of one processor.

use std::io;

use mete_trace::block::RecordingId;
use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{EventLayout, Record, Value};

use super::classes::RAW;
use crate::Event;

/// What each packet begins with.
pub const MAGIC: u32 = 0xc1fc_1fc1;
/// Bytes of a packet's header and context.
const FRONT: usize = 4 + 16 + 4 + 5 * 8 + 4;
/// Where the context begins.
const CONTEXT: usize = 4 + 16 + 4;
/// Bytes after which a packet is closed.
const PACKET: usize = 256 << 10;

/// Writes one stream.
#[derive(Debug)]
pub struct Stream<W> {
    to: W,
    processor: u32,
    uuid: RecordingId,
    /// The open packet, its front included.
    packet: Vec<u8>,
    begin: u64,
    has_begun: bool,
    /// The time of the last record.
    time: u64,
    /// Lost events so far, and those that no packet has told of yet.
    lost: u64,
    untold: u64,
}

impl<W: io::Write> Stream<W> {
    /// No packet yet.
    pub fn new(to: W, processor: u32, uuid: RecordingId) -> Stream<W> {
        let packet = Vec::with_capacity(PACKET + (8 << 10));
        Stream { to, processor, uuid, packet, begin: 0, has_begun: false, time: 0, lost: 0, untold: 0 }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// The output's answer; so do the others.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let time = event.time_ns.unwrap_or(event.record.time).max(self.time);
        self.tell_loss(time)?;
        if self.packet.is_empty() {
            self.begin_packet(time);
        }
        self.time = time;
        self.record(event);
        if self.packet.len() >= PACKET { self.close_packet(time) } else { Ok(()) }
    }

    fn record(&mut self, event: &Event<'_>) {
        let record = &event.record;
        let layout = event.layout.filter(|layout| record.bytes.len() >= layout.least_bytes());
        let id = match (layout, record.event) {
            (None, DUMP_BEGIN | DUMP_FINISH) | (Some(_), _) => record.event,
            (None, _) => RAW,
        };
        self.put(&id.to_le_bytes());
        self.put(&self.time.to_le_bytes());
        self.put(&record.serial.to_le_bytes());
        self.put(&record.time.to_le_bytes());
        match layout {
            Some(layout) => self.fields(layout, record),
            None if id == RAW => self.raw(record),
            None => {}
        }
    }

    fn fields(&mut self, layout: &EventLayout, record: &Record<'_>) {
        for field in &layout.fields {
            let at = usize::from(field.offset);
            match field.value(record.bytes) {
                Some(Value::Text(text)) => {
                    self.put(text.as_bytes());
                    self.put(&[0]);
                }
                Some(Value::Bool(truth)) => self.put(&[truth.into()]),
                // Little endian there and here.
                Some(_) => self.put(&record.bytes[at..at + usize::from(field.bytes)]),
                None => {}
            }
        }
    }

    fn raw(&mut self, record: &Record<'_>) {
        self.put(&record.event.to_le_bytes());
        self.put(&(record.bytes.len() as u16).to_le_bytes());
        self.put(record.bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.packet.extend_from_slice(bytes);
    }

    /// So many events are missing here.
    pub fn lost(&mut self, events: u64) {
        self.untold += events;
    }

    /// A loss is a packet without records, from the record before to this time.
    fn tell_loss(&mut self, time: u64) -> io::Result<()> {
        if self.untold == 0 {
            return Ok(());
        }
        if !self.has_begun {
            // What is missing at the front is counted from somewhere, too.
            self.time = time;
            self.begin_packet(time);
        }
        self.close_packet(self.time)?;
        self.lost += std::mem::take(&mut self.untold);
        self.begin_packet(self.time);
        self.close_packet(time)
    }

    fn begin_packet(&mut self, time: u64) {
        self.begin = time;
        self.has_begun = true;
        self.packet.resize(FRONT, 0);
    }

    fn close_packet(&mut self, end: u64) -> io::Result<()> {
        if self.packet.is_empty() {
            return Ok(());
        }
        let bits = self.packet.len() as u64 * 8;
        let mut front = Vec::with_capacity(FRONT);
        front.extend_from_slice(&MAGIC.to_le_bytes());
        front.extend_from_slice(&self.uuid);
        front.extend_from_slice(&[0; 4]);
        debug_assert_eq!(front.len(), CONTEXT);
        for number in [self.begin, end.max(self.begin), bits, bits, self.lost] {
            front.extend_from_slice(&number.to_le_bytes());
        }
        front.extend_from_slice(&self.processor.to_le_bytes());
        self.packet[..FRONT].copy_from_slice(&front);
        self.to.write_all(&self.packet)?;
        self.packet.clear();
        Ok(())
    }

    /// Closes what is open.
    ///
    /// # Errors
    ///
    /// See [`Stream::event`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.tell_loss(self.time)?;
        self.close_packet(self.time)?;
        self.to.flush()
    }
}
