//! A guest: a kernel with a scheduler of its own on one virtual processor or several.
//!
//! ```text
//!   signal ──▶ pending ──▶ interrupt: makes tasks ready ──▶ choose ──▶ task switch ──▶ task runs
//!              (until the guest has a processor)                          │
//!                                                    seen by the host as TaskSwitch
//! ```
//!
//! The kernel is unmodified (TAVS paper, §3.2): the host sees that it loads another address space, that
//! it asks for blocks, and that it idles, which blocks the virtual processor (§2.1). Idling keeps the
//! last task's address space, so a task that is followed by itself is no switch.
//!
//! Each virtual processor is a client of the host's policy and has a run queue of its own; who is in which
//! is decided in `balance.rs`. Packets come to the first one, which makes the task ready that waits and
//! interrupts the virtual processor that it runs on if that is another; timers and the answers to reads
//! come to the one that asked, packets between tasks of the guest to the one that sends them. A task that
//! holds a spin lock or waits for one keeps its virtual processor from other tasks, as in a kernel, so that
//! only the host can take the processor from a lock's holder.

mod balance;
mod fair;
mod kernel;
mod priority;
mod vcpu;

use std::sync::Arc;

use mete_policy::{ClientId, Nanoseconds, Observation};

use super::inbox::Inbox;
use super::io::Read;
use super::locks::Locks;
use super::program::Program;
use super::task::{AtHand, Awaited, Task, Turn, Wait, Who};
use super::{Scene, Signal, World};
use crate::model::{Context, Reaction, Step};
use crate::random::Stream;
use crate::recorder::Note;
pub use fair::Fair;
pub use kernel::{Kernel, KernelCosts};
pub use priority::Priority;
use vcpu::Vcpu;

struct GuestTask {
    task: Task,
    /// `None`: it is ready, or runs.
    wait: Option<Wait>,
    /// In the run queue of which virtual processor it is, or was last.
    home: usize,
    slept_from_ns: Nanoseconds,
    /// A task that is preempted keeps what it has left; 0: it gets a new slice.
    slice_left_ns: Nanoseconds,
    ran_ns: Nanoseconds,
}

/// A guest on its virtual processors.
pub struct Guest {
    costs: KernelCosts,
    vcpus: Vec<Vcpu>,
    /// The first virtual processor's number as a client; the others follow.
    first: ClientId,
    tasks: Vec<GuestTask>,
    /// How many tasks are not over.
    left: usize,
    inbox: Inbox,
    /// Locks between its own tasks.
    locks: Locks,
}

impl Guest {
    /// A guest without tasks on one virtual processor.
    #[must_use]
    pub fn new(kernel: Kernel, costs: KernelCosts) -> Guest {
        Guest::with_vcpus(1, kernel, costs)
    }

    /// A guest without tasks on so many virtual processors, at least one. Each has a run queue like
    /// `kernel`.
    #[must_use]
    pub fn with_vcpus(vcpus: usize, kernel: Kernel, costs: KernelCosts) -> Guest {
        Guest {
            costs,
            vcpus: vec![kernel; vcpus.max(1)].into_iter().map(Vcpu::new).collect(),
            first: 0,
            tasks: Vec::new(),
            left: 0,
            inbox: Inbox::default(),
            locks: Locks::default(),
        }
    }

    /// Adds a task, ready from the guest's first moment on; niceness is cut to −20 to 19. Tasks begin on
    /// one virtual processor after another.
    pub fn add_task(&mut self, program: Arc<Program>, nice: i32, stream: Stream) {
        let home = self.tasks.len() % self.vcpus.len();
        for (at, vcpu) in self.vcpus.iter_mut().enumerate() {
            vcpu.kernel.scheduler().add(nice.clamp(-20, 19));
            vcpu.ready.push(at == home);
        }
        self.inbox.listen(program.ports());
        let task = Task::new(program, stream);
        self.tasks.push(GuestTask { task, wait: None, home, slept_from_ns: 0, slice_left_ns: 0, ran_ns: 0 });
        self.left += 1;
    }

