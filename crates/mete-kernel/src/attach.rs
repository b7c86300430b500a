//! Enabling and disabling: programs are attached only while something needs them (LOG-2).

use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Link, Object, ProgramMut};
use mete_log::EventId;

use crate::characteristic::{Characteristic, event};
use crate::counter::Counter;
use crate::{Kernel, KernelError, map, memory, perf, tracefs};

/// What is attached at the moment.
#[derive(Default)]
pub(crate) struct Attached {
    switch: Option<(&'static str, Link)>,
    has_service: bool,
    counters: Vec<OpenCounter>,
    generation: u32,
    ipc: Option<Link>,
    memory: Option<Link>,
    ticks: Vec<Link>,
    inherit: Option<Link>,
    follow: Option<Link>,
}

struct OpenCounter {
    counter: Counter,
    nth: usize,
    /// One for each online processor; the map's entries live as long as these.
    _events: Vec<OwnedFd>,
}

impl Kernel {
    /// Attaches what logs a characteristic, and says which event its rows carry: the first one
    /// where it is logged as two. Enabling what is enabled changes nothing, except a tick rate.
    pub fn enable(&mut self, what: &Characteristic) -> Result<EventId, KernelError> {
        match what {
            Characteristic::ServiceTime => self.enable_service(),
            Characteristic::Counter(counter) => self.enable_counter(counter),
            Characteristic::Ipc => self.enable_ipc(),
            Characteristic::Memory => self.enable_memory(),
            Characteristic::RunQueue { hertz } => self.enable_ticks(*hertz),
        }
    }

    /// Detaches it again; rows that were written stay where they are.
    pub fn disable(&mut self, what: &Characteristic) -> Result<(), KernelError> {
        let attached = &mut self.attached;
        match what {
            Characteristic::ServiceTime => attached.has_service = false,
            Characteristic::Counter(counter) => attached.counters.retain(|open| open.counter != *counter),
            Characteristic::Ipc => attached.ipc = None,
            Characteristic::Memory => attached.memory = None,
            Characteristic::RunQueue { .. } => attached.ticks.clear(),
        }
        attached.follow_switches(&self.object)
    }

    /// The event of an enabled counter.
    pub fn event_of(&self, counter: &Counter) -> Option<EventId> {
        self.attached.event_of(counter)
    }

    /// Names of the programs that are attached now.
    pub fn attached(&self) -> Vec<&'static str> {
        let a = &self.attached;
        let others = [
            ("on_waking", a.ipc.is_some()),
            ("on_rss_stat", a.memory.is_some()),
            ("on_tick", !a.ticks.is_empty()),
            ("inherit", a.inherit.is_some()),
            ("follow", a.follow.is_some()),
        ];
        let others = others.into_iter().filter_map(|(name, is_attached)| is_attached.then_some(name));
        a.switch.iter().map(|(name, _)| *name).chain(others).collect()
    }

    fn enable_service(&mut self) -> Result<EventId, KernelError> {
        if !self.attached.has_service {
            self.attached.has_service = true;
            let done = self.attached.follow_switches(&self.object);
            done.inspect_err(|_| self.attached.has_service = false)?;
        }
        Ok(event::SERVICE_TIME)
    }

    fn enable_counter(&mut self, counter: &Counter) -> Result<EventId, KernelError> {
        if let Some(event) = self.attached.event_of(counter) {
            return Ok(event);
        }
        let open = self.attached.open_counter(&self.object, counter, self.processors())?;
        let event = event_number(open.nth);
        self.attached.counters.push(open);
        let done = self.attached.follow_switches(&self.object);
        done.inspect_err(|_| drop(self.attached.counters.pop()))?;
        Ok(event)
    }

    fn enable_ipc(&mut self) -> Result<EventId, KernelError> {
        if self.attached.ipc.is_none() {
            self.attached.ipc =
                Some(attach(&self.object, "on_waking", "IPC usage", "sched_waking tracepoint")?);
        }
        Ok(event::IPC_SEND)
    }

    fn enable_memory(&mut self) -> Result<EventId, KernelError> {
        if self.attached.memory.is_none() {
            memory::forget(&self.object)?;
            let id = tracefs::tracepoint_id("kmem/rss_stat")?;
            let event = perf::open_tracepoint(id).map_err(|source| KernelError::PerfEvent {
                event: "kmem:rss_stat",
                processor: 0,
                source,
            })?;
            self.attached.memory = Some(attach_event(&self.object, "on_rss_stat", event)?);
        }
        Ok(event::MEMORY)
    }

    fn enable_ticks(&mut self, hertz: u32) -> Result<EventId, KernelError> {
        if !(1..=10_000).contains(&hertz) {
            return Err(KernelError::TickRate(hertz));
        }
        let mut ticks = Vec::new();
        for processor in perf::online_processors(self.processors()) {
            let event = perf::open_tick(hertz, processor).map_err(|source| KernelError::PerfEvent {
                event: "cpu-clock",
                processor,
                source,
            })?;
            ticks.push(attach_event(&self.object, "on_tick", event)?);
        }
        self.attached.ticks = ticks;
        Ok(event::RUN_QUEUE)
    }

