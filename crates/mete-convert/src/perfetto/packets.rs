//! The packets of a trace: a clock, the machine, bundles of scheduling events, and the packets of the tracks.

use std::collections::BTreeMap;
use std::io;

use mete_trace::TraceDescription;

use super::proto::Proto;

/// Fields of `Trace` and `TracePacket`.
mod field {
    pub const PACKET: u32 = 1;
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const SYSTEM_INFO: u32 = 45;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// Clocks by their numbers in Perfetto. The time of packets is BOOTTIME unless they say otherwise. Here it is
/// the trace's CLOCK_MONOTONIC, and the snapshot says that the two are equal.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// The one sequence of all packets.
const SEQUENCE: u64 = 1;
/// This packet begins the sequence.
const STATE_CLEARED: u64 = 1;
/// This packet needs the names that the sequence has interned.
const NEEDS_STATE: u64 = 2;

/// Bytes of packets that are collected before they are handed on.
const PIECE: usize = 256 << 10;
/// Bytes of a bundle.
const BUNDLE: usize = 64 << 10;

/// Writes packets.
#[derive(Debug)]
pub struct Packets<W> {
    to: W,
    ready: Proto,
    /// The open bundle of each processor.
    bundles: BTreeMap<u32, Proto>,
}

/// Takes packets, whatever the output is.
pub trait PacketSink {
    /// Adds an ftrace event of a processor.
    fn scheduling(&mut self, processor: u32, write: impl FnOnce(&mut Proto));
    /// Marks a gap in the processor's events.
    fn scheduling_lost(&mut self, processor: u32);
    /// Adds a `TrackEvent`.
    fn track_event(&mut self, time: u64, write: impl FnOnce(&mut Proto));
    /// Adds a `TrackDescriptor`.
    fn track(&mut self, write: impl FnOnce(&mut Proto));
    /// Adds the names of events and annotations.
    fn names(&mut self, write: impl FnOnce(&mut Proto));
    /// Adds processes and threads, as they are at this time.
    fn process_tree(&mut self, time: u64, write: impl FnOnce(&mut Proto));
}

impl<W: io::Write> Packets<W> {
    /// Writes to this output.
    pub fn new(to: W) -> Packets<W> {
        Packets { to, ready: Proto::default(), bundles: BTreeMap::new() }
    }

    /// Adds the packets that stand before all others.
    pub fn begin(&mut self, trace: &TraceDescription) {
        // Without any reading, the clocks are said to be equal at 0.
        let first = trace.clock.anchors.iter().min_by_key(|anchor| anchor.monotonic_ns);
        let monotonic = first.map_or(0, |anchor| anchor.monotonic_ns);
        let real = first.map_or(0, |anchor| anchor.realtime_ns);
        self.packet(field::CLOCK_SNAPSHOT, |snapshot| {
            for (clock, time) in [(BOOTTIME, monotonic), (MONOTONIC, monotonic), (REALTIME, real)] {
                snapshot.message(1, |it| {
                    it.uint(1, clock).uint(2, time);
                });
            }
            snapshot.uint(2, BOOTTIME);
        });
        // The description has both in one text.
        let (system, release) = trace.machine.kernel.split_once(' ').unwrap_or(("", ""));
        self.packet(field::SYSTEM_INFO, |info| {
            info.message(1, |name| {
                name.text(1, system).text(3, release).text(4, &trace.machine.architecture);
            });
        });
    }

    fn packet(&mut self, kind: u32, write: impl FnOnce(&mut Proto)) {
        self.ready.message(field::PACKET, |packet| {
            packet.uint(field::SEQUENCE_ID, SEQUENCE).message(kind, write);
        });
    }

    fn close_bundle(&mut self, processor: u32) {
        let Some(bundle) = self.bundles.get_mut(&processor).filter(|bundle| bundle.len() > 0) else { return };
        self.ready.message(field::PACKET, |packet| {
            packet.uint(field::SEQUENCE_ID, SEQUENCE).bytes_of(field::FTRACE_EVENTS, bundle.bytes());
        });
        bundle.clear();
    }

    /// Hands on the collected packets if there are enough.
    ///
    /// # Errors
    ///
    /// The output's error.
    pub fn hand_on_if_full(&mut self) -> io::Result<()> {
        if self.ready.len() >= PIECE { self.hand_on() } else { Ok(()) }
    }

    /// Hands on the collected packets.
    ///
    /// # Errors
    ///
    /// The output's error.
    pub fn hand_on(&mut self) -> io::Result<()> {
        self.to.write_all(self.ready.bytes())?;
        self.ready.clear();
        Ok(())
    }

    /// Hands on everything, open bundles included.
    ///
    /// # Errors
    ///
    /// The output's error.
    pub fn finish(&mut self) -> io::Result<()> {
        for processor in self.bundles.keys().copied().collect::<Vec<_>>() {
            self.close_bundle(processor);
        }
        self.hand_on()?;
        self.to.flush()
    }
}

/// Fields of `FtraceEventBundle`.
const BUNDLE_CPU: u32 = 1;
const BUNDLE_EVENT: u32 = 2;
const BUNDLE_LOST_EVENTS: u32 = 3;

impl<W: io::Write> PacketSink for Packets<W> {
    fn scheduling(&mut self, processor: u32, write: impl FnOnce(&mut Proto)) {
        let bundle = self.bundles.entry(processor).or_default();
        if bundle.len() == 0 {
            bundle.uint(BUNDLE_CPU, processor.into());
        }
        bundle.message(BUNDLE_EVENT, write);
        if bundle.len() >= BUNDLE {
            self.close_bundle(processor);
        }
    }

    fn scheduling_lost(&mut self, processor: u32) {
        // The mark is for a whole bundle, and says that events are missing before its first one.
        self.close_bundle(processor);
        let bundle = self.bundles.entry(processor).or_default();
        bundle.uint(BUNDLE_CPU, processor.into()).uint(BUNDLE_LOST_EVENTS, 1);
    }

    fn track_event(&mut self, time: u64, write: impl FnOnce(&mut Proto)) {
        self.ready.message(field::PACKET, |packet| {
            packet.uint(field::TIMESTAMP, time).uint(field::SEQUENCE_ID, SEQUENCE);
            packet.message(field::TRACK_EVENT, write).uint(field::SEQUENCE_FLAGS, NEEDS_STATE);
        });
    }

    fn track(&mut self, write: impl FnOnce(&mut Proto)) {
        self.packet(field::TRACK_DESCRIPTOR, write);
    }

    fn names(&mut self, write: impl FnOnce(&mut Proto)) {
        self.ready.message(field::PACKET, |packet| {
            packet.uint(field::SEQUENCE_ID, SEQUENCE).uint(field::SEQUENCE_FLAGS, STATE_CLEARED);
            packet.message(field::INTERNED_DATA, write);
        });
    }

    fn process_tree(&mut self, time: u64, write: impl FnOnce(&mut Proto)) {
        self.ready.message(field::PACKET, |packet| {
            packet.uint(field::TIMESTAMP, time).uint(field::SEQUENCE_ID, SEQUENCE);
            packet.message(field::PROCESS_TREE, write);
        });
    }
}
