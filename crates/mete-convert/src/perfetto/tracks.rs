//! Tracks for everything outside the schedule: other events, losses, flushes, and at the end what is in the
//! trace.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use mete_trace::description::Converter as Clock;
use mete_trace::{Account, EventLayout, Gap, ReadError, Value};

use super::packets::PacketSink;
use super::proto::Proto;
use crate::Event;
use crate::threads::Thread;

/// Fields of `TrackDescriptor`, `TrackEvent` and `DebugAnnotation`.
mod field {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const THREAD: u32 = 4;
    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const EVENT_NAME: u32 = 23;
    pub const ANNOTATION_NAME_IID: u32 = 1;
    pub const ANNOTATION_NAME: u32 = 10;
    pub const INTERNED_EVENT_NAMES: u32 = 2;
    pub const INTERNED_ANNOTATION_NAMES: u32 = 3;
}

/// `TrackEvent.Type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// The tracks of a processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ProcessorTrack {
    Events,
    Recorder,
}

/// The numbers of tracks: those of processors, of threads, and of what is missing in files.
const OF_PROCESSORS: u64 = 1 << 40;
const OF_THREADS: u64 = 2 << 40;
const OF_FILES: u64 = 3 << 40;
/// The track of the parts that cannot be read.
const UNREADABLE: u64 = 4 << 40;

/// The interned name of an event. These numbers begin with 1; 0 means no name.
fn interned_name(event: u16) -> u64 {
    u64::from(event) + 1
}

/// Adds a name to the interned ones of this kind.
fn intern(names: &mut Proto, kind: u32, iid: u64, name: &str) {
    names.message(kind, |it| {
        it.uint(1, iid).text(2, name);
    });
}

/// Writes tracks.
#[derive(Debug)]
pub struct Tracks {
    events: Vec<EventLayout>,
    /// For each event, by its number, the interned name of its first field. The other fields follow.
    fields: Vec<u64>,
    clock: Option<Clock>,
    processors: BTreeSet<(u32, ProcessorTrack)>,
    threads: HashSet<i32>,
    files: HashSet<u32>,
    /// For each file, the gap that lasts until its next event: the time of its beginning, and what is
    /// missing.
    gaps: BTreeMap<u32, (u64, Gap)>,
    latest: u64,
    has_unreadable: bool,
}

impl Tracks {
    /// Tracks for these events, none of them begun.
    pub fn new(events: &[EventLayout], clock: Option<Clock>) -> Tracks {
        let most = events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let (mut fields, mut next) = (vec![0; most], 1);
        for event in events {
            // Names begin with 1, as 0 means no name. Each field has one of its own, so none is looked up by
            // text.
            fields[usize::from(event.id)] = next;
            next += event.fields.len() as u64;
        }
        Tracks {
            events: events.to_vec(),
            fields,
            clock,
            processors: BTreeSet::new(),
            threads: HashSet::new(),
            files: HashSet::new(),
            gaps: BTreeMap::new(),
            latest: 0,
            has_unreadable: false,
        }
    }

    /// Writes the names of all events and fields.
    pub fn begin(&self, packets: &mut impl PacketSink) {
        packets.names(|names| {
            for event in &self.events {
                intern(names, field::INTERNED_EVENT_NAMES, interned_name(event.id), &event.name);
                let first = self.fields[usize::from(event.id)];
                for (iid, field) in (first..).zip(&event.fields) {
                    intern(names, field::INTERNED_ANNOTATION_NAMES, iid, &field.name);
                }
            }
        });
    }

    /// Writes an event at a moment, on the track of its thread or of its processor.
    pub fn instant(
        &mut self,
        event: &Event<'_>,
        time: u64,
        thread: Option<Thread>,
        packets: &mut impl PacketSink,
    ) {
        let record = &event.record;
        let track = match thread {
            Some(thread) => self.thread(thread, packets),
            None => self.lane(record.processor, ProcessorTrack::Events, packets),
        };
        let first = self.fields.get(usize::from(record.event)).copied().unwrap_or(0);
        packets.track_event(time, |it| {
            it.uint(field::TYPE, INSTANT).uint(field::TRACK_UUID, track);
            match event.layout {
                Some(layout) => {
                    it.uint(field::NAME_IID, interned_name(layout.id));
                    for (iid, (_, value)) in (first..).zip(layout.values(record.bytes)) {
                        annotate(it, |name| _ = name.uint(field::ANNOTATION_NAME_IID, iid), value.as_ref());
                    }
                }
                None => {
                    it.text(field::EVENT_NAME, event.name());
                    annotate_number(it, "number", record.event.into());
                }
            }
            annotate_number(it, "processor", record.processor.into());
            annotate_number(it, "serial", record.serial);
        });
    }

    /// Writes the beginning or the end of a flush, which is a slice on a track of its own.
    pub fn flush(&mut self, processor: u32, time: u64, begins: bool, packets: &mut impl PacketSink) {
        let track = self.lane(processor, ProcessorTrack::Recorder, packets);
        packets.track_event(time, |it| {
            it.uint(field::TYPE, if begins { BEGIN } else { END }).uint(field::TRACK_UUID, track);
            if begins {
                it.text(field::EVENT_NAME, "flush");
            }
        });
    }

    /// Begins a gap, which lasts to the next event of this file.
    pub fn lost(&mut self, gap: &Gap, time: Option<u64>, packets: &mut impl PacketSink) {
        let since = time.unwrap_or(0);
        self.close_gap(gap.file, since, packets);
        self.gaps.insert(gap.file, (since, *gap));
    }

