//! What a trace says of itself: `description.json` in its directory.
//!
//! It is written when recording begins and again when it ends. A trace whose recorder was killed
//! keeps the first one, which is enough to read it.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use mete_log::clock::Anchor;
use mete_schema::folder::{Folder, Trust};
use mete_schema::format::is_name;
use mete_schema::regular;
use rustix::fs::{AtFlags, fsync, linkat};
use serde::{Deserialize, Serialize};

use crate::completeness::Account;
use crate::directory;
use crate::missed::{self, MissedRuns};
use crate::names::{self, ThreadName};
use crate::record::{FIRST_RESERVED, HEADER_BYTES, MAX_BYTES};
use crate::switch::{self, Switches};
use crate::symbols::AddressName;

/// The name of the file.
pub const FILE_NAME: &str = "description.json";
/// The name of the description that it has replaced, which is read where it cannot be.
pub const FORMER_FILE_NAME: &str = "description.before.json";
/// The name of a description that is not whole yet.
pub(crate) const NEW_FILE_NAME: &str = "description.json.new";
/// What the field `format` says.
pub const FORMAT: &str = "mete trace";
/// The version of the format: that of the blocks, too.
pub const VERSION: u32 = 1;
/// What names must be, so that they steer no terminal and are no code or markup wherever a trace is written to.
const NO_NAME: &str = "names are C identifiers of at most 64 letters";
/// The largest description that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The events of a trace: what the schema language makes of a schema's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The text of the schema, as the user wrote it.
    pub schema: String,
    /// The layout of each event's records.
    pub events: Vec<EventLayout>,
}

/// How the records of one event look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLayout {
    /// The number in the records' headers; from `0xfff0` on only those of the recorder's marks that have fields.
    pub id: u16,
    /// The name.
    pub name: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// The fields, in the order in which they were declared.
    pub fields: Vec<FieldLayout>,
}

/// Where one field lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldLayout {
    /// The name.
    pub name: String,
    /// What the bytes mean.
    pub kind: FieldKind,
    /// Bytes from the beginning of the record; fields begin at 16.
    pub offset: u16,
    /// Bytes of the field.
    pub bytes: u16,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

/// What a field's bytes mean. Numbers are little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// An integer of 1, 2, 4 or 8 bytes, never negative.
    Unsigned,
    /// An integer of 1, 2, 4 or 8 bytes in two's complement.
    Signed,
    /// A number of 4 or 8 bytes in the IEEE 754 format.
    Float,
    /// One byte: false if it is 0, else true.
    Bool,
    /// A place in memory, of 8 bytes.
    Address,
    /// Text in UTF-8, ended by a zero byte or by the end of the field.
    Text,
    /// Bytes without further meaning.
    Bytes,
}

impl FieldKind {
    fn may_have(self, bytes: u16) -> bool {
        match self {
            FieldKind::Unsigned | FieldKind::Signed => matches!(bytes, 1 | 2 | 4 | 8),
            FieldKind::Float => matches!(bytes, 4 | 8),
            FieldKind::Bool => bytes == 1,
            FieldKind::Address => bytes == 8,
            FieldKind::Text | FieldKind::Bytes => bytes > 0,
        }
    }
}

/// A description that describes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// Two events share a number or name, the number is reserved, or the name is none.
    #[error("event {name:?} (number {id}): {what}")]
    Event {
        /// Its name.
        name: String,
        /// Its number.
        id: u16,
        /// What is wrong.
        what: &'static str,
    },
    /// A field that cannot be.
    #[error("field {field:?} of event {event:?}: {what}")]
    Field {
        /// The event.
        event: String,
        /// The field.
        field: String,
        /// What is wrong.
        what: &'static str,
    },
}

impl Description {
    /// Checks numbers, names and places.
    ///
    /// # Errors
    ///
    /// [`DescriptionError`] for the first event or field that cannot be.
    pub fn check(&self) -> Result<(), DescriptionError> {
        let (mut ids, mut names) = (std::collections::HashSet::new(), std::collections::HashSet::new());
        for event in &self.events {
            let is_mark = switch::marks().contains(event) || missed::mark() == *event;
            let what = if !is_name(&event.name) {
                NO_NAME
            } else if event.id >= FIRST_RESERVED && !is_mark {
                "numbers from 65520 on are reserved"
            } else if !ids.insert(event.id) {
                "another event has this number"
            } else if !names.insert(event.name.as_str()) {
                "another event has this name"
            } else {
                event.check()?;
                continue;
            };
            return Err(DescriptionError::Event { name: event.name.clone(), id: event.id, what });
        }
        Ok(())
    }
}

