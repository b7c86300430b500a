//! A recording while it runs: what is on, and what is changed meanwhile.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use mete_kernel::KernelError;
use mete_kernel::record::Areas;
use mete_trace::{Buffers, RecordError, Recorder, Report, Together};

use super::Options;
use super::dumps::Dumps;
use super::keep;
use super::origin::{CLOCK, Origin};
use super::probes::Probes;
use super::summary::Summary;
use super::wanted::Wanted;
use crate::output::Output;
use crate::{failure, interrupt};

/// Longer than a program of the kernel runs that is not interrupted.
const LONGEST_RUN: Duration = Duration::from_millis(10);
/// The answer to SIGUSR1 where there is no flight recorder.
const NOTHING_TO_DUMP: &str =
    "SIGUSR1: there is nothing to dump: all goes into the trace as it comes, unless it is told to --keep it";
/// How often it is looked whether the kernel has left out programs: so exactly does a trace tell when.
const LOOK_FOR_MISSED_EVERY: Duration = Duration::from_millis(100);
/// How old the description of a trace may become when events are switched.
const DESCRIBE_EVERY: Duration = Duration::from_secs(1);

/// Which events are to be recorded: those that are on, while the whole is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The whole.
    pub enable: bool,
    /// Each event of the schema.
    pub events: Vec<bool>,
}

impl Switches {
    fn at_first(wanted: &Wanted, enable: bool) -> Switches {
        let events = (0..wanted.schema.events.len()).map(|event| wanted.events.contains(&event));
        Switches { enable, events: events.collect() }
    }

    /// The events that are recorded.
    pub fn on(&self) -> Vec<usize> {
        let on = self.events.iter().enumerate().filter(|(_, is_on)| self.enable && **is_on);
        on.map(|(event, _)| event).collect()
    }
}

/// A running recording.
pub struct Session {
    // Fields are dropped in this order: programs, then threads.
    recording: Origin,
    pub recorder: Recorder<Together<Areas>>,
    pub wanted: Wanted,
    pub switches: Switches,
    dumps: Option<Dumps>,
    pub low_water_percent: u8,
    pub buffer_bytes: u64,
    /// How much a flight recorder keeps.
    pub keep: Option<u64>,
    /// Where its trace is, or is to be.
    pub directory: PathBuf,
    begin: Instant,
    /// What the kernel left out of programs that are gone.
    missed_runs: u64,
    /// Since when there are switches that the description on disk does not have.
    described: Option<Instant>,
    /// When it was looked last whether the kernel has left out programs.
    looked: Instant,
}

impl Session {
    /// Records from now on. Nothing is left if that fails.
    pub fn begin(options: &Options, wanted: Wanted) -> anyhow::Result<Session> {
        keep::check_memory(options)?;
        let recording = Origin::load(&wanted, options)?;
        check_place(options)?;
        let may_switch = options.parameters.is_some();
        let switches = Switches::at_first(&wanted, !options.off);
        let dumps = options.keep.map(|_| Dumps::new(options));
        let (domains, buffers) = (recording.domains(), recording.buffers());
        let keep = options.keep.map(|bytes| keep::at_least_blocks(bytes, buffers.processors()));
        let trace = mete_trace::Options { domains, ..trace_options(options, keep, &wanted, &switches) };
        let recorder = Recorder::start(buffers, wanted.description(may_switch), trace)?;
        let mut session = Session {
            recording,
            recorder,
            wanted,
            switches,
            dumps,
            low_water_percent: options.low_water,
            buffer_bytes: options.buffer,
            keep,
            directory: std::path::absolute(&options.output).unwrap_or_else(|_| options.output.clone()),
            begin: Instant::now(),
            missed_runs: 0,
            described: None,
            looked: Instant::now(),
        };
        match session.recording.switch(&session.switches.on()) {
            Ok(()) => Ok(Session { begin: Instant::now(), ..session }),
            Err(error) => {
                session.discard();
                Err(error.into())
            }
        }
    }

    /// What the command must have in its environment to take part.
    pub fn environment(&self) -> anyhow::Result<Option<(&'static str, String)>> {
        self.recording.environment()
    }

    /// Says which probes no program has that runs now.
    pub fn tell_missing(&self) {
        if let Some(names) = self.recording.probes().and_then(Probes::missing) {
            failure::say(&format!(
                "no program that runs now has the probe {names}; one that starts later is recorded"
            ));
        }
    }

    /// Binds who has come since to their domains.
    pub fn bind_newcomers(&mut self) {
        self.recording.look();
    }

    /// Since when it records.
    pub fn begun(&self) -> Instant {
        self.begin
    }

    /// What each flush thread has done so far.
    pub fn reports(&self) -> Vec<Report> {
        self.recorder.reports()
    }

    /// Switches events. What goes off is marked before and what comes on afterwards, so that between the marks, and
    /// nowhere else, an event may be missing that nobody counts.
    pub fn switch(&mut self, next: Switches) -> Result<(), KernelError> {
        let (was, will) = (self.switches.on(), next.on());
        let only = |of: &[usize], not: &[usize]| -> Vec<usize> {
            of.iter().copied().filter(|event| !not.contains(event)).collect()
        };
        let (goes, comes) =
            (self.wanted.numbers(&only(&was, &will)), self.wanted.numbers(&only(&will, &was)));
        self.mark(&goes, false);
        let switched = self.recording.switch(&will);
        match switched {
            Ok(()) => {
                self.mark(&comes, true);
                self.switches = next;
            }
            Err(_) => self.mark(&goes, true),
        }
        self.described.get_or_insert_with(Instant::now);
        switched
    }

