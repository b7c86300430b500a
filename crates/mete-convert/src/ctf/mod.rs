//! Common Trace Format: a directory with one stream for each file of the trace, and the file `metadata`,
//! which describes the streams. The streams of both versions have the same bytes. The metadata are JSON in
//! version 2 (CTF2-SPEC-2.0, §5) and a language of their own in version 1.8.
//!
//! ```text
//!   packet:  magic, uuid, stream class │ begin, end, bits, bits, lost so far, processor │ records
//!   record:  event, time in ns │ serial number, time stamp as it was recorded │ fields, without gaps
//! ```
//!
//! A loss is an empty packet. It lasts from the record before the loss to the record after it, and its count
//! of lost events is larger than that of the packet before. Times do not go back within a stream, as the
//! format requires. If a processor's clock went back, the time stamp as it was recorded shows that.

mod classes;
mod json;
mod stream;
mod tsdl;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mete_trace::block::RecordingId;
use mete_trace::{Account, Gap, ReadError, Trace};

use self::classes::EventClasses;
use self::stream::Stream;
use crate::{Event, Format};

/// The version of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtfVersion {
    /// 1.8, for babeltrace2 of any version and Trace Compass.
    One,
    /// 2, for babeltrace2 from 2.1 on.
    Two,
}

/// Writes a directory of CTF.
#[derive(Debug)]
pub struct Ctf {
    directory: PathBuf,
    version: CtfVersion,
    classes: EventClasses,
    about: CtfEnvironment,
    streams: BTreeMap<u32, Stream<File>>,
}

/// What the metadata say in addition to the events.
#[derive(Clone, Debug, Default)]
pub struct CtfEnvironment {
    /// The recording's number.
    pub uuid: RecordingId,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds, if times are nanoseconds.
    pub offset_ns: Option<i64>,
    /// Names and values about the trace.
    pub environment: Vec<(String, String)>,
}

impl Ctf {
    /// Writes this trace into an existing directory.
    pub fn new(directory: &Path, version: CtfVersion, trace: &Trace) -> Ctf {
        let description = trace.description();
        let clock = &description.clock;
        let about = CtfEnvironment {
            uuid: description.recording_id().unwrap_or_default(),
            offset_ns: clock.converter().map(|_| clock.realtime_offset_ns().unwrap_or(0)),
            environment: environment(trace),
        };
        Ctf {
            directory: directory.to_owned(),
            version,
            classes: EventClasses::of(&description.description.events),
            about,
            streams: BTreeMap::new(),
        }
    }

    /// The stream of a file and its processor. It is made when it is needed first.
    fn stream(&mut self, file: u32, processor: u32) -> io::Result<&mut Stream<File>> {
        use std::collections::btree_map::Entry;
        match self.streams.entry(file) {
            Entry::Occupied(stream) => Ok(stream.into_mut()),
            Entry::Vacant(place) => {
                let to = create(&self.directory.join(format!("processor-{file}")))?;
                Ok(place.insert(Stream::new(to, processor, self.about.uuid)))
            }
        }
    }
}

/// A new file for its owner alone, as the trace's own files are.
fn create(path: &Path) -> io::Result<File> {
    // An existing file is never overwritten.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn environment(trace: &Trace) -> Vec<(String, String)> {
    let description = trace.description();
    let machine = &description.machine;
    [
        ("tracer_name", "mete"),
        ("recording", &description.recording),
        ("kernel", &machine.kernel),
        ("architecture", &machine.architecture),
        ("model", &machine.model),
        ("schema", &description.description.schema),
        ("missed_runs", &description.circumstances.missed_runs.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

impl Format for Ctf {
    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.stream(event.record.file, event.record.processor)?.event(event)
    }

    fn lost(&mut self, gap: &Gap, _: Option<u64>) -> io::Result<()> {
        self.stream(gap.file, gap.processor)?.lost(gap.events);
        Ok(())
    }

    /// Puts the error into the environment. The events that were in that part are a loss in the stream.
    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        let nth = self.about.environment.iter().filter(|(name, _)| name.starts_with("unreadable_")).count();
        // The environment must stay readable; the stream has every loss in any case.
        if nth < 1000 {
            self.about.environment.push((format!("unreadable_{nth}"), error.to_string()));
        }
        Ok(())
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        for account in accounts {
            let name = format!("completeness_of_file_{}", account.processor);
            let value = serde_json::to_string(account).map_err(io::Error::other)?;
            self.about.environment.push((name, value));
        }
        // The metadata come last: only now all errors and accounts are known.
        for stream in self.streams.values_mut() {
            stream.finish()?;
        }
        let metadata = match self.version {
            CtfVersion::One => tsdl::metadata(&self.classes, &self.about),
            CtfVersion::Two => json::metadata(&self.classes, &self.about),
        };
        create(&self.directory.join("metadata"))?.write_all(metadata.as_bytes())
    }
}
