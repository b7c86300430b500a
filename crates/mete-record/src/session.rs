//! A recording while it runs: which events are on, and what is changed meanwhile.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use mete_kernel::KernelError;
use mete_trace::{Buffers, Options, Recorder, Report};

use crate::error::RecordingError;
use crate::flight::FlightDumps;
use crate::notice::Notice;
use crate::origin::{CLOCK, EventRecorder, Origin};
use crate::plan::Plan;
use crate::probes::Probes;
use crate::schema::RecordedSchema;
use crate::summary::{Ended, Summary};
use crate::switches::Switches;

/// No program in the kernel runs this long, unless it is interrupted.
const LONGEST_RUN: Duration = Duration::from_millis(10);
/// How often the kernel is asked for the number of runs that it left out. A trace tells no more exactly when
/// that was.
const LOOK_FOR_MISSED_EVERY: Duration = Duration::from_millis(100);
/// How long the description on disk may lack a switch of events.
const DESCRIBE_WITHIN: Duration = Duration::from_secs(1);

/// A running recording. Dropped without [`Session::end`] or [`Session::discard`], it detaches everything and
/// leaves the trace as it is then.
pub struct Session {
    // Fields are dropped in this order: programs, then threads.
    origin: Origin,
    recorder: EventRecorder,
    plan: Plan,
    switches: Switches,
    dumps: Option<FlightDumps>,
    kept_bytes: Option<u64>,
    directory: PathBuf,
    begun: Instant,
    /// How often the kernel left out programs that are not loaded any more.
    missed_before_resize: u64,
    /// When the first switch happened that the description on disk lacks.
    undescribed_since: Option<Instant>,
    /// When the kernel was asked last for the number of runs that it left out.
    asked_for_missed: Instant,
}

impl Session {
    /// Records from now on. Nothing is left if that fails.
    ///
    /// # Errors
    ///
    /// [`RecordingError`]: what is missing, where, or not permitted.
    pub fn begin(plan: Plan, tell: &mut dyn FnMut(Notice)) -> Result<Session, RecordingError> {
        if plan.schema.uses_domains() && plan.domains.is_empty() {
            tell(Notice::NoDomains);
        }
        if let Some(flight) = &plan.flight {
            flight.check_memory()?;
        }
        let origin = Origin::load(&plan, tell)?;
        plan.check_directory()?;
        let switches = Switches::at_first(&plan);
        let (domains, buffers) = (origin.domains(), origin.buffers());
        let kept_bytes = plan.flight.as_ref().map(|flight| flight.kept_bytes(buffers.processors(), tell));
        let options = Options { domains, ..trace_options(&plan, kept_bytes, &switches) };
        let recorder = Recorder::start(buffers, description(&plan), options)?;
        let mut session = Session {
            origin,
            recorder,
            switches,
            dumps: FlightDumps::new(&plan),
            kept_bytes,
            directory: std::path::absolute(&plan.directory).unwrap_or_else(|_| plan.directory.clone()),
            plan,
            begun: Instant::now(),
            missed_before_resize: 0,
            undescribed_since: None,
            asked_for_missed: Instant::now(),
        };
        // Last: from the first record on, the threads that empty the buffers have to be there.
        match session.origin.switch(&session.switches.on()) {
            // To attach programs takes a while, in which some of them record nothing yet.
            Ok(()) => Ok(Session { begun: Instant::now(), ..session }),
            Err(error) => {
                session.discard();
                Err(error.into())
            }
        }
    }

    /// The schema.
    pub fn schema(&self) -> &RecordedSchema {
        &self.plan.schema
    }

    /// Which events are on.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Where the trace is, or is to be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Since when it records.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// The size of each processor's buffer.
    pub fn buffer_bytes(&self) -> u64 {
        self.plan.buffer_bytes
    }

    /// How much a flight recorder keeps.
    pub fn kept_bytes(&self) -> Option<u64> {
        self.kept_bytes
    }

    /// A buffer is flushed when less than this part of it is free.
    pub fn low_water_percent(&self) -> u8 {
        self.plan.low_water_percent
    }

    /// From now on a buffer is flushed when less than this part of it is free.
    pub fn set_low_water(&mut self, percent: u8) {
        self.recorder.set_low_water(percent);
        self.plan.low_water_percent = percent;
    }

    /// Removes the trace that this one replaces. Until then, a recording that is discarded leaves it as it
    /// was.
    pub fn remove_former(&mut self) {
        self.recorder.remove_former();
    }

    /// The environment variable that the command needs to record its own events; `None` if it has none to
    /// record.
    ///
    /// # Errors
    ///
    /// [`RecordingError::HandOut`]
    pub fn environment(&self) -> Result<Option<(&'static str, String)>, RecordingError> {
        self.origin.environment()
    }

