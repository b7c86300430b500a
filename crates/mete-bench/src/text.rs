//! The processor time of turning a recorded event into text (NEW-6): by this project, by babeltrace2 for the
//! same events in its own format, and by perf script for a recording of its own. Processor time is a fair
//! measure, because each reader has one thread and none of them waits.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mete_base::processors::thread_time_ns;
use mete_convert::{Ctf, CtfVersion, Text, convert};
use mete_measure::Bar;
use mete_measure::interleave::{Samples, interleave, quotients};
use mete_measure::processor;
use mete_measure::reason::Reason;
use mete_measure::report::Row;
use mete_trace::{Filter, Trace};

use crate::child::{Owned, check_installed};
use crate::context::Context;
use crate::kernel::perf_record::record_messages;
use crate::scratch::Scratch;
use crate::synthetic::write_trace;

/// Events of the trace that is converted; and messages while perf records, with about four events each.
const EVENTS: u64 = 1_000_000;
const MESSAGES: u32 = 50_000;
/// The longest time for one reader. The slowest one takes some seconds for this number of events.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Ours,
    Babeltrace,
    PerfScript,
}

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    use Reader::{Babeltrace, Ours, PerfScript};
    let events = if context.options.is_quick { EVENTS / 5 } else { EVENTS };
    let rounds = if context.options.is_quick { 2 } else { 7 };
    let mut files = Files::default();
    let variants = [Ours, Babeltrace, PerfScript];
    let samples = interleave("events to text", rounds, &variants, context.progress, |reader| match reader {
        Ours => files.ours(events),
        Babeltrace => files.babeltrace(events),
        PerfScript => files.perf_script(),
    });
    let row = |name: &str, reader| Row::new(format!("text: {name}"), "ns", samples.of(reader));
    vec![
        row("an event, mete show", Ours).note("into /dev/null, as for the others"),
        row("an event, babeltrace2", Babeltrace).note("the same events, from mete convert --to ctf1"),
        row("an event, perf script", PerfScript).note("perf record of sched_switch and sched_waking"),
        ratio("babeltrace2", Babeltrace, &samples),
        ratio("perf script", PerfScript, &samples),
    ]
}

fn ratio(name: &str, reader: Reader, samples: &Samples<Reader>) -> Row {
    let ratio = samples.of(reader).and_then(|theirs| quotients(&theirs, &samples.of(Reader::Ours)?));
    Row::new(format!("text: {name} / mete show"), "ratio", ratio).bar(Bar::AtLeast(10.0))
}

/// The readers' files, which are made when they are first read.
#[derive(Default)]
struct Files {
    scratch: Option<Scratch>,
    /// The number of events that perf has recorded, once it has.
    perfs: Option<u64>,
}

impl Files {
    fn folder(&mut self) -> Result<&Path, Reason> {
        if self.scratch.is_none() {
            self.scratch = Some(Scratch::new()?);
        }
        self.scratch.as_ref().map(Scratch::path).ok_or_else(|| Reason::new("there is no folder"))
    }

    fn trace(&mut self, events: u64) -> Result<Trace, Reason> {
        let path = self.folder()?.join("trace");
        if !path.exists() {
            write_trace(&path, events, 2)?;
        }
        Trace::open(path).map_err(Reason::from_error)
    }

    fn ours(&mut self, events: u64) -> Result<f64, Reason> {
        let trace = self.trace(events)?;
        let to = File::create("/dev/null")?;
        let before = thread_time_ns();
        let done = convert(&trace, Filter::default(), &mut Text::new(to))?;
        Ok(per_event(thread_time_ns() - before, done.events))
    }

    fn babeltrace(&mut self, events: u64) -> Result<f64, Reason> {
        check_installed("babeltrace2")?;
        let path = self.folder()?.join("ctf");
        if !path.exists() {
            fs::create_dir(&path)?;
            let trace = self.trace(events)?;
            convert(&trace, Filter::default(), &mut Ctf::new(&path, CtfVersion::One, &trace))?;
        }
        let took = run(&["babeltrace2", &path.to_string_lossy()])?;
        Ok(per_event(took, events))
    }

    fn perf_script(&mut self) -> Result<f64, Reason> {
        let folder = self.folder()?.to_owned();
        let events = match self.perfs {
            Some(events) => events,
            None => *self.perfs.insert(record_messages(&folder, processor::quietest(), MESSAGES)?),
        };
        let data = folder.join("data");
        Ok(per_event(run(&["perf", "script", "--input", &data.to_string_lossy()])?, events))
    }
}

/// The processor time of a program whose output is discarded, in nanoseconds.
fn run(words: &[&str]) -> Result<u64, Reason> {
    let (program, arguments) = words.split_first().ok_or_else(|| Reason::new("no program"))?;
    // Only ended children count, and no other child of this process ends meanwhile.
    let before = processor_time_of_ended_ns();
    let mut process = Owned::start(program, arguments, None, |command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    })?;
    if process.ends_within(LIMIT) {
        Ok(processor_time_of_ended_ns() - before)
    } else {
        Err(Reason::new(format!("{program} did not end well within {} s", LIMIT.as_secs())))
    }
}

/// The processor time of all processes that this one has started and waited for.
fn processor_time_of_ended_ns() -> u64 {
    // SAFETY: an all-zero `rusage` is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage`, for which there is room. The call cannot fail with these
    // arguments.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

fn per_event(ns: u64, events: u64) -> f64 {
    ns as f64 / events.max(1) as f64
}