impl EventLayout {
    fn check(&self) -> Result<(), DescriptionError> {
        for field in &self.fields {
            let end = usize::from(field.offset) + usize::from(field.bytes);
            let what = if !is_name(&field.name) {
                NO_NAME
            } else if usize::from(field.offset) < HEADER_BYTES || end > MAX_BYTES {
                "it must lie between byte 16 and byte 4096 of the record"
            } else if !field.kind.may_have(field.bytes) {
                "its kind has no such size"
            } else {
                continue;
            };
            let (event, field) = (self.name.clone(), field.name.clone());
            return Err(DescriptionError::Field { event, field, what });
        }
        Ok(())
    }

    /// Bytes that a record must have so that all fields are in it.
    pub fn least_bytes(&self) -> usize {
        let ends = self.fields.iter().map(|field| usize::from(field.offset) + usize::from(field.bytes));
        ends.max().unwrap_or(HEADER_BYTES)
    }
}

/// Which clock stamped the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processors' own counters (on x86-64 the time-stamp counter).
    Counter,
    /// CLOCK_MONOTONIC in nanoseconds.
    Monotonic,
}

impl ClockSource {
    /// Reads it.
    #[inline]
    pub fn now(self) -> u64 {
        match self {
            ClockSource::Counter => mete_log::clock::ticks(),
            ClockSource::Monotonic => mete_log::clock::monotonic_ns(),
        }
    }
}

/// All clocks at one moment, read on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// The processor that read them.
    pub processor: u32,
    /// The trace's clock.
    pub ticks: u64,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME.
    pub realtime_ns: u64,
}

impl ClockAnchor {
    /// Reads the clocks; `processor` is where the caller runs.
    pub fn now(source: ClockSource, processor: u32) -> ClockAnchor {
        let anchor = Anchor::now();
        let monotonic = mete_log::clock::monotonic_ns();
        let real = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let real_ns = real.tv_sec as u64 * 1_000_000_000 + real.tv_nsec as u64;
        let ticks = match source {
            ClockSource::Counter => anchor.ticks,
            ClockSource::Monotonic => anchor.ns,
        };
        let realtime_ns = real_ns - monotonic.saturating_sub(anchor.ns);
        ClockAnchor { processor, ticks, monotonic_ns: anchor.ns, realtime_ns }
    }
}

/// The trace's clock and how it lies beside the system's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Which clock.
    pub source: ClockSource,
    /// Readings at the beginning and the end, on every processor: a straight line through the
    /// first and the last turns ticks into nanoseconds, and how far the others lie from it tells
    /// how well the processors' clocks agree.
    pub anchors: Vec<ClockAnchor>,
}

impl Clock {
    /// The line through the first and the last reading; `None` if there are not two.
    fn line(&self) -> Option<Line> {
        let at = |anchor: &ClockAnchor| Anchor { ticks: anchor.ticks, ns: anchor.monotonic_ns };
        let first = self.anchors.iter().min_by_key(|anchor| anchor.ticks)?;
        let last = self.anchors.iter().max_by_key(|anchor| anchor.ticks)?;
        Line::between(at(first), at(last))
    }

    /// Turns ticks into CLOCK_MONOTONIC nanoseconds; `None` if the trace has no two readings.
    pub fn converter(&self) -> Option<Converter> {
        match self.source {
            ClockSource::Monotonic => Some(Converter(None)),
            ClockSource::Counter => self.line().map(|line| Converter(Some(line))),
        }
    }

    /// How far the farthest reading lies from the line, in nanoseconds: the error to expect
    /// when times of different processors are compared. `None` without two readings.
    pub fn alignment_error_ns(&self) -> Option<u64> {
        let convert = self.converter()?;
        self.anchors.iter().map(|anchor| convert.ns(anchor.ticks).abs_diff(anchor.monotonic_ns)).max()
    }

    /// CLOCK_REALTIME less CLOCK_MONOTONIC when recording began, in nanoseconds.
    pub fn realtime_offset_ns(&self) -> Option<i64> {
        let first = self.anchors.iter().min_by_key(|anchor| anchor.monotonic_ns)?;
        i64::try_from(i128::from(first.realtime_ns) - i128::from(first.monotonic_ns)).ok()
    }
}

/// Turns a trace's ticks into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Converter(Option<Line>);

/// A straight line through an anchor. Nanoseconds for each tick are kept in units of 2^-64, so
/// that no event costs a division; what is lost thereby is below a nanosecond in centuries.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: Anchor,
    slope: i128,
}