    /// Wanted probes that no running program has; `None` if there are none.
    pub fn missing_probes(&self) -> Option<Notice> {
        let names = self.origin.probes().and_then(Probes::missing)?;
        Some(Notice::ProbesMissing { names })
    }

    /// Binds the processes that have started since to their domains.
    pub fn bind_newcomers(&mut self) {
        self.origin.bind_newcomers();
    }

    /// What each flush thread has done so far.
    pub fn reports(&self) -> Vec<Report> {
        self.recorder.reports()
    }

    /// Writes all that was recorded before the call, and returns what each flush thread has done until then.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Record`] if it cannot be written.
    pub fn flush(&self) -> Result<Vec<Report>, RecordingError> {
        self.recorder.flush()?;
        Ok(self.recorder.reports())
    }

    /// Detaches all programs of the kernel until [`Session::resume`]. Unlike [`Session::switch`] it leaves no
    /// mark in the trace: it is for measurements in which one recording is on and off in turns.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Kernel`]
    pub fn pause(&mut self) -> Result<(), RecordingError> {
        Ok(self.origin.switch(&[])?)
    }

    /// Attaches again what [`Session::pause`] has detached.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Kernel`] if the kernel refuses now.
    pub fn resume(&mut self) -> Result<(), RecordingError> {
        Ok(self.origin.switch(&self.switches.on())?)
    }

    /// Switches events. An event is marked in the trace before it is switched off and after it is switched
    /// on. So an occurrence that is neither recorded nor counted as lost lies between the two marks, and
    /// nowhere else.
    ///
    /// # Errors
    ///
    /// [`KernelError`] if the kernel refuses; then everything is as before.
    pub fn switch(&mut self, next: Switches) -> Result<(), KernelError> {
        let change = self.switches.change_to(&next);
        let [off, on] = [&change.off, &change.on].map(|events| self.plan.schema.numbers(events));
        self.mark(&off, false);
        let switched = self.origin.switch(&next.on());
        match switched {
            Ok(()) => {
                self.mark(&on, true);
                self.switches = next;
            }
            // They stayed on. A second mark behind the first one says so.
            Err(_) => self.mark(&off, true),
        }
        self.undescribed_since.get_or_insert_with(Instant::now);
        switched
    }

    fn mark(&mut self, events: &[u16], on: bool) {
        self.recorder.mark_switched(events, on);
        let Some(probes) = self.origin.probes() else { return };
        for event in self.plan.schema.events().iter().filter(|event| events.contains(&event.id)) {
            probes.mark(event.id, &event.name, on);
        }
    }

    /// Gives each processor a buffer of another size. Programs with the new buffers take the place of the old
    /// ones; all events are off meanwhile.
    ///
    /// # Errors
    ///
    /// [`RecordingError::NoKernelBuffers`], and what the kernel says to the new programs.
    pub fn resize(&mut self, buffer_bytes: u64) -> Result<(), RecordingError> {
        if !self.origin.has_kernel() {
            return Err(RecordingError::NoKernelBuffers);
        }
        let new = self.origin.load_kernel(&self.plan, buffer_bytes)?;
        let before = self.switches.clone();
        self.switch(Switches { enable: false, ..before.clone() })?;
        let old = self.origin.exchange_kernel(new);
        // A program that still ran when it was detached has ended after this.
        thread::sleep(LONGEST_RUN);
        // Errors are returned only at the end: the events have to be on again before, and the old programs
        // counted.
        let exchanged = self.recorder.exchange(self.origin.buffers());
        self.plan.buffer_bytes = buffer_bytes;
        let switched = self.switch(before);
        let counted = old.map_or(Ok(0), |old| old.missed_runs());
        count_replaced(&mut self.missed_before_resize, counted, switched)?;
        Ok(exchanged?)
    }

    /// Does what is due from time to time, and returns what people should know of it. `is_dump_asked` says
    /// whether a signal has asked for a dump since the last call.
    pub fn do_what_is_due(&mut self, is_dump_asked: bool) -> Vec<Notice> {
        self.origin.bind_newcomers();
        self.look_for_missed_runs();
        self.describe_in_time();
        self.origin.news().chain(self.look_for_dumps(is_dump_asked)).collect()
    }

    fn look_for_missed_runs(&mut self) {
        if self.asked_for_missed.elapsed() < LOOK_FOR_MISSED_EVERY {
            return;
        }
        self.asked_for_missed = Instant::now();
        let Session { origin, recorder, missed_before_resize, .. } = self;
        let count = || origin.missed_runs().map(|runs| *missed_before_resize + runs);
        let news = recorder.look_for_missed_runs(count);
        // A kernel that cannot tell now is asked again at the end.
        if news.is_ok_and(|news| news > 0) {
            self.undescribed_since.get_or_insert_with(Instant::now);
        }
    }

