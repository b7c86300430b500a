//! A guest: a kernel with a scheduler of its own on one virtual processor.
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

mod fair;
mod priority;

use std::collections::VecDeque;
use std::sync::Arc;

use mete_policy::{ClientId, Nanoseconds, Observation};

use super::inbox::Inbox;
use super::locks::Locks;
use super::program::Program;
use super::task::{AtHand, Awaited, Task, Turn, Wait, Who};
use super::{Scene, Signal, World};
use crate::model::{Context, Reaction, Step};
use crate::random::Stream;
use crate::recorder::Note;
pub use fair::Fair;
pub use priority::Priority;

/// A guest's own scheduler.
trait Scheduler {
    /// Makes a task known, with its niceness: −20 (best) to 19.
    fn add(&mut self, nice: i32);
    /// A task became ready; whether it should take the processor from `current`.
    fn woke(&mut self, task: usize, slept_ns: Nanoseconds, current: Option<usize>) -> bool;
    /// Who runs next.
    fn choose(&mut self, ready: &[bool]) -> Option<usize>;
    /// How long the task that was chosen may run.
    fn slice_ns(&self, task: usize, ready: usize) -> Nanoseconds;
    /// A task has run for so long.
    fn ran(&mut self, task: usize, ran_ns: Nanoseconds);
    /// A task's slice is used up.
    fn expired(&mut self, task: usize);
}

/// Which scheduler a guest has.
pub enum Kernel {
    /// Priorities with a bonus for who sleeps much.
    Priority(Priority),
    /// Least virtual run time first.
    Fair(Fair),
}

impl Kernel {
    fn scheduler(&mut self) -> &mut dyn Scheduler {
        match self {
            Kernel::Priority(scheduler) => scheduler,
            Kernel::Fair(scheduler) => scheduler,
        }
    }
}

/// What a guest kernel's own work costs, in processor time of its virtual processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCosts {
    /// Switching to another task.
    pub switch_ns: Nanoseconds,
    /// Taking one event.
    pub interrupt_ns: Nanoseconds,
}

struct GuestTask {
    task: Task,
    /// `None`: it is ready, or runs.
    wait: Option<Wait>,
    is_over: bool,
    slept_from_ns: Nanoseconds,
    /// A task that is preempted keeps what it has left; 0: it gets a new slice.
    slice_left_ns: Nanoseconds,
    ran_ns: Nanoseconds,
}

/// A guest on a virtual processor.
pub struct Guest {
    kernel: Kernel,
    costs: KernelCosts,
    tasks: Vec<GuestTask>,
    ready: Vec<bool>,
    inbox: Inbox,
    /// Locks between its own tasks.
    locks: Locks,
    /// Signals that the kernel has not taken, with the time of their arrival.
    pending: VecDeque<(Signal, Nanoseconds)>,
    /// Work of the kernel itself that comes before any task.
    kernel_left_ns: Nanoseconds,
    current: Option<usize>,
    /// Whose address space is loaded.
    loaded: Option<usize>,
    must_choose: bool,
    switches: u64,
}

impl Guest {
    /// A guest without tasks.
    #[must_use]
    pub fn new(kernel: Kernel, costs: KernelCosts) -> Guest {
        Guest {
            kernel,
            costs,
            tasks: Vec::new(),
            ready: Vec::new(),
            inbox: Inbox::default(),
            locks: Locks::default(),
            pending: VecDeque::new(),
            kernel_left_ns: 0,
            current: None,
            loaded: None,
            must_choose: true,
            switches: 0,
        }
    }

    /// Adds a task, ready from the guest's first moment on; niceness is cut to −20 to 19.
    pub fn add_task(&mut self, program: Arc<Program>, nice: i32, stream: Stream) {
        self.kernel.scheduler().add(nice.clamp(-20, 19));
        self.inbox.listen(program.ports());
        self.ready.push(true);
        let task = Task::new(program, stream);
        self.tasks.push(GuestTask {
            task,
            wait: None,
            is_over: false,
            slept_from_ns: 0,
            slice_left_ns: 0,
            ran_ns: 0,
        });
    }

    /// Lets the kernel send so many reads at a time; the others wait until one is complete. 1 is what a
    /// scheduler does that serves one reader at a time, such as Linux's CFQ; 0, at first, any number.
    pub fn set_read_depth(&mut self, depth: usize) {
        self.inbox.set_read_depth(depth);
    }

    /// The processor time that a task has had.
    #[must_use]
    pub fn ran_ns(&self, task: u16) -> Nanoseconds {
        self.tasks.get(usize::from(task)).map_or(0, |task| task.ran_ns)
    }