    /// Lets the kernel send so many reads at a time; the others wait until one is complete. 1 is what a
    /// scheduler does that serves one reader at a time, such as Linux's CFQ; 0, at first, any number.
    pub fn set_read_depth(&mut self, depth: usize) {
        self.inbox.set_read_depth(depth);
    }

    /// Lets a port hold so many packets that the guest's own tasks send there; 0, at first, any number. Who
    /// would send more waits until three quarters have been taken, as with Linux's local sockets.
    pub fn set_port_packets(&mut self, packets: usize) {
        self.inbox.set_port_packets(packets);
    }

    /// How many virtual processors it has.
    #[must_use]
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// The processor time that a task has had.
    #[must_use]
    pub fn ran_ns(&self, task: u16) -> Nanoseconds {
        self.tasks.get(usize::from(task)).map_or(0, |task| task.ran_ns)
    }

    /// How often another address space was loaded, on all virtual processors together.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.switches).sum()
    }

    /// How long tasks turned in circles for spin locks on the virtual processor that is this client.
    pub(super) fn spun_ns(&self, client: ClientId) -> Nanoseconds {
        self.vcpus.get(self.at(client)).map_or(0, |vcpu| vcpu.spun_ns)
    }

    /// Its first virtual processor is that client.
    pub(super) fn begin_at(&mut self, first: ClientId) {
        self.first = first;
    }

    pub(super) fn inbox(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    pub(super) fn dropped(&self) -> u64 {
        self.inbox.dropped()
    }

    /// Which tasks wait for what others have to do, and since when.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (u16, Awaited, Nanoseconds)> {
        let tasks = (0..).zip(&self.tasks);
        tasks.filter_map(|(number, task)| Some((number, task.wait?.awaited()?, task.slept_from_ns)))
    }

    /// Which of its virtual processors that client is.
    fn at(&self, client: ClientId) -> usize {
        (client - self.first) as usize
    }

    fn client(&self, at: usize) -> ClientId {
        self.first + at as ClientId
    }

    pub(super) fn deliver(&mut self, client: ClientId, signal: Signal, now_ns: Nanoseconds) -> Reaction {
        // That a lock is free is no event: who spins sees it in its memory.
        if signal != Signal::Released {
            let at = self.at(client);
            self.vcpus[at].pending.push_back((signal, now_ns));
        }
        Reaction::Wake
    }

    pub(super) fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let at = self.at(client);
        let vcpu = &mut self.vcpus[at];
        let of_kernel_ns = ran_ns.min(vcpu.kernel_left_ns);
        vcpu.kernel_left_ns -= of_kernel_ns;
        let of_task_ns = ran_ns - of_kernel_ns;
        let Some(current) = vcpu.current.filter(|_| of_task_ns > 0) else { return };
        let task = &mut self.tasks[current];
        if task.task.is_spinning() {
            vcpu.spun_ns += of_task_ns;
        }
        task.task.advance(of_task_ns);
        task.ran_ns += of_task_ns;
        task.slice_left_ns = task.slice_left_ns.saturating_sub(of_task_ns);
        vcpu.kernel.scheduler().ran(current, of_task_ns);
    }

    pub(super) fn next(
        &mut self,
        client: ClientId,
        world: &mut World,
        context: &mut Context<'_, Scene>,
    ) -> Step {
        if self.left == 0 {
            return Step::Exit;
        }
        let at = self.at(client);
        self.interrupt(at, world, context);
        if self.vcpus[at].kernel_left_ns > 0 {
            return Step::Compute(self.vcpus[at].kernel_left_ns);
        }
        self.balance(at, context.now_ns());
        if !self.is_atomic(at) {
            self.end_slice(at);
            if self.vcpus[at].must_choose
                && let Some(step) = self.choose(at, context)
            {
                return step;
            }
        }
        match self.vcpus[at].current {
            Some(current) => self.go_on(at, current, world, context),
            None => Step::Block,
        }
    }

    /// Takes what is pending: tasks become ready, and may take the processor from the present one.
    fn interrupt(&mut self, at: usize, world: &mut World, context: &mut Context<'_, Scene>) {
        while let Some((signal, came_ns)) = self.vcpus[at].pending.pop_front() {
            self.work(at, self.cost_ns(signal));
            if let Signal::Room { port } = signal {
                self.wake_senders(at, port, came_ns, context);
            }
            if let Signal::Packet { .. } | Signal::Sent = signal {
                world.io.look(self.first);
            }
            let task = self.whom(at, signal, world, context);
            // The kernel sends what has waited while the task runs that was interrupted.
            if let Some(read) = self.inbox.admit_deferred() {
                world.io.read(Read { on: self.client(at), ..read }, context);
            }
            if let Some(task) = task {
                self.wake(at, task, came_ns, context);
            }
        }
    }

    /// What taking a signal costs the kernel. What the guest's tasks send each other is no interrupt.
    fn cost_ns(&self, signal: Signal) -> Nanoseconds {
        match signal {
            Signal::Local { .. } | Signal::Room { .. } => 0,
            Signal::Granted { .. } => self.costs.interrupt_ns,
            _ => self.costs.interrupt_ns.saturating_add(self.costs.track_ns),
        }
    }

    /// Gives the kernel so much to do before any task.
    fn work(&mut self, at: usize, length_ns: Nanoseconds) {
        let vcpu = &mut self.vcpus[at];
        vcpu.kernel_left_ns = vcpu.kernel_left_ns.saturating_add(length_ns);
    }

    /// Which task a signal wakes.
    fn whom(
        &mut self,
        at: usize,
        signal: Signal,
        world: &mut World,
        context: &mut Context<'_, Scene>,
    ) -> Option<usize> {
        let on = self.client(at);
        match signal {
            Signal::Timer { task } | Signal::Granted { task } => Some(usize::from(task)),
            Signal::Kick | Signal::Sent | Signal::Released | Signal::Room { .. } => None,
            Signal::Unacknowledged { port } => {
                world.acknowledge(on, &mut self.inbox, port, context);
                None
            }
            Signal::Read { request } => self.inbox.complete(request).map(usize::from),
            Signal::Packet { port, packet } | Signal::Local { port, packet } => {
                let is_heard = world.put(on, &mut self.inbox, (port, packet), context);
                let waits = |task: &GuestTask| task.wait == Some(Wait::Packet { port });
                if is_heard { self.tasks.iter().position(waits) } else { None }
            }
        }
    }

    /// Makes all ready that wait for room at a port.
    fn wake_senders(&mut self, at: usize, port: u16, came_ns: Nanoseconds, context: &mut Context<'_, Scene>) {
        let waits = |task: &GuestTask| task.wait == Some(Wait::Room { port });
        while let Some(task) = self.tasks.iter().position(waits) {
            self.wake(at, task, came_ns, context);
        }
    }

    /// Makes a task ready for which something has come to the virtual processor `at`.
    fn wake(&mut self, at: usize, task: usize, came_ns: Nanoseconds, context: &mut Context<'_, Scene>) {
        let now_ns = context.now_ns();
        let slept_ns = now_ns.saturating_sub(self.tasks[task].slept_from_ns);
        self.tasks[task].wait = None;
        let to = self.place(task);
        self.settle(task, to);
        let vcpu = &mut self.vcpus[to];
        vcpu.ready[task] = true;
        let preempts = vcpu.kernel.scheduler().woke(task, slept_ns, vcpu.current);
        let is_due = preempts || vcpu.current.is_none();
        vcpu.must_choose |= is_due;
        if is_due && to != at {
            context.notify(self.client(to), Signal::Kick);
        }
        let (client, pending_ns) = (self.client(at), now_ns.saturating_sub(came_ns));
        context.note(Note::TaskWoke { client, task: task as u16, pending_ns });
    }

    /// Its task must not be taken from it by the kernel.
    fn is_atomic(&self, at: usize) -> bool {
        self.vcpus[at].current.is_some_and(|current| self.tasks[current].task.is_atomic())
    }

    fn end_slice(&mut self, at: usize) {
        let vcpu = &mut self.vcpus[at];
        let Some(current) = vcpu.current else { return };
        if self.tasks[current].slice_left_ns == 0 {
            vcpu.kernel.scheduler().expired(current);
            vcpu.must_choose = true;
        }
    }

    /// Chooses a task; `Some` if the host has to hear of it, or the switch takes time.
    fn choose(&mut self, at: usize, context: &mut Context<'_, Scene>) -> Option<Step> {
        if self.vcpus.len() > 1 && self.vcpus[at].load() == 0 {
            self.pull(at, 1);
        }
        let vcpu = &mut self.vcpus[at];
        vcpu.must_choose = false;
        vcpu.current = vcpu.kernel.scheduler().choose(&vcpu.ready);
        let chosen = vcpu.current?;
        if self.tasks[chosen].slice_left_ns == 0 {
            let load = vcpu.load();
            let slice_ns = vcpu.kernel.scheduler().slice_ns(chosen, load);
            self.tasks[chosen].slice_left_ns = slice_ns.max(1);
        }
        if vcpu.loaded.replace(chosen) == Some(chosen) {
            return None;
        }
        vcpu.switches += 1;
        self.work(at, self.costs.switch_ns.saturating_add(self.costs.track_ns));
        context.observe(Observation::TaskSwitch { client: self.client(at), task: chosen as u16 });
        Some(Step::Continue)
    }

    fn go_on(
        &mut self,
        at: usize,
        current: usize,
        world: &mut World,
        context: &mut Context<'_, Scene>,
    ) -> Step {
        let who = Who { client: self.first, task: current as u16 };
        let (on, now_ns) = (self.client(at), context.now_ns());
        let task = &mut self.tasks[current];
        let (inbox, locks, io) = (&mut self.inbox, &mut self.locks, &mut world.io);
        let mut at_hand = AtHand { on, inbox, locks, io, context };
        match task.task.next(who, &mut at_hand) {
            Turn::Compute => Step::Compute(self.burst_ns(at, current, now_ns)),
            Turn::Spin => Step::Compute(Nanoseconds::MAX),
            Turn::Act => Step::Continue,
            Turn::Wait(wait) => {
                task.wait = Some(wait);
                self.leave(at, current, now_ns)
            }
            Turn::Yield => {
                task.slice_left_ns = 0;
                Step::Continue
            }
            Turn::Exit => {
                self.left -= 1;
                context.observe(Observation::TaskExit { client: on, task: current as u16 });
                self.exit(at, current, context)
            }
        }
    }

    /// How long a task computes until its kernel has something to decide.
    fn burst_ns(&self, at: usize, current: usize, now_ns: Nanoseconds) -> Nanoseconds {
        let GuestTask { task, slice_left_ns, .. } = &self.tasks[current];
        let left_ns = if task.is_atomic() { task.left_ns() } else { task.left_ns().min(*slice_left_ns) };
        if self.vcpus.len() == 1 {
            return left_ns;
        }
        left_ns.min(self.vcpus[at].balances_at_ns.saturating_sub(now_ns).max(1))
    }

    fn leave(&mut self, at: usize, current: usize, now_ns: Nanoseconds) -> Step {
        self.tasks[current].slept_from_ns = now_ns;
        let vcpu = &mut self.vcpus[at];
        vcpu.ready[current] = false;
        vcpu.current = None;
        vcpu.must_choose = true;
        Step::Continue
    }

    /// A task is over, and with the last one the guest on all its virtual processors.
    fn exit(&mut self, at: usize, current: usize, context: &mut Context<'_, Scene>) -> Step {
        if self.left > 0 {
            return self.leave(at, current, context.now_ns());
        }
        for other in (0..self.vcpus.len()).filter(|other| *other != at) {
            context.notify(self.client(other), Signal::Kick);
        }
        Step::Exit
    }
}