    fn describe_in_time(&mut self) {
        if self.undescribed_since.is_some_and(|since| since.elapsed() >= DESCRIBE_WITHIN) {
            self.undescribed_since = None;
            // The flush threads report a full disk, and the trace itself has the marks.
            let _ = self.recorder.save_description();
        }
    }

    fn look_for_dumps(&mut self, is_asked: bool) -> Option<Notice> {
        match &mut self.dumps {
            Some(dumps) => dumps.dump_if_due(is_asked, &mut self.recorder, &self.origin),
            None => is_asked.then_some(Notice::NothingToDump),
        }
    }

    /// Writes what a flight recorder has kept, and returns where; `None` if this is none.
    pub fn dump(&mut self) -> Option<Result<PathBuf, RecordingError>> {
        self.dumps.as_mut().map(|dumps| dumps.dump(&mut self.recorder, &self.origin))
    }

    /// Whether the event that the end waits for has occurred.
    pub fn is_over(&self) -> bool {
        self.dumps.as_ref().is_some_and(|dumps| dumps.is_over(&self.recorder))
    }

    /// Ends the recording with a complete trace.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] if the kernel does not tell what it left out, or what a flight recorder has written
    /// cannot be read. If the end of the trace cannot be written, [`Ended`] says so.
    pub fn end(self, tell: &mut dyn FnMut(Notice)) -> Result<Ended, RecordingError> {
        let Session { mut origin, mut recorder, dumps, begun, missed_before_resize, plan, .. } = self;
        // Before anything is detached or flushed, which takes time in which nothing is recorded.
        let passed = begun.elapsed();
        let missing = origin.probes().and_then(Probes::missing);
        origin.detach();
        origin.news().for_each(&mut *tell);
        if let Some(names) = missing {
            tell(Notice::ProbesNeverFound { names });
        }
        // The programs are detached by now, so that the number does not grow any more.
        let missed_runs = missed_before_resize + origin.missed_runs()?;
        recorder.look_for_missed_runs(|| Ok::<_, KernelError>(missed_runs))?;
        let accounts = recorder.settle();
        let garbled = recorder.reports().into_iter().filter_map(|report| report.garbled).collect();
        let Ended { summary, stopped } = match dumps {
            Some(dumps) => dumps.end(recorder)?,
            None => {
                let summary = Summary::of(&plan.directory, accounts);
                Ended { summary, stopped: recorder.stop().map(drop) }
            }
        };
        Ok(Ended { summary: summary.after(passed, missed_runs, garbled), stopped })
    }

    /// Ends the recording and leaves nothing.
    pub fn discard(self) {
        let Session { mut origin, recorder, .. } = self;
        origin.detach();
        recorder.discard();
    }
}

/// Adds the runs that the kernel left out of programs that were replaced, also where the events could not be
/// switched on again: these programs cannot be asked later.
fn count_replaced(
    missed: &mut u64,
    counted: Result<u64, KernelError>,
    switched: Result<(), KernelError>,
) -> Result<(), KernelError> {
    let counted = counted.map(|runs| *missed += runs);
    switched.and(counted)
}

fn description(plan: &Plan) -> mete_trace::Description {
    let description = plan.schema.description();
    let description = if plan.has_events_of_kernel() { description.with_missed_runs() } else { description };
    if plan.may_switch { description.with_switches() } else { description }
}

fn trace_options(plan: &Plan, kept_bytes: Option<u64>, switches: &Switches) -> Options {
    let options = match kept_bytes {
        Some(bytes) => Options::flight(bytes),
        None => Options::directory(&plan.directory),
    };
    Options {
        clock: CLOCK,
        former: plan.former,
        low_water_percent: plan.low_water_percent,
        off_at_first: plan.schema.names_but(&switches.on()),
        watched: plan.schema.numbers(plan.awaited()),
        ..options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_missed_runs_of_replaced_programs_count_also_where_the_events_stay_off() {
        let mut missed = 3;
        let refused = count_replaced(&mut missed, Ok(7), Err(KernelError::NoEvents));
        assert!(matches!(refused, Err(KernelError::NoEvents)));
        assert_eq!(missed, 10);
        assert!(count_replaced(&mut missed, Ok(5), Ok(())).is_ok());
        assert_eq!(missed, 15);
        assert!(count_replaced(&mut missed, Err(KernelError::NoEvents), Ok(())).is_err());
        assert_eq!(missed, 15, "what the kernel does not tell is not counted");
    }
}
