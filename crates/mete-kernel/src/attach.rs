//! Enabling and disabling: programs are attached only while something needs them (LOG-2).

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Iter, Link, Object, ProgramInput, ProgramMut};
use mete_log::EventId;

use crate::characteristic::{Characteristic, event};
use crate::counter::Counter;
use crate::memory::Memory;
use crate::{Kernel, KernelError, map, perf};

/// What is attached at the moment.
#[derive(Default)]
pub(crate) struct Attached {
    switch: Option<(&'static str, Link)>,
    has_service: bool,
    counters: Vec<OpenCounter>,
    generation: u32,
    ipc: Option<Ipc>,
    pub(crate) memory: Option<Memory>,
    ticks: Vec<Link>,
    inherit: Option<Link>,
    follow: Option<Follow>,
    select: Vec<(&'static str, Link)>,
}

/// What keeps tasks in the domains of their cgroups.
struct Follow {
    _moves: Link,
    /// Runs a program for each task when it is read.
    all: Link,
}

struct Ipc {
    _wakeups: Link,
    /// None, or all of them.
    network: Vec<Link>,
}

const OVER_LOOPBACK: &str = "IPC over the loopback device";

/// What follows packets from their senders to where they are delivered, and the tracepoints that it needs.
const NETWORK: [(&str, &str); 3] = [
    ("on_send", "net_dev_queue tracepoint"),
    ("on_receive", "netif_receive_skb tracepoint"),
    ("on_delivered", "napi_poll tracepoint"),
];

/// Looks where a task belongs by its cgroups.
const FOLLOW_ALL: &str = "follow_all";

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

    /// Whether this kernel lets packets be followed over the loopback device, so that
    /// [`Characteristic::Ipc`] has the wake-ups that they cause.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoHook`] names what is missing.
    pub fn follows_packets(&self) -> Result<(), KernelError> {
        for (name, hook) in NETWORK {
            if program(&self.object, name).is_none_or(|program| !program.autoload()) {
                return Err(KernelError::NoHook { characteristic: OVER_LOOPBACK, hook });
            }
        }
        Ok(())
    }

    /// Names of the programs that are attached now.
    pub fn attached(&self) -> Vec<&'static str> {
        let a = &self.attached;
        let others = [
            ("on_waking", a.ipc.is_some()),
            ("on_rss_stat", a.memory.is_some()),
            ("take_stock", a.memory.is_some()),
            ("on_tick", !a.ticks.is_empty()),
            ("inherit", a.inherit.is_some()),
            ("follow", a.follow.is_some()),
        ];
        let others = others.into_iter().filter_map(|(name, is_attached)| is_attached.then_some(name));
        let has_network = a.ipc.as_ref().is_some_and(|ipc| !ipc.network.is_empty());
        let network = NETWORK.iter().filter(|_| has_network).map(|(name, _)| *name);
        let selecting = a.select.iter().map(|(name, _)| *name);
        a.switch.iter().map(|(name, _)| *name).chain(others).chain(network).chain(selecting).collect()
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
            let wakeups = attach(&self.object, "on_waking", "IPC usage", "sched_waking tracepoint")?;
            let network =
                if self.follows_packets().is_ok() { attach_network(&self.object)? } else { Vec::new() };
            self.attached.ipc = Some(Ipc { _wakeups: wakeups, network });
        }
        Ok(event::IPC_SEND)
    }

    fn enable_memory(&mut self) -> Result<EventId, KernelError> {
        if self.attached.memory.is_none() {
            self.attached.memory = Some(Memory::start(&self.object)?);
        }
        Ok(event::MEMORY)
    }

    fn enable_ticks(&mut self, hertz: u32) -> Result<EventId, KernelError> {
        if !(1..=10_000).contains(&hertz) {
            return Err(KernelError::TickRate(hertz));
        }
        self.attached.ticks = attach_ticks(&self.object, "on_tick", hertz, self.processors())?;
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

    /// From the first rule on, processes are looked at when they become something else.
    pub(crate) fn follow_selections(&mut self) -> Result<(), KernelError> {
        self.follow_tasks()?;
        if self.attached.select.is_empty() {
            let what = "a process that becomes what a selector asks for";
            let programs =
                [("on_exec", "sched_process_exec tracepoint"), ("on_rename", "task_rename tracepoint")];
            let links = programs.map(|(name, hook)| Ok((name, attach(&self.object, name, what, hook)?)));
            self.attached.select = links.into_iter().collect::<Result<_, KernelError>>()?;
        }
        Ok(())
    }

    /// From the first binding of a cgroup on, tasks that move are followed.
    pub(crate) fn follow_cgroups(&mut self) -> Result<(), KernelError> {
        self.follow_tasks()?;
        if self.attached.follow.is_none() {
            let what = "movement between cgroups";
            let moves = attach(&self.object, "follow", what, "cgroup_attach_task tracepoint")?;
            let all = attach(&self.object, FOLLOW_ALL, what, "iterator over tasks")?;
            self.attached.follow = Some(Follow { _moves: moves, all });
        }
        Ok(())
    }

    /// Has the kernel look once where each task belongs by its cgroups; nothing if no cgroup was ever bound.
    pub(crate) fn follow_all(&self) -> Result<(), KernelError> {
        self.attached.follow.as_ref().map_or(Ok(()), |follow| run_for_all(&follow.all, FOLLOW_ALL))
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

fn attach_network(object: &Object) -> Result<Vec<Link>, KernelError> {
    NETWORK.iter().map(|&(name, hook)| attach(object, name, OVER_LOOPBACK, hook)).collect()
}

fn event_number(nth: usize) -> EventId {
    event::COUNTERS + nth as EventId
}

pub(crate) fn program<'a>(object: &'a Object, name: &str) -> Option<ProgramMut<'a>> {
    object.progs_mut().find(|program| program.name() == name)
}

/// Runs a program here and now, as this task. The kernel keeps this thread on its processor meanwhile.
pub(crate) fn run_once(
    object: &Object,
    name: &'static str,
    characteristic: &'static str,
) -> Result<(), KernelError> {
    let absent = KernelError::NoHook { characteristic, hook: "test runs of programs" };
    let program = program(object, name).ok_or(absent)?;
    let run = program.test_run(ProgramInput::default());
    run.map(drop).map_err(|source| KernelError::Attach { program: name, source })
}

/// Runs a program for every task.
pub(crate) fn run_for_all(tasks: &Link, name: &'static str) -> Result<(), KernelError> {
    let failed = |source| KernelError::Attach { program: name, source };
    let mut all = Iter::new(tasks).map_err(failed)?;
    // The program writes nothing; reading to the end runs it for every task.
    all.read_to_end(&mut Vec::new()).map_err(|error| failed(error.into()))?;
    Ok(())
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

/// Attaches a program to a timer of each processor that is online.
pub(crate) fn attach_ticks(
    object: &Object,
    name: &'static str,
    hertz: u32,
    processors: usize,
) -> Result<Vec<Link>, KernelError> {
    let attach = |processor| {
        let failed = |source| KernelError::PerfEvent { event: "cpu-clock", processor, source };
        attach_event(object, name, perf::open_tick(hertz, processor).map_err(failed)?)
    };
    perf::online_processors(processors).into_iter().map(attach).collect()
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
