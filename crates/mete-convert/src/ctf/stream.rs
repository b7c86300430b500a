//! The packets of one processor.

use std::io;

use mete_trace::block::RecordingId;
use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{EventLayout, Record, Value};

use super::classes::RAW;
use crate::Event;

/// The first bytes of each packet.
pub const MAGIC: u32 = 0xc1fc_1fc1;
/// Bytes of a packet's header and context.
const FRONT: usize = 4 + 16 + 4 + 5 * 8 + 4;
/// The offset of the context.
const CONTEXT: usize = 4 + 16 + 4;
/// The number of bytes after which a packet is closed.
const PACKET: usize = 256 << 10;

/// Writes one stream.
#[derive(Debug)]
pub struct Stream<W> {
    to: W,
    processor: u32,
    uuid: RecordingId,
    /// The open packet, with its header and context.
    packet: Vec<u8>,
    begin: u64,
    has_begun: bool,
    /// The time of the last record.
    time: u64,
    /// Lost events so far, and those of them that are in no packet yet.
    lost: u64,
    unwritten_losses: u64,
}

impl<W: io::Write> Stream<W> {
    /// A stream without packets.
    pub fn new(to: W, processor: u32, uuid: RecordingId) -> Stream<W> {
        let packet = Vec::with_capacity(PACKET + (8 << 10));
        Stream {
            to,
            processor,
            uuid,
            packet,
            begin: 0,
            has_begun: false,
            time: 0,
            lost: 0,
            unwritten_losses: 0,
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// The output's error; the same holds for the other methods.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        // Not before the last record: the format does not allow times that go back within a stream.
        let time = event.time_ns.unwrap_or(event.record.time.get()).max(self.time);
        self.write_loss(time)?;
        if self.packet.is_empty() {
            self.begin_packet(time);
        }
        self.time = time;
        self.record(event);
        // Closed after the record that fills it, so a packet may be larger by one record.
        if self.packet.len() >= PACKET { self.close_packet(time) } else { Ok(()) }
    }

    fn record(&mut self, event: &Event<'_>) {
        let record = &event.record;
        // A record that is shorter than its layout is written as bytes, like one without a layout.
        let layout = event.layout.filter(|layout| record.bytes.len() >= layout.least_bytes());
        let id = match (layout, record.event) {
            (None, DUMP_BEGIN | DUMP_FINISH) | (Some(_), _) => record.event,
            (None, _) => RAW,
        };
        self.put(&id.to_le_bytes());
        self.put(&self.time.to_le_bytes());
        self.put(&record.serial.to_le_bytes());
        self.put(&record.time.get().to_le_bytes());
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
                // Little endian in the record and in the stream.
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

    /// Notes that this number of events is missing here.
    pub fn lost(&mut self, events: u64) {
        self.unwritten_losses += events;
    }

    /// Writes a loss: a packet without records, from the record before to this time.
    fn write_loss(&mut self, time: u64) -> io::Result<()> {
        if self.unwritten_losses == 0 {
            return Ok(());
        }
        if !self.has_begun {
            // A reader takes the difference of two counts. So there must be a packet before the loss, even an
            // empty one.
            self.time = time;
            self.begin_packet(time);
        }
        // The packet with the records before the loss has the old count, and the empty one the new count.
        self.close_packet(self.time)?;
        self.lost += std::mem::take(&mut self.unwritten_losses);
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
        // The number of the stream class: there is one, with the number 0.
        front.extend_from_slice(&[0; 4]);
        debug_assert_eq!(front.len(), CONTEXT);
        // Content and packet have the same size: a packet is never padded.
        for number in [self.begin, end.max(self.begin), bits, bits, self.lost] {
            front.extend_from_slice(&number.to_le_bytes());
        }
        front.extend_from_slice(&self.processor.to_le_bytes());
        self.packet[..FRONT].copy_from_slice(&front);
        self.to.write_all(&self.packet)?;
        self.packet.clear();
        Ok(())
    }

    /// Closes the open packet.
    ///
    /// # Errors
    ///
    /// See [`Stream::event`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.write_loss(self.time)?;
        self.close_packet(self.time)?;
        self.to.flush()
    }
}