    fn mark(&mut self, events: &[u16], on: bool) {
        self.recorder.mark_switched(events, on);
        let Some(probes) = self.recording.probes() else { return };
        for event in self.wanted.schema.events.iter().filter(|event| events.contains(&event.id)) {
            probes.mark(event.id, &event.name, on);
        }
    }

    /// Gives each processor a buffer of another size. Programs with the new ones are put in the place of the old ones;
    /// meanwhile all is off.
    pub fn resize(&mut self, buffer_bytes: u64) -> anyhow::Result<()> {
        if !self.recording.has_kernel() {
            bail!("only the kernel's buffers can change their size, and nothing of the kernel is recorded");
        }
        let new = self.recording.load_kernel(&self.wanted, buffer_bytes, self.low_water_percent)?;
        let before = self.switches.clone();
        self.switch(Switches { enable: false, ..before.clone() })?;
        let old = self.recording.exchange_kernel(new);
        // Those that still ran then have ended.
        thread::sleep(LONGEST_RUN);
        let exchanged = self.recorder.exchange(self.recording.buffers());
        self.buffer_bytes = buffer_bytes;
        self.switch(before)?;
        self.missed_runs += old.map_or(Ok(0), |old| old.runs_missed())?;
        Ok(exchanged?)
    }

    /// What is done from time to time; what people should know of it.
    pub fn look(&mut self) -> Vec<String> {
        self.recording.look();
        self.look_for_missed_runs();
        let of_probes = self.recording.probes().map(Probes::news).unwrap_or_default();
        of_probes.into_iter().chain(self.look_for_dumps()).collect()
    }

    fn look_for_missed_runs(&mut self) {
        if self.looked.elapsed() < LOOK_FOR_MISSED_EVERY {
            return;
        }
        self.looked = Instant::now();
        let Session { recording, recorder, missed_runs, .. } = self;
        let count = || recording.runs_missed().map(|runs| *missed_runs + runs);
        // A kernel that does not say so now is asked again at the end.
        if recorder.look_for_missed_runs(count).is_ok_and(|news| news > 0) {
            self.described.get_or_insert_with(Instant::now);
        }
    }

    fn look_for_dumps(&mut self) -> Option<String> {
        if self.described.is_some_and(|since| since.elapsed() >= DESCRIBE_EVERY) {
            self.described = None;
            // A full disk is told by what is recorded; the trace has the marks.
            let _ = self.recorder.save_description();
        }
        match &mut self.dumps {
            Some(dumps) => dumps.look(&mut self.recorder, &self.recording),
            None => interrupt::take_dump_request().then(|| NOTHING_TO_DUMP.to_owned()),
        }
    }

    /// Writes what a flight recorder has kept, if this is one.
    pub fn dump(&mut self) -> Option<anyhow::Result<PathBuf>> {
        self.dumps.as_mut().map(|dumps| dumps.now(&mut self.recorder, &self.recording))
    }

    /// Whether what was waited for has happened.
    pub fn is_over(&self) -> bool {
        self.dumps.as_ref().is_some_and(|dumps| dumps.is_over(&self.recorder))
    }

    /// Ends it, with a complete trace, and tells what has become of it: also where the end of it cannot be written.
    pub fn end(self, options: &Options, output: &mut Output) -> anyhow::Result<()> {
        let Session { mut recording, mut recorder, dumps, begin, missed_runs: before, .. } = self;
        let passed = begin.elapsed();
        let missing = recording.probes().and_then(Probes::missing);
        recording.detach();
        recording.probes().map(Probes::news).unwrap_or_default().iter().for_each(|news| failure::say(news));
        missing
            .iter()
            .for_each(|names| failure::say(&format!("no program that was found had the probe {names}")));
        let missed_runs = before + recording.runs_missed()?;
        recorder.look_for_missed_runs(|| Ok::<_, KernelError>(missed_runs))?;
        recorder.settle();
        let garbled = recorder.reports().into_iter().filter_map(|report| report.garbled).collect();
        let (summary, stopped) = match dumps {
            Some(dumps) => dumps.end(recorder)?,
            None => {
                let (accounts, stopped) = (recorder.settle(), recorder.stop());
                (Summary::of(&options.output, accounts), stopped.map(drop))
            }
        };
        let summary = summary.after(passed, missed_runs, garbled);
        summary.tell(output)?;
        stopped?;
        summary.check_written()
    }

    /// Ends it, and leaves nothing.
    pub fn discard(self) {
        let Session { mut recording, recorder, .. } = self;
        recording.detach();
        recorder.discard();
    }
}

/// Whether the trace finds room where it is to be, also that of a flight recorder, which comes later.
fn check_place(options: &Options) -> anyhow::Result<()> {
    match mete_trace::check_directory(&options.output, options.former()) {
        Err(there @ RecordError::TraceThere(_)) => {
            bail!("{there}: name another directory, or replace it by --force")
        }
        checked => Ok(checked?),
    }
}

fn trace_options(
    options: &Options,
    keep: Option<u64>,
    wanted: &Wanted,
    switches: &Switches,
) -> mete_trace::Options {
    let trace = match keep {
        Some(bytes) => mete_trace::Options::flight(bytes),
        None => mete_trace::Options::directory(&options.output),
    };
    mete_trace::Options {
        clock: CLOCK,
        former: options.former(),
        low_water_percent: options.low_water,
        off_at_first: wanted.names_but(&switches.on()),
        watched: wanted.numbers(&wanted.awaited),
        ..trace
    }
}