impl Line {
    fn between(first: Anchor, last: Anchor) -> Option<Line> {
        if last.ticks <= first.ticks || last.ns <= first.ns {
            return None;
        }
        let rise = i128::from(last.ns - first.ns).checked_mul(1 << 64)?;
        Some(Line { first, slope: rise / i128::from(last.ticks - first.ticks) })
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        let distance = i128::from(ticks) - i128::from(self.first.ticks);
        // Saturates only where the result is out of range anyhow.
        let rise = distance.saturating_mul(self.slope).saturating_add(1 << 63) >> 64;
        (i128::from(self.first.ns) + rise).clamp(0, i128::from(u64::MAX)) as u64
    }
}

impl Converter {
    /// CLOCK_MONOTONIC nanoseconds at which the clock stood at `ticks`.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.0.map_or(ticks, |line| line.ns(ticks))
    }

    /// The first tick that [`Converter::ns`] gives these CLOCK_MONOTONIC nanoseconds, or later ones.
    pub fn ticks(&self, ns: u64) -> u64 {
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.ns(middle) < ns { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Where it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel and its release.
    pub kernel: String,
    /// Instruction set.
    pub architecture: String,
    /// The processors' name.
    pub model: String,
    /// Processors in use by the system.
    pub processors: usize,
    /// The threads that lived when recording began and when it ended.
    #[serde(default)]
    pub threads: Vec<ThreadName>,
    /// Those of them that had another name or process when they were looked at first: as they were then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_before: Vec<ThreadName>,
    /// Names of addresses in records, in their order: those of the kernel's own data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<AddressName>,
}

impl Machine {
    /// This machine, and the threads that live on it now.
    pub fn here() -> Machine {
        let name = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Machine {
            kernel: format!("{} {}", text(name.sysname()), text(name.release())),
            architecture: text(name.machine()),
            model: model.map(|(_, model)| model.trim().to_owned()).unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(0, |number| number.get()),
            threads: names::living(),
            threads_before: Vec::new(),
            symbols: Vec::new(),
        }
    }
}

/// How it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    /// Bytes of each processor's buffer.
    pub buffer_bytes: u64,
    /// The low-water mark when recording began: percent of the buffer that were to stay free.
    pub low_water_percent: u8,
    /// Why the buffers were not locked into memory, if they were not.
    pub not_locked: Option<String>,
    /// Bytes that a flight recorder kept, if it was one: what came earlier is not in the trace.
    pub flight_bytes: Option<u64>,
    /// How often the kernel left out a program that would have recorded something, because an interrupt came to its
    /// place in the middle of it. What it would have recorded has no serial number: this is no gap, and a loss.
    #[serde(default)]
    pub missed_runs: u64,
    /// Between which moments these were, in order, as far as the recorder has looked meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedRuns>,
    /// Names of the accounting domains by their numbers, if anybody was bound to one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Events that were off, and that were switched while recording.
    #[serde(default)]
    pub switches: Switches,
    /// Each flush thread.
    pub flush_threads: Vec<FlushThread>,
}

/// How one flush thread ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushThread {
    /// The processor whose buffer it flushed.
    pub processor: u32,
    /// Its priority, or why it is an ordinary one.
    pub scheduling: String,
    /// Whether it was bound to its processor, or why not.
    pub placement: String,
    /// What was wrong in the buffer, last: a program that wrote what is no record into it. What was thrown away then
    /// shows as a gap, whose size may be of that program's making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garbled: Option<String>,
}

/// All that `description.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDescription {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The recording's number, in hexadecimal: every block carries it.
    pub recording: String,
    /// Whether recording was stopped in order. If not, `completeness` is empty and the blocks tell.
    pub finished: bool,
    /// Bytes of each block.
    pub block_bytes: u32,
    /// The files of blocks.
    pub files: Vec<TraceFile>,
    /// The clock.
    pub clock: Clock,
    /// The machine.
    pub machine: Machine,
    /// How it was recorded.
    pub circumstances: Circumstances,
    /// For each processor what is in the trace and what is not.
    pub completeness: Vec<Account>,
    /// Schema and layouts.
    #[serde(flatten)]
    pub description: Description,
}

/// One processor's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// The processor. Files of programs' events beside the kernel's have the numbers behind the last one's.
    pub processor: u32,
    /// The file's name, in the trace's directory.
    pub name: String,
    /// The processor whose programs' own events are in this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs_of: Option<u32>,
}