    /// From the first binding on, new tasks take over their parent's domain.
    pub(crate) fn follow_tasks(&mut self) -> Result<(), KernelError> {
        if self.attached.inherit.is_none() {
            let link = attach(&self.object, "inherit", "inheritance of domains", "task_newtask tracepoint")?;
            self.attached.inherit = Some(link);
        }
        Ok(())
    }

    /// From the first binding of a cgroup on, tasks that move are followed.
    pub(crate) fn follow_cgroups(&mut self) -> Result<(), KernelError> {
        self.follow_tasks()?;
        if self.attached.follow.is_none() {
            let hook = "cgroup_attach_task tracepoint";
            self.attached.follow = Some(attach(&self.object, "follow", "movement between cgroups", hook)?);
        }
        Ok(())
    }
}

impl Attached {
    fn event_of(&self, counter: &Counter) -> Option<EventId> {
        self.counters.iter().find(|open| open.counter == *counter).map(|open| event_number(open.nth))
    }

    /// Brings the one program on the context switch in line with what is enabled.
    fn follow_switches(&mut self, object: &Object) -> Result<(), KernelError> {
        let wanted = match (self.has_service, !self.counters.is_empty()) {
            (false, false) => None,
            (true, false) => Some("switch_service"),
            (false, true) => Some("switch_counters"),
            (true, true) => Some("switch_both"),
        };
        if self.switch.as_ref().map(|(name, _)| *name) != wanted {
            self.switch = None;
        }
        self.tell_switches(object)?;
        if let (Some(name), None) = (wanted, &self.switch) {
            self.switch = Some((name, attach(object, name, "processor use", "sched_switch tracepoint")?));
        }
        Ok(())
    }

    /// `struct switching` of `bpf/switch.h`: a new generation voids what was remembered of a phase
    /// that began under other counters.
    fn tell_switches(&mut self, object: &Object) -> Result<(), KernelError> {
        self.generation = self.generation.wrapping_add(1);
        let open = self.counters.iter().fold(0u32, |mask, open| mask | 1 << open.nth);
        let words = [self.generation, open, self.has_service.into()].map(u32::to_ne_bytes).concat();
        map::write_global(object, ".bss.switching", &words)
    }

    fn open_counter(
        &self,
        object: &Object,
        counter: &Counter,
        processors: usize,
    ) -> Result<OpenCounter, KernelError> {
        let is_free = |nth: &usize| self.counters.iter().all(|open| open.nth != *nth);
        let full =
            || KernelError::TooManyCounters { counter: counter.name().into(), max: event::MAX_COUNTERS };
        let nth = (0..event::MAX_COUNTERS).find(is_free).ok_or_else(full)?;
        let mut events = Vec::new();
        for processor in perf::online_processors(processors) {
            let event = perf::open_counter(counter, processor)?;
            let at = (nth * processors + processor) as u32;
            let fd = event.as_fd().as_raw_fd() as u32;
            map::write(object, "counters", &at.to_ne_bytes(), &fd.to_ne_bytes())?;
            events.push(event);
        }
        Ok(OpenCounter { counter: counter.clone(), nth, _events: events })
    }
}

fn event_number(nth: usize) -> EventId {
    event::COUNTERS + nth as EventId
}

pub(crate) fn program<'a>(object: &'a Object, name: &str) -> Option<ProgramMut<'a>> {
    object.progs_mut().find(|program| program.name() == name)
}

/// Attaches a program to the tracepoint that its section names.
pub(crate) fn attach(
    object: &Object,
    name: &'static str,
    characteristic: &'static str,
    hook: &'static str,
) -> Result<Link, KernelError> {
    let absent = KernelError::NoHook { characteristic, hook };
    let program = program(object, name).filter(|program| program.autoload()).ok_or(absent)?;
    program.attach().map_err(|source| KernelError::Attach { program: name, source })
}

/// Attaches a program to a perf event.
fn attach_event(object: &Object, name: &'static str, event: OwnedFd) -> Result<Link, KernelError> {
    let absent = KernelError::NoHook { characteristic: name, hook: "perf events" };
    let program = program(object, name).ok_or(absent)?;
    attach_to_event(program, event).map_err(|source| KernelError::Attach { program: name, source })
}

/// Attaches a program to a perf event, which the link then owns.
pub(crate) fn attach_to_event(program: ProgramMut<'_>, event: OwnedFd) -> libbpf_rs::Result<Link> {
    let link = program.attach_perf_event(event.as_raw_fd())?;
    // The link closes the event when it is dropped.
    let _ = event.into_raw_fd();
    Ok(link)
}
