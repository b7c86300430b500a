//! A guest: a kernel with a scheduler of its own, on one or several virtual processors.
//!
//! ```text
//!   signal ──▶ pending ──▶ interrupt: makes tasks ready ──▶ choose ──▶ task switch ──▶ task runs
//!              (until the guest has a processor)                          │
//!                                                    seen by the host as TaskSwitch
//! ```
//!
//! The kernel is unmodified (TAVS paper, §3.2). The host sees that the kernel loads another address space,
//! that it asks for blocks, and that it idles, which blocks the virtual processor (§2.1). An idle kernel
//! keeps the last task's address space, so a task that is followed by itself makes no switch.
//!
//! Each virtual processor is a client of the host's policy and has a run queue of its own; `balance.rs`
//! decides which task is in which. Packets come to the first virtual processor. It makes the waiting task
//! ready, and interrupts the virtual processor on which that task runs if that is another one. Timers and the
//! answers to reads come to the virtual processor that asked; packets between tasks of the guest come to the
//! one that sends them. A task that holds a spin lock or waits for one keeps its virtual processor from other
//! tasks, as in a kernel. So only the host can take the processor from the holder of a spin lock.

mod balance;
mod fair;
mod kernel;
mod priority;
mod scheduler;
mod vcpu;

use std::sync::Arc;

use mete_policy::{ClientId, Nanoseconds, Observation};

use super::inbox::Inbox;
use super::locks::Locks;
use super::program::Program;
use super::read::{Read, TaskId};
use super::task::{AtHand, Awaited, Task, Turn, Wait};
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
    /// `None`: the task is ready or runs.
    wait: Option<Wait>,
    /// The virtual processor in whose run queue the task is, or was last.
    home: usize,
    slept_from_ns: Nanoseconds,
    /// What is left of its slice. A task that is preempted keeps that; at 0 it gets a new slice.
    slice_left_ns: Nanoseconds,
    ran_ns: Nanoseconds,
}

/// A guest on its virtual processors.
pub struct Guest {
    costs: KernelCosts,
    vcpus: Vec<Vcpu>,
    /// The first virtual processor's number as a client; the others have the numbers after it.
    pub(super) first: ClientId,
    tasks: Vec<GuestTask>,
    /// How many tasks have not exited.
    left: usize,
    pub(super) inbox: Inbox,
    /// The locks between the guest's own tasks.
    locks: Locks,
}

impl Guest {
    /// A guest without tasks on this number of virtual processors, at least one. Each has a run queue like
    /// `kernel`.
    pub fn new(vcpus: usize, kernel: Kernel, costs: KernelCosts) -> Guest {
        Guest {
            costs,
            vcpus: vec![kernel; vcpus.max(1)].into_iter().map(Vcpu::new).collect(),
            first: ClientId::new(0),
            tasks: Vec::new(),
            left: 0,
            inbox: Inbox::default(),
            locks: Locks::default(),
        }
    }

    /// Adds a task, ready from the guest's first moment on. Niceness is limited to −20 to 19. Tasks begin on
    /// one virtual processor after another.
    pub fn add_task(&mut self, program: Arc<Program>, nice: i32, stream: Stream) {
        let home = self.tasks.len() % self.vcpus.len();
        for (at, vcpu) in self.vcpus.iter_mut().enumerate() {
            // Every run queue knows every task, so that one can take a task over from another by its number.
            vcpu.kernel.scheduler().add(nice.clamp(-20, 19));
            vcpu.ready.push(at == home);
        }
        self.inbox.listen(program.ports());
        let task = Task::new(program, stream);
        self.tasks.push(GuestTask {
            task,
            wait: None,
            home,
            slept_from_ns: Nanoseconds::ZERO,
            slice_left_ns: Nanoseconds::ZERO,
            ran_ns: Nanoseconds::ZERO,
        });
        self.left += 1;
    }

    /// Lets the kernel send at most this number of reads at a time; the others wait until one is complete. 1
    /// is what a scheduler does that serves one reader at a time, such as Linux's CFQ. The default, 0, allows
    /// any number.
    pub fn set_read_depth(&mut self, depth: usize) {
        self.inbox.set_read_depth(depth);
    }

    /// Lets a port hold at most this number of packets from the guest's own tasks. A task that would send
    /// more waits until three quarters of them have been taken, as with Linux's local sockets. The default,
    /// 0, allows any number.
    pub fn set_port_packets(&mut self, packets: usize) {
        self.inbox.set_port_packets(packets);
    }

    /// How many virtual processors the guest has.
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// The processor time that a task has had.
    pub fn ran_ns(&self, task: u16) -> Nanoseconds {
        self.tasks.get(usize::from(task)).map_or(Nanoseconds::ZERO, |task| task.ran_ns)
    }

