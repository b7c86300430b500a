//! The packets of a trace: a clock, the machine, bundles of scheduling events, and whatever the tracks say.

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

/// Clocks by their numbers in Perfetto. The time of packets is that of BOOTTIME unless they say otherwise; here
/// it is the trace's CLOCK_MONOTONIC, and the snapshot says that both are one.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// The sequence of all packets with interned names.
const SEQUENCE: u64 = 1;
/// This packet begins the sequence.
const STATE_CLEARED: u64 = 1;
/// This packet needs what the sequence has interned.
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

/// Where packets are put, whatever the output is.
pub trait Put {
    /// An ftrace event of a processor.
    fn scheduling(&mut self, processor: u32, write: impl FnOnce(&mut Proto));
    /// That the processor's events have a gap here.
    fn scheduling_lost(&mut self, processor: u32);
    /// A `TrackEvent`.
    fn track_event(&mut self, time: u64, write: impl FnOnce(&mut Proto));
    /// A `TrackDescriptor`.
    fn track(&mut self, write: impl FnOnce(&mut Proto));
    /// The names of events and annotations.
    fn names(&mut self, write: impl FnOnce(&mut Proto));
    /// Processes and threads, as they are at this time.
    fn process_tree(&mut self, time: u64, write: impl FnOnce(&mut Proto));
}

impl<W: io::Write> Packets<W> {
    /// Into this output.
    pub fn new(to: W) -> Packets<W> {
        Packets { to, ready: Proto::default(), bundles: BTreeMap::new() }
    }

    /// The packets that stand before all others.
    pub fn begin(&mut self, trace: &TraceDescription) {
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

    /// Hands on what is there if it is enough.
    ///
    /// # Errors
    ///
    /// The output's answer.
    pub fn hand_on_if_full(&mut self) -> io::Result<()> {
        if self.ready.len() >= PIECE { self.hand_on() } else { Ok(()) }
    }

    /// Hands on what is there.
    ///
    /// # Errors
    ///
    /// The output's answer.
    pub fn hand_on(&mut self) -> io::Result<()> {
        self.to.write_all(self.ready.bytes())?;
        self.ready.clear();
        Ok(())
    }

    /// Hands on everything.
    ///
    /// # Errors
    ///
    /// The output's answer.
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

impl<W: io::Write> Put for Packets<W> {
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
