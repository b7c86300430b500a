//! Enabling and disabling: programs are attached only while something needs them (LOG-2).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libbpf_rs::Link;
use mete_base::processors;
use mete_log::EventId;

use super::Kernel;
use super::memory::Memory;
use crate::characteristic::{Characteristic, event};
use crate::counter::Counter;
use crate::program::NamedProgram;
use crate::skeleton::mete::MeteSkel;
use crate::skeleton::mete::types::{bss_switching, switching};
use crate::skeleton::{globals, program, table};
use crate::{KernelError, perf};

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
    /// None, or all of [`network`].
    network: Vec<(&'static str, Link)>,
}

struct OpenCounter {
    counter: Counter,
    nth: usize,
    /// One for each online processor. The entries of the map live as long as these.
    _events: Vec<OwnedFd>,
}

const OVER_LOOPBACK: &str = "IPC over the loopback device";

/// The programs that follow packets from their senders to where they are delivered, and the tracepoints that
/// they need.
fn network<'a>(skeleton: &'a MeteSkel<'static>) -> [(NamedProgram<'a>, &'static str); 3] {
    [
        (program!(skeleton, on_send), "net_dev_queue tracepoint"),
        (program!(skeleton, on_receive), "netif_receive_skb tracepoint"),
        (program!(skeleton, on_delivered), "napi_poll tracepoint"),
    ]
}

impl Kernel {
    /// Attaches what logs a characteristic. Returns the event that its rows carry: the first one, where it is
    /// logged as two. Enabling twice changes nothing, but a new tick rate takes effect.
    ///
    /// # Errors
    ///
    /// [`KernelError`] if this kernel or this machine does not have what the characteristic needs, or refuses
    /// it.
    pub fn enable(&mut self, what: &Characteristic) -> Result<EventId, KernelError> {
        match what {
            Characteristic::ServiceTime => self.enable_service(),
            Characteristic::Counter(counter) => self.enable_counter(counter),
            Characteristic::Ipc => self.enable_ipc(),
            Characteristic::Memory => self.enable_memory(),
            Characteristic::RunQueue { hertz } => self.enable_ticks(*hertz),
        }
    }

    /// Detaches it again. Rows that were written stay where they are.
    ///
    /// # Errors
    ///
    /// [`KernelError`] if programs that other characteristics still need cannot be attached.
    pub fn disable(&mut self, what: &Characteristic) -> Result<(), KernelError> {
        let attached = &mut self.attached;
        match what {
            Characteristic::ServiceTime => attached.has_service = false,
            Characteristic::Counter(counter) => attached.counters.retain(|open| open.counter != *counter),
            Characteristic::Ipc => attached.ipc = None,
            Characteristic::Memory => attached.memory = None,
            Characteristic::RunQueue { .. } => attached.ticks.clear(),
        }
        attached.follow_switches(&self.skeleton)
    }

    /// The event of an enabled counter.
    pub fn event_of(&self, counter: &Counter) -> Option<EventId> {
        self.attached.event_of(counter)
    }

    /// Whether this kernel lets programs follow packets over the loopback device, so that
    /// [`Characteristic::Ipc`] includes the wake-ups that packets cause.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoHook`] names what is missing.
    pub fn follows_packets(&self) -> Result<(), KernelError> {
        match network(&self.skeleton).into_iter().find(|(program, _)| !program.has_hook()) {
            Some((_, hook)) => Err(KernelError::NoHook { characteristic: OVER_LOOPBACK, hook }),
            None => Ok(()),
        }
    }

