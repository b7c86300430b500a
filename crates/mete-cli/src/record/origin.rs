//! Where events come from: from the kernel's programs, from the command by its own encoders, from the probes of
//! programs, or from several of these.

use std::sync::Arc;

use anyhow::Context;
use mete_kernel::KernelError;
use mete_kernel::record::{Areas, Recording, possible_processors};
use mete_probe::attach::configured_processors;
use mete_trace::invitation::VARIABLE;
use mete_trace::{ClockSource, Invitation, Memory, Together};

use super::Options;
use super::bound::Bound;
use super::probes::{Points, Probes};
use super::wanted::Wanted;

/// The kernel's programs can read no other clock.
pub const CLOCK: ClockSource = ClockSource::Monotonic;

/// What writes events into buffers.
pub struct Origin {
    kernel: Option<Recording>,
    /// Detached later than what looks into its table.
    bound: Option<Bound>,
    programs: Option<Programs>,
    probes: Option<Probes>,
}

/// Programs that record their own events.
struct Programs {
    buffers: Arc<Memory>,
    invitation: Invitation,
    /// The number of each event of the schema.
    numbers: Vec<u16>,
}

impl Origin {
    /// Loads what the wanted events need; nothing is on yet.
    pub fn load(wanted: &Wanted, options: &Options) -> anyhow::Result<Origin> {
        let has_command = !options.command.is_empty();
        let programs = wanted.has_events_of_programs() && has_command;
        let points = wanted.points();
        // Without any origin, it is the kernel's side that says what is missing.
        let has_kernel = wanted.has_events_of_kernel() || !programs && points.is_none();
        let bound = Bound::new(options, has_kernel)?;
        let mut origin = Origin { kernel: None, bound, programs: None, probes: None };
        if has_kernel {
            origin.kernel = Some(origin.load_kernel(wanted, options.buffer, options.low_water)?);
        }
        origin.programs = programs.then(|| Programs::invite(wanted, options)).transpose()?;
        origin.probes = points.map(|points| origin.start_probes(points, options)).transpose()?;
        Ok(origin)
    }

    fn start_probes(&self, points: Points, options: &Options) -> anyhow::Result<Probes> {
        let size_log2 = mete_kernel::record::size_log2(options.buffer)?;
        let buffers = Memory::new(configured_processors(), size_log2, options.low_water)?;
        let present = self.bound.as_ref().map(Bound::present).unwrap_or_default();
        Probes::start(points, Arc::new(buffers), present)
    }

    /// Loads the kernel's programs, with buffers of this size, and takes none into use.
    pub fn load_kernel(
        &self,
        wanted: &Wanted,
        buffer_bytes: u64,
        low_water: u8,
    ) -> anyhow::Result<Recording> {
        let table = self.bound.as_ref().map(Bound::table).transpose()?.flatten();
        Ok(wanted.load(buffer_bytes, low_water, table)?)
    }

    /// Whether there are programs in the kernel, and buffers of theirs.
    pub fn has_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Puts other programs of the kernel in the place of those that are there, which record nothing any more; nothing
    /// is on yet. The command's own buffers are in its hands, and stay.
    pub fn exchange_kernel(&mut self, kernel: Recording) -> Option<Recording> {
        let mut old = self.kernel.replace(kernel);
        old.iter_mut().for_each(Recording::detach);
        old
    }

    /// All buffers.
    pub fn buffers(&self) -> Arc<Together<Areas>> {
        let programs = self.programs.as_ref().map(|programs| Arc::clone(&programs.buffers));
        let together = Together::new(self.kernel.as_ref().map(Recording::buffers), programs);
        Arc::new(together.with_gathered(self.probes.as_ref().map(Probes::buffers)))
    }

    /// From now on these events are recorded: their places in the schema.
    pub fn switch(&mut self, events: &[usize]) -> Result<(), KernelError> {
        if let Some(kernel) = &mut self.kernel {
            kernel.switch(events)?;
        }
        if let Some(programs) = &self.programs {
            programs
                .invitation
                .switch(|number| events.iter().any(|event| programs.numbers[*event] == number));
        }
        self.probes.iter().for_each(|probes| probes.switch(events));
        Ok(())
    }

    /// Binds who has come since to their domains.
    pub fn look(&mut self) {
        let changes = self.bound.as_mut().map(Bound::look).unwrap_or_default();
        self.probes.iter().for_each(|probes| probes.bind(changes));
    }

    /// The probes of programs, if the schema has points there.
    pub fn probes(&self) -> Option<&Probes> {
        self.probes.as_ref()
    }

    /// Has what has happened so far in the buffers.
    pub fn catch_up(&self) {
        self.probes.iter().for_each(Probes::catch_up);
    }

    /// The names of the domains, if there are any.
    pub fn domains(&self) -> Vec<String> {
        self.bound.as_ref().map(Bound::names).unwrap_or_default()
    }

    /// From now on nothing is recorded, but for what the command has begun.
    pub fn detach(&mut self) {
        self.kernel.iter_mut().for_each(Recording::detach);
        self.programs.iter().for_each(|programs| programs.invitation.switch(|_| false));
        self.probes.iter_mut().for_each(Probes::stop);
    }

    /// How often the kernel left out one of its programs.
    pub fn runs_missed(&self) -> Result<u64, KernelError> {
        self.kernel.as_ref().map_or(Ok(0), Recording::runs_missed)
    }

    /// What the command must have in its environment to take part.
    pub fn environment(&self) -> anyhow::Result<Option<(&'static str, String)>> {
        let hand_out = |programs: &Programs| {
            let files = programs.invitation.hand_out().context("cannot let the command record its events")?;
            Ok((VARIABLE, files))
        };
        self.programs.as_ref().map(hand_out).transpose()
    }
}

impl Programs {
    fn invite(wanted: &Wanted, options: &Options) -> anyhow::Result<Programs> {
        let size_log2 = mete_kernel::record::size_log2(options.buffer)?;
        let buffers = Memory::new(possible_processors()?, size_log2, options.low_water)?;
        let buffers = Arc::new(buffers);
        let events: Vec<_> =
            wanted.schema.events.iter().map(|event| (event.fingerprint(), event.id)).collect();
        let invitation = Invitation::new(Arc::clone(&buffers), CLOCK, &events)?;
        let numbers = events.into_iter().map(|(_, number)| number).collect();
        Ok(Programs { buffers, invitation, numbers })
    }
}