    /// How often another address space was loaded.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.switches
    }

    pub(super) fn dropped(&self) -> u64 {
        self.inbox.dropped()
    }

    /// Which tasks wait for what others have to do, and since when.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (u16, Awaited, Nanoseconds)> {
        let tasks = (0..).zip(&self.tasks);
        tasks.filter_map(|(number, task)| Some((number, task.wait?.awaited()?, task.slept_from_ns)))
    }

    pub(super) fn deliver(&mut self, signal: Signal, now_ns: Nanoseconds) -> Reaction {
        self.pending.push_back((signal, now_ns));
        Reaction::Wake
    }

    pub(super) fn advance(&mut self, ran_ns: Nanoseconds) {
        let of_kernel_ns = ran_ns.min(self.kernel_left_ns);
        self.kernel_left_ns -= of_kernel_ns;
        let of_task_ns = ran_ns - of_kernel_ns;
        let Some(current) = self.current.filter(|_| of_task_ns > 0) else { return };
        let task = &mut self.tasks[current];
        task.task.advance(of_task_ns);
        task.ran_ns += of_task_ns;
        task.slice_left_ns = task.slice_left_ns.saturating_sub(of_task_ns);
        self.kernel.scheduler().ran(current, of_task_ns);
    }

    pub(super) fn next(
        &mut self,
        client: ClientId,
        world: &mut World,
        context: &mut Context<'_, Scene>,
    ) -> Step {
        self.interrupt(client, world, context);
        if self.kernel_left_ns > 0 {
            return Step::Compute(self.kernel_left_ns);
        }
        self.end_slice();
        if self.must_choose
            && let Some(step) = self.choose(client, context)
        {
            return step;
        }
        match self.current {
            Some(current) => self.go_on(client, current, world, context),
            None => Step::Block,
        }
    }

    /// Takes what is pending: tasks become ready, and may take the processor from the present one.
    fn interrupt(&mut self, client: ClientId, world: &mut World, context: &mut Context<'_, Scene>) {
        while let Some((signal, came_ns)) = self.pending.pop_front() {
            self.kernel_left_ns += self.costs.interrupt_ns;
            let task = self.whom(signal);
            // The kernel sends what has waited while the task runs that was interrupted.
            if let Some(read) = self.inbox.admit_deferred() {
                world.io.read(read, context);
            }
            let Some(task) = task else { continue };
            let slept_ns = context.now_ns().saturating_sub(self.tasks[task].slept_from_ns);
            self.tasks[task].wait = None;
            self.ready[task] = true;
            let preempts = self.kernel.scheduler().woke(task, slept_ns, self.current);
            self.must_choose |= preempts || self.current.is_none();
            let pending_ns = context.now_ns().saturating_sub(came_ns);
            context.note(Note::TaskWoke { client, task: task as u16, pending_ns });
        }
    }

    /// Which task a signal wakes.
    fn whom(&mut self, signal: Signal) -> Option<usize> {
        match signal {
            Signal::Timer { task } | Signal::Granted { task } => Some(usize::from(task)),
            Signal::Kick => None,
            Signal::Read { request } => self.inbox.complete(request).map(usize::from),
            Signal::Packet { port, packet } => {
                let is_heard = self.inbox.put(port, packet);
                let waits = |task: &GuestTask| task.wait == Some(Wait::Packet { port });
                if is_heard { self.tasks.iter().position(waits) } else { None }
            }
        }
    }

    fn end_slice(&mut self) {
        let Some(current) = self.current else { return };
        if self.tasks[current].slice_left_ns == 0 {
            self.kernel.scheduler().expired(current);
            self.must_choose = true;
        }
    }

    /// Chooses a task; `Some` if the host has to hear of it, or the switch takes time.
    fn choose(&mut self, client: ClientId, context: &mut Context<'_, Scene>) -> Option<Step> {
        self.must_choose = false;
        self.current = self.kernel.scheduler().choose(&self.ready);
        let chosen = self.current?;
        if self.tasks[chosen].slice_left_ns == 0 {
            let ready = self.ready.iter().filter(|ready| **ready).count();
            self.tasks[chosen].slice_left_ns = self.kernel.scheduler().slice_ns(chosen, ready).max(1);
        }
        if self.loaded.replace(chosen) == Some(chosen) {
            return None;
        }
        self.switches += 1;
        self.kernel_left_ns += self.costs.switch_ns;
        context.observe(Observation::TaskSwitch { client, task: chosen as u16 });
        Some(Step::Continue)
    }

    fn go_on(
        &mut self,
        client: ClientId,
        current: usize,
        world: &mut World,
        context: &mut Context<'_, Scene>,
    ) -> Step {
        let (who, now_ns) = (Who { client, task: current as u16 }, context.now_ns());
        let task = &mut self.tasks[current];
        let (inbox, locks, io) = (&mut self.inbox, &mut self.locks, &mut world.io);
        let mut at_hand = AtHand { inbox, locks, io, context };
        match task.task.next(who, &mut at_hand) {
            Turn::Compute => Step::Compute(task.task.left_ns().min(task.slice_left_ns)),
            Turn::Act => Step::Continue,
            Turn::Wait(wait) => {
                task.wait = Some(wait);
                self.leave(current, now_ns)
            }
            Turn::Yield => {
                task.slice_left_ns = 0;
                Step::Continue
            }
            Turn::Exit => {
                task.is_over = true;
                context.observe(Observation::TaskExit { client, task: current as u16 });
                self.leave(current, now_ns)
            }
        }
    }

    fn leave(&mut self, current: usize, now_ns: Nanoseconds) -> Step {
        self.tasks[current].slept_from_ns = now_ns;
        self.ready[current] = false;
        self.current = None;
        self.must_choose = true;
        if self.tasks.iter().all(|task| task.is_over) { Step::Exit } else { Step::Continue }
    }
}