impl TraceFile {
    /// The processor that what is in the file happened on.
    pub fn place(&self) -> u32 {
        self.programs_of.unwrap_or(self.processor)
    }
}

/// The name of a processor's file.
pub fn file_name(processor: u32) -> String {
    format!("processor-{processor}.trace")
}

/// Whether this is [the name](file_name) of some processor's file.
pub(crate) fn is_block_file(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("processor-")?.strip_suffix(".trace"));
    number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| name == &*file_name(number)))
}

/// Why a description could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionFileError {
    /// The system refused.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: std::path::PathBuf,
        /// The answer.
        source: std::io::Error,
    },
    /// There is none.
    #[error("cannot read {path}: {why}", path = path.display())]
    Absent {
        /// The file.
        path: std::path::PathBuf,
        /// What may have happened.
        why: &'static str,
    },
    /// Not what a recorder writes.
    #[error("{path} describes no trace: {why}", path = path.display())]
    Content {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl TraceDescription {
    /// Writes it into a directory so that at any moment there is a whole one or none, also if the machine stops.
    ///
    /// # Errors
    ///
    /// [`DescriptionFileError`] if the system refuses; the old one is still there then.
    pub fn write(&self, directory: &Path) -> Result<(), DescriptionFileError> {
        let failed = |source| DescriptionFileError::File { what: "find", path: directory.into(), source };
        let folder = Folder::find(directory, Trust::Links).map_err(failed)?;
        self.write_into(&folder, directory)
    }

    /// The same into a directory that is held, and has this path for people.
    pub(crate) fn write_into(&self, folder: &Folder, directory: &Path) -> Result<(), DescriptionFileError> {
        let path = directory.join(FILE_NAME);
        let written = serde_json::to_vec_pretty(self).map_err(std::io::Error::other);
        let result = written.and_then(|bytes| write_synced(folder, &bytes));
        let result = result.and_then(|()| {
            keep_former(folder);
            folder.rename(NEW_FILE_NAME, FILE_NAME)
        });
        if result.is_err() {
            // What was written of it is of no use; that it cannot be removed is not the news.
            let _ = folder.remove(NEW_FILE_NAME);
        }
        let failed = |source| DescriptionFileError::File { what: "write", path, source };
        result.map(|()| sync_directory(folder)).map_err(failed)
    }

    /// Reads and checks it.
    ///
    /// # Errors
    ///
    /// [`DescriptionFileError`] if it cannot be read or cannot be right.
    pub fn read(directory: &Path) -> Result<TraceDescription, DescriptionFileError> {
        match TraceDescription::read_file(directory.join(FILE_NAME)) {
            Err(DescriptionFileError::File { path, source, .. })
                if source.kind() == std::io::ErrorKind::NotFound && directory.is_dir() =>
            {
                Err(DescriptionFileError::Absent { path, why: absence(directory) })
            }
            read => read,
        }
    }

    /// Reads the one that it has replaced: what was known when recording began is enough to read a trace.
    pub(crate) fn read_former(directory: &Path) -> Option<TraceDescription> {
        TraceDescription::read_file(directory.join(FORMER_FILE_NAME)).ok()
    }

    /// Whether a directory has one that can be read.
    pub(crate) fn is_there(directory: &Path) -> bool {
        TraceDescription::read(directory).is_ok() || TraceDescription::read_former(directory).is_some()
    }

    fn read_file(path: PathBuf) -> Result<TraceDescription, DescriptionFileError> {
        let failed = |source| DescriptionFileError::File { what: "read", path: path.clone(), source };
        let wrong = |why: String| DescriptionFileError::Content { path: path.clone(), why };
        let file = regular::open(&path).map_err(failed)?;
        let mut bytes = Vec::new();
        // One byte beyond the limit is enough to refuse it.
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(wrong(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        TraceDescription::parse(&bytes).map_err(wrong)
    }

    /// Reads it from the file's bytes.
    ///
    /// # Errors
    ///
    /// A sentence if it cannot be right.
    pub fn parse(bytes: &[u8]) -> Result<TraceDescription, String> {
        let this: TraceDescription =
            // It may quote what it does not know.
            serde_json::from_slice(bytes).map_err(|error| names::without_controls(&error.to_string()))?;
        if this.format != FORMAT || this.version != VERSION {
            let (format, version) = (&this.format, this.version);
            return Err(format!(
                "it is {format:?} version {version}; this program reads {FORMAT:?} version {VERSION}"
            ));
        }
        if !crate::block::is_sound_block_size(this.block_bytes) {
            return Err(format!("blocks cannot have {} bytes", this.block_bytes));
        }
        this.recording_id().ok_or_else(|| format!("{:?} is no recording's number", this.recording))?;
        // A name with a path in it would lead out of the directory.
        match this.files.iter().find(|file| file.name != file_name(file.processor)) {
            Some(file) => Err(format!("processor {}'s file cannot be {:?}", file.processor, file.name)),
            None => this.description.check().map_err(|error| error.to_string()).map(|()| this),
        }
    }

    /// The recording's number as blocks carry it.
    pub fn recording_id(&self) -> Option<crate::block::RecordingId> {
        let number = u128::from_str_radix(&self.recording, 16).ok()?;
        (self.recording.len() == 32).then(|| number.to_be_bytes())
    }
}

/// Without the sync, a machine that stops may keep the name and lose what is in the file, the old one with it.
fn write_synced(folder: &Folder, bytes: &[u8]) -> std::io::Result<()> {
    // One that a killed recorder has left is of no use, and may be anybody's.
    let _ = folder.remove(NEW_FILE_NAME);
    let mut file = folder.create(NEW_FILE_NAME, directory::OF_FILE)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Without it, one damaged file would leave blocks that nothing describes. Where it cannot be kept there is none.
fn keep_former(folder: &Folder) {
    let _ = folder.remove(FORMER_FILE_NAME);
    let _ = linkat(folder, FILE_NAME, folder, FORMER_FILE_NAME, AtFlags::empty());
}

/// Has the names in a directory, and its own, outlive the machine. Not every file system can; what is in the files is
/// whole in any case.
fn sync_directory(folder: &Folder) {
    for directory in
        [folder.open().ok(), folder.folder("..").and_then(|above| above.open()).ok()].into_iter().flatten()
    {
        let _ = fsync(directory);
    }
}

/// Why there is no description in a directory.
fn absence(directory: &Path) -> &'static str {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    if names.iter().any(|name| is_block_file(name)) {
        return "it is missing, and without it the blocks that are there cannot be read; a dump that was killed leaves such";
    }
    match names.as_slice() {
        [name] if name == NEW_FILE_NAME => {
            "it is missing: the recorder was killed before it recorded anything; the directory can be recorded into again"
        }
        [] => "the directory is empty; nothing was recorded into it",
        _ => "it is missing: the directory is no trace's",
    }
}

/// A recording's number as `description.json` has it.
pub fn recording_text(id: crate::block::RecordingId) -> String {
    format!("{:032x}", u128::from_be_bytes(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_7_ticks_and_nanoseconds_are_converted_both_ways() {
        let anchor = |ticks, ns| ClockAnchor { processor: 0, ticks, monotonic_ns: ns, realtime_ns: ns + 50 };
        let anchors =
            vec![anchor(3_000_000, 1_000_000), anchor(6_000_000, 2_000_000), anchor(4_500_300, 1_500_000)];
        let clock = Clock { source: ClockSource::Counter, anchors };
        let convert = clock.converter().unwrap();
        let ticks = convert.ticks(1_500_000);
        assert_eq!(
            (convert.ns(4_500_000), convert.ns(ticks), convert.ns(ticks - 1)),
            (1_500_000, 1_500_000, 1_499_999)
        );
        assert_eq!(clock.alignment_error_ns(), Some(100));
        assert_eq!(clock.realtime_offset_ns(), Some(50));
        let once = Clock { anchors: clock.anchors[..1].to_vec(), ..clock };
        assert!(once.converter().is_none());
    }
    #[test]
    fn new_6_what_cannot_be_a_name_in_a_schema_is_none_in_a_description() {
        let field = |name: &str| FieldLayout {
            name: name.to_owned(),
            kind: FieldKind::Bool,
            offset: 16,
            bytes: 1,
            doc: String::new(),
        };
        let check = |event: &str, of: &str| {
            let (name, doc, fields) = (event.to_owned(), String::new(), vec![field(of)]);
            Description { schema: String::new(), events: vec![EventLayout { id: 20, name, doc, fields }] }
                .check()
        };
        assert_eq!(check("SCHEDIN", "_pid2"), Ok(()));
        for name in ["", "A\u{1b}[2J", "a b", "2a", "é", "a,b", &"x".repeat(65)] {
            for refused in [check(name, "pid"), check("SCHEDIN", name)] {
                let said = refused.unwrap_err().to_string();
                assert!(said.ends_with(NO_NAME) && !said.contains('\u{1b}'), "{said}");
            }
        }
    }
}