    /// Ends the gap of a file, whose next event has come.
    pub fn close_gap(&mut self, file: u32, time: u64, packets: &mut impl PacketSink) {
        self.latest = self.latest.max(time);
        let Some((since, gap)) = self.gaps.remove(&file) else { return };
        // A gap at the front has no event before it.
        let since = if gap.after.is_none() { time } else { since.min(time) };
        let track = self.completeness(gap.file, gap.processor, packets);
        let why = if gap.unreadable { "cannot be read" } else { "lost" };
        packets.track_event(since, |it| {
            it.uint(field::TYPE, BEGIN).uint(field::TRACK_UUID, track);
            it.text(field::EVENT_NAME, &format!("{} events {why}", gap.events));
            annotate_number(it, "events", gap.events);
            annotate_number(it, "first serial", gap.first_serial);
        });
        packets.track_event(time, |it| _ = it.uint(field::TYPE, END).uint(field::TRACK_UUID, track));
    }

    /// Writes the error for a part of the trace that cannot be read.
    pub fn unreadable(&mut self, error: &ReadError, packets: &mut impl PacketSink) {
        if !std::mem::replace(&mut self.has_unreadable, true) {
            packets.track(|it| _ = it.uint(field::UUID, UNREADABLE).text(field::NAME, "not readable"));
        }
        packets.track_event(self.latest, |it| {
            it.uint(field::TYPE, INSTANT).uint(field::TRACK_UUID, UNREADABLE);
            it.text(field::EVENT_NAME, &error.to_string());
        });
    }

    /// Writes at the end what is in the trace, for each processor (NEW-2).
    pub fn finish(&mut self, accounts: &[Account], packets: &mut impl PacketSink) {
        // A gap at the end of a file has no event after it, and gets no length.
        for (file, time) in self.gaps.iter().map(|(file, (since, _))| (*file, *since)).collect::<Vec<_>>() {
            self.close_gap(file, time, packets);
        }
        for account in accounts {
            // The processor on which the events occurred, which has the track.
            let place = account.programs_of.unwrap_or(account.processor);
            let track = self.completeness(account.processor, place, packets);
            let time = self.clock.map_or(account.last_time.get(), |clock| clock.ns(account.last_time));
            packets.track_event(time, |it| {
                it.uint(field::TYPE, INSTANT).uint(field::TRACK_UUID, track);
                it.text(field::EVENT_NAME, &account.to_string());
                let numbers = [
                    ("records", account.records),
                    ("lost", account.lost),
                    ("unwritten", account.unwritten),
                    ("first_serial", account.first_serial),
                    ("end_serial", account.end_serial),
                    ("ended", account.ended.into()),
                ];
                numbers.into_iter().for_each(|(name, number)| annotate_number(it, name, number));
            });
        }
    }

    fn lane(&mut self, processor: u32, lane: ProcessorTrack, packets: &mut impl PacketSink) -> u64 {
        // Room for four tracks of each processor.
        let track = OF_PROCESSORS + u64::from(processor) * 4 + lane as u64;
        if self.processors.insert((processor, lane)) {
            let what = match lane {
                ProcessorTrack::Events => "events",
                ProcessorTrack::Recorder => "recorder",
            };
            let name = format!("processor {processor}: {what}");
            packets.track(|it| _ = it.uint(field::UUID, track).text(field::NAME, &name));
        }
        track
    }

    /// The track of what is in a file and what is not.
    fn completeness(&mut self, file: u32, processor: u32, packets: &mut impl PacketSink) -> u64 {
        let track = OF_FILES + u64::from(file);
        if self.files.insert(file) {
            let whose = if file == processor { "" } else { "programs on " };
            let name = format!("{whose}processor {processor}: completeness");
            packets.track(|it| _ = it.uint(field::UUID, track).text(field::NAME, &name));
        }
        track
    }

    fn thread(&mut self, thread: Thread, packets: &mut impl PacketSink) -> u64 {
        let track = OF_THREADS + u64::from(thread.thread as u32);
        if self.threads.insert(thread.thread) {
            packets.track(|it| {
                it.uint(field::UUID, track).message(field::THREAD, |it| {
                    it.int(field::THREAD_PID, thread.process.into());
                    it.int(field::THREAD_TID, thread.thread.into());
                });
            });
        }
        track
    }
}

/// Adds a number under a name.
fn annotate_number(event: &mut Proto, name: &str, number: u64) {
    annotate(event, |it| _ = it.text(field::ANNOTATION_NAME, name), Some(&Value::Unsigned(number)));
}

fn annotate(event: &mut Proto, name: impl FnOnce(&mut Proto), value: Option<&Value<'_>>) {
    event.message(field::ANNOTATIONS, |it| {
        name(it);
        match value {
            Some(Value::Bool(truth)) => _ = it.uint(2, (*truth).into()),
            Some(Value::Unsigned(number)) => _ = it.uint(3, *number),
            Some(Value::Signed(number)) => _ = it.int(4, *number),
            Some(Value::Float(number)) => _ = it.double(5, *number),
            Some(Value::Text(text)) => _ = it.text(6, text),
            // Annotations have no kind for bytes.
            Some(Value::Bytes(bytes)) => {
                _ = it.text(6, &bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            }
            Some(Value::Address(address)) => _ = it.uint(7, *address),
            None => {}
        }
    });
}