    /// The names of the programs that are attached now.
    pub fn attached(&self) -> Vec<&'static str> {
        let (a, s) = (&self.attached, &self.skeleton);
        let single = [
            (program!(s, on_waking), a.ipc.is_some()),
            (program!(s, on_rss_stat), a.memory.is_some()),
            (program!(s, take_stock), a.memory.is_some()),
            (program!(s, on_tick), !a.ticks.is_empty()),
            (program!(s, inherit), a.inherit.is_some()),
            (program!(s, follow), a.follow.is_some()),
            (program!(s, follow_all), a.follow.is_some()),
        ];
        let single =
            single.into_iter().filter(|(_, is_attached)| *is_attached).map(|(program, _)| program.name);
        let network = a.ipc.iter().flat_map(|ipc| &ipc.network);
        let linked = network.chain(&a.select).map(|(name, _)| *name);
        a.switch.iter().map(|(name, _)| *name).chain(single).chain(linked).collect()
    }

    fn enable_service(&mut self) -> Result<EventId, KernelError> {
        if !self.attached.has_service {
            self.attached.has_service = true;
            let done = self.attached.follow_switches(&self.skeleton);
            done.inspect_err(|_| self.attached.has_service = false)?;
        }
        Ok(event::SERVICE_TIME)
    }

    fn enable_counter(&mut self, counter: &Counter) -> Result<EventId, KernelError> {
        if let Some(event) = self.attached.event_of(counter) {
            return Ok(event);
        }
        let open = self.attached.open_counter(&self.skeleton, counter, self.processors())?;
        let event = event::counter(open.nth);
        self.attached.counters.push(open);
        let done = self.attached.follow_switches(&self.skeleton);
        done.inspect_err(|_| drop(self.attached.counters.pop()))?;
        Ok(event)
    }

    fn enable_ipc(&mut self) -> Result<EventId, KernelError> {
        if self.attached.ipc.is_none() {
            let wakeups =
                program!(self.skeleton, on_waking).attach("IPC usage", "sched_waking tracepoint")?;
            // All or none: with only a part of them, wake-ups would be charged to the sender of an earlier
            // packet.
            let network = if self.follows_packets().is_ok() { self.attach_network()? } else { Vec::new() };
            self.attached.ipc = Some(Ipc { _wakeups: wakeups, network });
        }
        Ok(event::IPC_SEND)
    }

    fn attach_network(&self) -> Result<Vec<(&'static str, Link)>, KernelError> {
        let programs = network(&self.skeleton).into_iter();
        programs.map(|(program, hook)| Ok((program.name, program.attach(OVER_LOOPBACK, hook)?))).collect()
    }

    fn enable_memory(&mut self) -> Result<EventId, KernelError> {
        if self.attached.memory.is_none() {
            self.attached.memory = Some(Memory::start(&self.skeleton)?);
        }
        Ok(event::MEMORY)
    }

    fn enable_ticks(&mut self, hertz: u32) -> Result<EventId, KernelError> {
        if !(1..=10_000).contains(&hertz) {
            return Err(KernelError::TickRate(hertz));
        }
        self.attached.ticks = program!(self.skeleton, on_tick).attach_ticks(hertz, self.processors())?;
        Ok(event::RUN_QUEUE)
    }

    /// From the first binding on, new tasks take over the domain of their parent.
    pub(crate) fn follow_tasks(&mut self) -> Result<(), KernelError> {
        if self.attached.inherit.is_none() {
            let inherit = program!(self.skeleton, inherit);
            self.attached.inherit =
                Some(inherit.attach("inheritance of domains", "task_newtask tracepoint")?);
        }
        Ok(())
    }

    /// From the first rule on, the kernel compares processes with the rules when they change.
    pub(crate) fn follow_selections(&mut self) -> Result<(), KernelError> {
        self.follow_tasks()?;
        if self.attached.select.is_empty() {
            let what = "a process that becomes what a selector asks for";
            let programs = [
                (program!(self.skeleton, on_exec), "sched_process_exec tracepoint"),
                (program!(self.skeleton, on_rename), "task_rename tracepoint"),
            ];
            let links =
                programs.into_iter().map(|(program, hook)| Ok((program.name, program.attach(what, hook)?)));
            self.attached.select = links.collect::<Result<_, KernelError>>()?;
        }
        Ok(())
    }

    /// From the first binding of a cgroup on, the kernel follows tasks that move.
    pub(crate) fn follow_cgroups(&mut self) -> Result<(), KernelError> {
        self.follow_tasks()?;
        if self.attached.follow.is_none() {
            let what = "movement between cgroups";
            let moves = program!(self.skeleton, follow).attach(what, "cgroup_attach_task tracepoint")?;
            let all = program!(self.skeleton, follow_all).attach(what, "iterator over tasks")?;
            self.attached.follow = Some(Follow { _moves: moves, all });
        }
        Ok(())
    }

    /// Has the kernel look once where each task belongs by its cgroups. Does nothing if no cgroup was ever
    /// bound.
    pub(crate) fn follow_all(&self) -> Result<(), KernelError> {
        let program = program!(self.skeleton, follow_all);
        self.attached.follow.as_ref().map_or(Ok(()), |follow| program.run_for_all(&follow.all))
    }
}

impl Attached {
    fn event_of(&self, counter: &Counter) -> Option<EventId> {
        self.counters.iter().find(|open| open.counter == *counter).map(|open| event::counter(open.nth))
    }

    /// Brings the one program on the context switch in line with what is enabled.
    fn follow_switches(&mut self, skeleton: &MeteSkel<'static>) -> Result<(), KernelError> {
        let wanted = match (self.has_service, !self.counters.is_empty()) {
            (false, false) => None,
            (true, false) => Some(program!(skeleton, switch_service)),
            (false, true) => Some(program!(skeleton, switch_counters)),
            (true, true) => Some(program!(skeleton, switch_both)),
        };
        if self.switch.as_ref().map(|(name, _)| *name) != wanted.map(|program| program.name) {
            // Detached before the other one is attached: the two share what they remember of a phase.
            self.switch = None;
        }
        // Before a program is attached: under the old generation, it would go on with phases of an earlier
        // attachment.
        self.write_switching(skeleton)?;
        if let (Some(program), None) = (wanted, &self.switch) {
            let link = program.attach("processor use", "sched_switch tracepoint")?;
            self.switch = Some((program.name, link));
        }
        Ok(())
    }

    /// Tells the programs what is enabled. A new generation makes void what they remember of a phase that
    /// began under other counters.
    fn write_switching(&mut self, skeleton: &MeteSkel<'static>) -> Result<(), KernelError> {
        self.generation = self.generation.wrapping_add(1);
        let switching = switching {
            generation: self.generation,
            counters: self.counters.iter().fold(0, |mask, open| mask | 1 << open.nth),
            service: self.has_service.into(),
        };
        globals!(mete, skeleton, bss_switching).write_all(&bss_switching { switching })
    }

    fn open_counter(
        &self,
        skeleton: &MeteSkel<'static>,
        counter: &Counter,
        processors: usize,
    ) -> Result<OpenCounter, KernelError> {
        let nth = self.free_counter().ok_or_else(|| KernelError::TooManyCounters {
            counter: counter.name().into(),
            max: event::MAX_COUNTERS,
        })?;
        let mut events = Vec::new();
        for processor in processors::online(processors) {
            let event = perf::open_counter(counter, processor)?;
            let fd = event.as_fd().as_raw_fd() as u32;
            // Where `read_counter` of bpf/switch.bpf.h looks for it.
            table!(mete, skeleton, counters).write((nth * processors + processor) as u32, &fd)?;
            events.push(event);
        }
        Ok(OpenCounter { counter: counter.clone(), nth, _events: events })
    }

    /// The lowest number that no open counter has.
    fn free_counter(&self) -> Option<usize> {
        (0..event::MAX_COUNTERS).find(|nth| self.counters.iter().all(|open| open.nth != *nth))
    }
}
