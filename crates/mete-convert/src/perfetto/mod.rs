//! Perfetto's protobuf, which ui.perfetto.dev draws.
//!
//! ```text
//!   switches, wake-ups ──▶ Schedule ──▶ ftrace bundles, one processor each ──▶ the schedule of the UI
//!   other events ────────▶ TrackEvents ──▶ a track of the thread, if its process is known, else of the processor
//!   gaps, flushes ───────▶ slices on tracks of their processor
//! ```
//!
//! The numbers of messages and fields are those of Perfetto's public `.proto` files (`trace_packet.proto`,
//! `ftrace_event_bundle.proto`, `track_event.proto`, …); only the fields written here are named here.

mod packets;
mod proto;
mod schedule;
mod threads;
mod tracks;

use std::io;

use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{Account, Gap, ReadError, Ticks, Trace};

use self::packets::Packets;
use self::schedule::Schedule;
use self::threads::write_thread;
use self::tracks::Tracks;
use crate::meaning::Meanings;
use crate::threads::Threads;
use crate::{Event, Format};

/// Writes a Perfetto trace.
#[derive(Debug)]
pub struct Perfetto<W> {
    packets: Packets<W>,
    threads: Threads,
    schedule: Schedule,
    tracks: Tracks,
}

impl<W: io::Write> Perfetto<W> {
    /// Writes this trace to this output.
    pub fn new(to: W, trace: &Trace) -> Perfetto<W> {
        let meanings = Meanings::of(&trace.description().description);
        let events = &trace.description().description.events;
        Perfetto {
            packets: Packets::new(to),
            schedule: Schedule::new(&meanings, events),
            tracks: Tracks::new(events, trace.description().clock.converter()),
            threads: Threads::new(&meanings, events),
        }
    }
}

impl<W: io::Write> Format for Perfetto<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let description = trace.description();
        // Threads that lived when recording began are known from the first reading of the clocks on.
        let from_ns = description.clock.anchors.iter().map(|anchor| anchor.monotonic_ns).min().unwrap_or(0);
        self.packets.begin(description);
        self.threads.begin(&description.machine);
        for (thread, known) in self.threads.known() {
            write_thread(thread, known, from_ns, &mut self.packets);
        }
        self.tracks.begin(&mut self.packets);
        self.packets.hand_on()
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        // If the clock cannot be converted, the ticks are at least in the right order.
        let time = event.time_ns.unwrap_or(event.record.time.get());
        let record = &event.record;
        // The gap before this event ends with it.
        self.tracks.close_gap(record.file, time, &mut self.packets);
        if matches!(record.event, DUMP_BEGIN | DUMP_FINISH) {
            self.tracks.flush(record.processor, time, record.event == DUMP_BEGIN, &mut self.packets);
            return self.packets.hand_on_if_full();
        }
        let packets = &mut self.packets;
        // Before the event is drawn: a new name already holds for it.
        self.threads.learn(record, |thread, known| write_thread(thread, known, time, packets));
        if let Some((number, is_on)) = record.switches() {
            self.schedule.switched(record.processor, number, is_on, time, &self.threads, &mut self.packets);
        }
        if !self.schedule.event(record, time, &self.threads, &mut self.packets) {
            self.tracks.instant(event, time, self.threads.of(record), &mut self.packets);
        }
        self.packets.hand_on_if_full()
    }

    fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) -> io::Result<()> {
        let after = after_ns.or(gap.after.map(Ticks::get));
        if gap.file == gap.processor {
            // Programs' own events are no part of the schedule, so their loss is no gap in it.
            self.schedule.lost(gap.processor, after, &self.threads, &mut self.packets);
        }
        self.tracks.lost(gap, after, &mut self.packets);
        self.packets.hand_on_if_full()
    }

    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        self.tracks.unreadable(error, &mut self.packets);
        self.packets.hand_on_if_full()
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        self.tracks.finish(accounts, &mut self.packets);
        self.packets.finish()
    }
}