    /// How often another address space was loaded, on all virtual processors together.
    pub fn switches(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.switches).sum()
    }

    /// How long tasks spun for locks on the virtual processor that is this client.
    pub(super) fn spun_ns(&self, client: ClientId) -> Nanoseconds {
        self.vcpus.get(self.at(client)).map_or(Nanoseconds::ZERO, |vcpu| vcpu.spun_ns)
    }

    /// The tasks that wait for what others have to do: the task's number, what it waits for, and since when.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (u16, Awaited, Nanoseconds)> {
        let tasks = (0..).zip(&self.tasks);
        tasks.filter_map(|(number, task)| Some((number, task.wait?.awaited()?, task.slept_from_ns)))
    }

    /// The index of the virtual processor that is this client.
    fn at(&self, client: ClientId) -> usize {
        client.index() - self.first.index()
    }

    fn client(&self, at: usize) -> ClientId {
        ClientId::at(self.first.index() + at)
    }

    pub(super) fn deliver(&mut self, client: ClientId, signal: Signal, now_ns: Nanoseconds) -> Reaction {
        // A free lock raises no event: the tasks that spin see it in their memory.
        if signal != Signal::Released {
            let at = self.at(client);
            self.vcpus[at].pending.push_back((signal, now_ns));
        }
        Reaction::Wake
    }

    pub(super) fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let at = self.at(client);
        let vcpu = &mut self.vcpus[at];
        // The kernel's own work comes before any task's.
        let of_kernel_ns = ran_ns.min(vcpu.kernel_left_ns);
        vcpu.kernel_left_ns -= of_kernel_ns;
        let of_task_ns = ran_ns - of_kernel_ns;
        let Some(current) = vcpu.current.filter(|_| !of_task_ns.is_zero()) else { return };
        let task = &mut self.tasks[current];
        if task.task.is_spinning {
            vcpu.spun_ns += of_task_ns;
        }
        task.task.advance(of_task_ns);
        task.ran_ns += of_task_ns;
        task.slice_left_ns = task.slice_left_ns.saturating_sub(of_task_ns);
        vcpu.kernel.scheduler().ran(current, of_task_ns);
    }

    pub(super) fn next(&mut self, client: ClientId, world: &mut World, context: &mut Context<Scene>) -> Step {
        // The last task has exited on another virtual processor.
        if self.left == 0 {
            return Step::Exit;
        }
        let at = self.at(client);
        self.interrupt(at, world, context);
        if !self.vcpus[at].kernel_left_ns.is_zero() {
            return Step::Compute(self.vcpus[at].kernel_left_ns);
        }
        self.balance(at, context.now_ns());
        // While its task holds a spin lock or waits for one, the kernel keeps to that task.
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

    /// Takes the pending signals. They make tasks ready, and these may take the processor from the present
    /// task.
    fn interrupt(&mut self, at: usize, world: &mut World, context: &mut Context<Scene>) {
        while let Some((signal, came_ns)) = self.vcpus[at].pending.pop_front() {
            self.work(at, self.cost_ns(signal));
            if let Signal::Room { port } = signal {
                self.wake_senders(at, port, came_ns, context);
            }
            if let Signal::Packet { .. } | Signal::Sent = signal {
                world.io.look(self.first);
            }
            let task = self.woken_task(at, signal, world, context);
            // The kernel sends a deferred read while the interrupted task runs.
            if let Some(read) = self.inbox.admit_deferred() {
                world.io.read(Read { on: self.client(at), ..read }, context);
            }
            if let Some(task) = task {
                self.wake(at, task, came_ns, context);
            }
        }
    }

    /// What taking a signal costs the kernel. A message between the guest's own tasks is no interrupt.
    fn cost_ns(&self, signal: Signal) -> Nanoseconds {
        match signal {
            Signal::Local { .. } | Signal::Room { .. } => Nanoseconds::ZERO,
            Signal::Granted { .. } => self.costs.interrupt_ns,
            _ => self.costs.interrupt_ns.saturating_add(self.costs.track_ns),
        }
    }

    /// Gives the kernel this much to do before any task runs.
    fn work(&mut self, at: usize, length_ns: Nanoseconds) {
        let vcpu = &mut self.vcpus[at];
        vcpu.kernel_left_ns = vcpu.kernel_left_ns.saturating_add(length_ns);
    }

    /// The task that a signal wakes.
    fn woken_task(
        &mut self,
        at: usize,
        signal: Signal,
        world: &mut World,
        context: &mut Context<Scene>,
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
                if is_heard { self.waiting_for(Wait::For(Awaited::Packet { port })) } else { None }
            }
        }
    }

    /// The first task that waits for this.
    fn waiting_for(&self, wait: Wait) -> Option<usize> {
        self.tasks.iter().position(|task| task.wait == Some(wait))
    }

    /// Makes all tasks ready that wait for room at a port.
    fn wake_senders(&mut self, at: usize, port: u16, came_ns: Nanoseconds, context: &mut Context<Scene>) {
        // Each wake-up clears the task's wait, so the search ends.
        while let Some(task) = self.waiting_for(Wait::For(Awaited::Room { port })) {
            self.wake(at, task, came_ns, context);
        }
    }

    /// Makes a task ready because something has come for it to the virtual processor `at`.
    fn wake(&mut self, at: usize, task: usize, came_ns: Nanoseconds, context: &mut Context<Scene>) {
        let now_ns = context.now_ns();
        let slept_ns = now_ns.saturating_sub(self.tasks[task].slept_from_ns);
        self.tasks[task].wait = None;
        let to = self.place(task);
        self.settle(task, to);
        let vcpu = &mut self.vcpus[to];
        vcpu.ready[task] = true;
        let preempts = vcpu.kernel.scheduler().woke(task, slept_ns, vcpu.current);
        // An idle virtual processor has to choose, even if the scheduler names no task to preempt.
        let is_due = preempts || vcpu.current.is_none();
        vcpu.must_choose |= is_due;
        // The virtual processor `at` runs its kernel now and chooses afterwards; another one has to be
        // interrupted.
        if is_due && to != at {
            context.notify(self.client(to), Signal::Kick);
        }
        let (client, pending_ns) = (self.client(at), now_ns.saturating_sub(came_ns));
        context.note(Note::TaskWoke { client, task: task as u16, pending_ns });
    }

    /// Whether the kernel must not take the virtual processor from the present task.
    fn is_atomic(&self, at: usize) -> bool {
        self.vcpus[at].current.is_some_and(|current| self.tasks[current].task.is_atomic())
    }

    fn end_slice(&mut self, at: usize) {
        let vcpu = &mut self.vcpus[at];
        let Some(current) = vcpu.current else { return };
        if self.tasks[current].slice_left_ns.is_zero() {
            vcpu.kernel.scheduler().expired(current);
            vcpu.must_choose = true;
        }
    }

    /// Chooses a task. `Some` if the host has to learn of it, or if the switch takes time.
    fn choose(&mut self, at: usize, context: &mut Context<Scene>) -> Option<Step> {
        // Before a virtual processor idles, it takes over a task that waits elsewhere.
        if self.vcpus.len() > 1 && self.vcpus[at].load() == 0 {
            self.pull(at, 1);
        }
        let vcpu = &mut self.vcpus[at];
        vcpu.must_choose = false;
        vcpu.current = vcpu.kernel.scheduler().choose(&vcpu.ready);
        let chosen = vcpu.current?;
        if self.tasks[chosen].slice_left_ns.is_zero() {
            let load = vcpu.load();
            let slice_ns = vcpu.kernel.scheduler().slice_ns(chosen, load);
            // At least 1, because 0 means that a new slice is due.
            self.tasks[chosen].slice_left_ns = slice_ns.max(Nanoseconds::new(1));
        }
        // The same address space is loaded: neither the host nor the clock notices.
        if vcpu.loaded.replace(chosen) == Some(chosen) {
            return None;
        }
        vcpu.switches += 1;
        self.work(at, self.costs.switch_ns.saturating_add(self.costs.track_ns));
        context.observe(Observation::TaskSwitch {
            client: self.client(at),
            task: mete_policy::TaskId::at(chosen),
        });
        Some(Step::Continue)
    }

    fn go_on(&mut self, at: usize, current: usize, world: &mut World, context: &mut Context<Scene>) -> Step {
        // The task's client is the guest's first, wherever it runs, so that its locks and ports stay the
        // same.
        let who = TaskId { client: self.first, task: current as u16 };
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
                // As if the slice were over: the scheduler chooses again.
                task.slice_left_ns = Nanoseconds::ZERO;
                Step::Continue
            }
            Turn::Exit => {
                self.left -= 1;
                context.observe(Observation::TaskExit { client: on, task: mete_policy::TaskId::at(current) });
                self.exit(at, current, context)
            }
        }
    }

    /// How long a task computes until its kernel has something to decide.
    fn burst_ns(&self, at: usize, current: usize, now_ns: Nanoseconds) -> Nanoseconds {
        let GuestTask { task, slice_left_ns, .. } = &self.tasks[current];
        // The end of a slice takes no processor from a task with a spin lock.
        let left_ns = if task.is_atomic() { task.left_ns } else { task.left_ns.min(*slice_left_ns) };
        if self.vcpus.len() == 1 {
            return left_ns;
        }
        // At least 1 ns, so that time goes on when balancing is overdue.
        left_ns.min(self.vcpus[at].balances_at_ns.saturating_sub(now_ns).max(Nanoseconds::new(1)))
    }

    fn leave(&mut self, at: usize, current: usize, now_ns: Nanoseconds) -> Step {
        self.tasks[current].slept_from_ns = now_ns;
        let vcpu = &mut self.vcpus[at];
        vcpu.ready[current] = false;
        vcpu.current = None;
        vcpu.must_choose = true;
        Step::Continue
    }

    /// A task has exited. With the last one the guest ends on all its virtual processors.
    fn exit(&mut self, at: usize, current: usize, context: &mut Context<Scene>) -> Step {
        if self.left > 0 {
            return self.leave(at, current, context.now_ns());
        }
        // A kick makes the others ask, and they answer that they exit.
        for other in (0..self.vcpus.len()).filter(|other| *other != at) {
            context.notify(self.client(other), Signal::Kick);
        }
        Step::Exit
    }
}
