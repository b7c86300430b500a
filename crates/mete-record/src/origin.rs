//! Where events come from: the kernel's programs, the command with encoders of its own, the probes of
//! programs, or several of these.

use std::sync::Arc;

use mete_kernel::KernelError;
use mete_kernel::record::{Areas, Recording, possible_processors};
use mete_probe::attach::configured_processors;
use mete_trace::invitation::VARIABLE;
use mete_trace::memory::MemoryError;
use mete_trace::{ClockSource, Invitation, Memory, Recorder, Together};

use crate::bound::BoundDomains;
use crate::error::RecordingError;
use crate::notice::Notice;
use crate::plan::Plan;
use crate::probes::{ProbePoints, Probes};

/// The kernel's programs can read no other clock.
pub const CLOCK: ClockSource = ClockSource::Monotonic;

/// The recorder of the events of all origins.
pub type EventRecorder = Recorder<Together<Areas>>;

/// What writes events into buffers.
pub struct Origin {
    // Fields are dropped in this order: the programs that look into the table of domains, then the table.
    kernel: Option<Recording>,
    bound: Option<BoundDomains>,
    command: Option<InvitedCommand>,
    probes: Option<Probes>,
}

/// The command, which records its own events.
struct InvitedCommand {
    buffers: Arc<Memory>,
    invitation: Invitation,
    /// The number of each event of the schema.
    numbers: Vec<u16>,
}

impl Origin {
    /// Loads what the events of a plan need; no event is on yet.
    pub fn load(plan: &Plan, tell: &mut dyn FnMut(Notice)) -> Result<Origin, RecordingError> {
        let invites = plan.has_events_of_programs() && plan.has_command;
        let points = plan.probe_points();
        // If nothing would record, the kernel's programs are loaded all the same: their error says what is
        // missing.
        let has_kernel = plan.has_events_of_kernel() || !invites && points.is_none();
        let bound = BoundDomains::new(plan, has_kernel, tell)?;
        let mut origin = Origin { kernel: None, bound, command: None, probes: None };
        if has_kernel {
            origin.kernel = Some(origin.load_kernel(plan, plan.buffer_bytes)?);
        }
        if invites {
            origin.command = Some(InvitedCommand::new(plan)?);
        }
        if let Some(points) = points {
            origin.probes = Some(origin.start_probes(points, plan)?);
        }
        Ok(origin)
    }

    fn start_probes(&self, points: ProbePoints, plan: &Plan) -> Result<Probes, RecordingError> {
        let size_log2 = mete_kernel::record::size_log2(plan.buffer_bytes)?;
        let buffers = Memory::new(configured_processors(), size_log2, plan.low_water_percent)?;
        let present = self.bound.as_ref().map(BoundDomains::present).unwrap_or_default();
        Probes::start(points, Arc::new(buffers), present)
    }

    /// Loads the kernel's programs with buffers of this size, and does not use them yet.
    pub fn load_kernel(&self, plan: &Plan, buffer_bytes: u64) -> Result<Recording, RecordingError> {
        let table = self.bound.as_ref().map(BoundDomains::table).transpose()?.flatten();
        let events = plan.may_be_on().collect();
        Ok(plan.schema.load(events, buffer_bytes, plan.low_water_percent, table)?)
    }

    /// Whether there are programs in the kernel, and buffers of theirs.
    pub fn has_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Puts other programs of the kernel in the place of the present ones, which record nothing any more. No
    /// event is on yet. The command's own buffers are in its hands, and stay.
    pub fn exchange_kernel(&mut self, kernel: Recording) -> Option<Recording> {
        let mut old = self.kernel.replace(kernel);
        old.iter_mut().for_each(Recording::detach);
        old
    }

    /// All buffers.
    pub fn buffers(&self) -> Arc<Together<Areas>> {
        let command = self.command.as_ref().map(|command| Arc::clone(&command.buffers));
        let together = Together::new(self.kernel.as_ref().map(Recording::buffers), command);
        Arc::new(together.with_gathered(self.probes.as_ref().map(Probes::buffers)))
    }

    /// From now on these events are recorded, given by their places in the schema.
    pub fn switch(&mut self, events: &[usize]) -> Result<(), KernelError> {
        if let Some(kernel) = &mut self.kernel {
            kernel.switch(events)?;
        }
        if let Some(command) = &self.command {
            command.switch(events);
        }
        if let Some(probes) = &self.probes {
            probes.switch(events);
        }
        Ok(())
    }

    /// Binds the processes that have started since to their domains.
    pub fn bind_newcomers(&mut self) {
        let changes = self.bound.as_mut().map(BoundDomains::bind_newcomers).unwrap_or_default();
        if let Some(probes) = &self.probes {
            probes.bind(changes);
        }
    }

    /// The probes of programs, if the schema has points there.
    pub fn probes(&self) -> Option<&Probes> {
        self.probes.as_ref()
    }

    /// What people should know of programs with probes, each sentence once.
    pub fn news(&self) -> impl Iterator<Item = Notice> + use<> {
        let news = self.probes.as_ref().map(Probes::news).unwrap_or_default();
        news.into_iter().map(Notice::Program)
    }

    /// Puts what has happened so far into the buffers.
    pub fn catch_up(&self) {
        self.probes.iter().for_each(Probes::catch_up);
    }

    /// The names of the domains, if there are any.
    pub fn domains(&self) -> Vec<String> {
        self.bound.as_ref().map(BoundDomains::names).unwrap_or_default()
    }

    /// From now on nothing is recorded, except for events that the command has begun.
    pub fn detach(&mut self) {
        self.kernel.iter_mut().for_each(Recording::detach);
        self.command.iter().for_each(|command| command.switch(&[]));
        self.probes.iter_mut().for_each(Probes::stop);
    }

    /// How often the kernel left out one of its programs.
    pub fn missed_runs(&self) -> Result<u64, KernelError> {
        self.kernel.as_ref().map_or(Ok(0), Recording::missed_runs)
    }

    /// The environment variable that the command needs to record its events.
    pub fn environment(&self) -> Result<Option<(&'static str, String)>, RecordingError> {
        let Some(command) = &self.command else { return Ok(None) };
        let files = command.invitation.hand_out().map_err(RecordingError::HandOut)?;
        Ok(Some((VARIABLE, files)))
    }
}

impl InvitedCommand {
    fn new(plan: &Plan) -> Result<InvitedCommand, RecordingError> {
        let size_log2 = mete_kernel::record::size_log2(plan.buffer_bytes)?;
        let buffers = Memory::new(possible_processors()?, size_log2, plan.low_water_percent)?;
        let buffers = Arc::new(buffers);
        let events: Vec<_> =
            plan.schema.events().iter().map(|event| (event.fingerprint(), event.id)).collect();
        let invitation = Invitation::new(Arc::clone(&buffers), CLOCK, &events).map_err(MemoryError::from)?;
        let numbers = events.into_iter().map(|(_, number)| number).collect();
        Ok(InvitedCommand { buffers, invitation, numbers })
    }

    fn switch(&self, events: &[usize]) {
        self.invitation.switch(|number| events.iter().any(|event| self.numbers[*event] == number));
    }
}
