//! Linux's own scheduler as a policy, so that a recording can run again under the scheduler that it was
//! recorded under: EEVDF as the kernel has it since 6.12, with a queue for each processor.
//!
//! ```text
//!   wake ──▶ place: idle processors first ──▶ that processor's queue ──▶ takes it at once, or waits for the tick
//!   idle ──▶ pull: from the longest queue         tick ──▶ slice over? ──▶ earliest eligible virtual deadline
//! ```
//!
//! Source: `kernel/sched/fair.c` of Linux 6.12 to 6.18, by its behaviour. The kernel's names stand with what
//! they name.
//!
//! | | |
//! |---|---|
//! | slice | `sysctl_sched_base_slice`, seen to be over at a tick or a wake-up |
//! | wake-up | takes the processor if its deadline is the earliest eligible one (`RUN_TO_PARITY`) |
//! | a thread blocks ahead of others | stays in the queue until they have caught up (`DELAY_DEQUEUE`, `DELAY_ZERO`) |
//! | place | an idle processor, or the less loaded of the thread's last one and the waker's |
//! | balance | a processor that becomes idle takes a thread; one that is idle at a tick is given one |
//! | real time | above all others, by priority |
//!
//! A thread that wakes takes the processor only if the running thread is not eligible, or has had the slice
//! that it was given. Of the idle processors, it gets the one where it ran before, if that is among them. If
//! none is idle, it gets the one where it ran, or the waker's if that has less load. At times, each processor
//! compares its load with the others'.
//!
//! Not included: groups (cgroups and sessions share as one), `sched_setaffinity`, `SCHED_BATCH`, `SCHED_IDLE`
//! and deadlines; load that fades (a thread's load is its mean over the recording); caches and domains of
//! processors. The time for a decision is linear in the number of threads in a queue.

use std::cell::Cell;
use std::rc::Rc;

use mete_policy::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Share, Stop};

use super::recording::{NICE_0, Recording, Script};

/// How the kernel of the recorded machine is built and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The time from tick to tick.
    pub tick_ns: Nanoseconds,
    /// The time that a thread is given at once (`base_slice_ns`).
    pub slice_ns: Nanoseconds,
    /// How many processors there are.
    pub processors: u16,
}

/// The tick of the kernels that most distributions build (HZ=250).
const USUAL_TICK_NS: Nanoseconds = Nanoseconds::new(4_000_000);
/// `sysctl_sched_base_slice` for one processor: since Linux 6.15, and before.
const SLICES_NS: [Nanoseconds; 2] = [Nanoseconds::new(700_000), Nanoseconds::new(750_000)];
/// A processor compares its queue's load with the others' after this time for each processor (`sd_init`: an
/// interval of as many milliseconds as the domain has processors), times [`BUSY_FACTOR`] if it is busy.
const BALANCE_NS: Nanoseconds = Nanoseconds::new(1_000_000);
/// `busy_factor` of the kernel's scheduling domains.
const BUSY_FACTOR: u64 = 16;
/// A thread that ran within this time is not moved (`sysctl_sched_migration_cost`).
const CACHE_HOT_NS: Nanoseconds = Nanoseconds::new(500_000);
/// The waker's processor must be less loaded by this percentage (half of `imbalance_pct` 117).
const AFFINE_PERCENT: i64 = 108;
/// The weight of nice 0 (`NICE_0_LOAD`).
const NICE_0_WEIGHT: i64 = 1024;
/// The quotient of two weights that are a step of nice apart (`sched_prio_to_weight`).
const NICE_STEP: f64 = 1.25;

impl Kernel {
    /// What the recording tells of the kernel: the tick by the ends of its slices, the slice by the kernel's
    /// name.
    pub fn of(recording: &Recording, processors: u16) -> Kernel {
        let is_older = recording.machine.kernel.as_deref().and_then(version).is_some_and(|of| of < (6, 15));
        let slice_ns = SLICES_NS[usize::from(is_older)];
        // `get_update_sysctl_factor`: logarithmic scaling, up to eight processors.
        let factor = 1 + u64::from(processors.clamp(1, 8).ilog2());
        let tick_ns = recording.machine.tick_ns().unwrap_or(USUAL_TICK_NS);
        Kernel { tick_ns, slice_ns: slice_ns * factor, processors: processors.max(1) }
    }
}

/// `Linux 6.18.44-…` as (6, 18).
fn version(kernel: &str) -> Option<(u32, u32)> {
    let mut parts = kernel.split_whitespace().nth(1)?.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The thread that woke each client last. The model writes it, the policy reads it.
pub(super) type Wakers = Rc<[Cell<Option<ClientId>>]>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskState {
    Absent,
    Blocked,
    /// It has blocked and is still in its queue, because it is ahead of the others.
    Delayed,
    Ready,
    Running,
}

struct Task {
    state: TaskState,
    /// Its real-time priority, lower is more urgent; `None` for threads that share by weight.
    real_time: Option<i32>,
    weight: i64,
    /// What it adds to its processor's load, on average.
    load: i64,
    only: Option<usize>,
    /// The processor where it runs, waits, or ran last.
    place: usize,
    is_new: bool,
    vruntime: i64,
    deadline: i64,
    /// How far it was behind the others' mean when it left.
    lag: i64,
    /// Up to this virtual time it keeps the processor (`vprot`).
    protected: i64,
    left_ns: Nanoseconds,
}

#[derive(Default)]
struct Queue {
    current: Option<ClientId>,
    picked_ns: Nanoseconds,
    /// The virtual time at which the current thread was picked.
    picked: i64,
    ready: Vec<ClientId>,
    load: i64,
    /// Whether it may take a thread from another queue: it has just lost its own, or another processor has
    /// seen at a tick that this one is idle.
    may_pull: bool,
    balanced_ns: Nanoseconds,
    failed: u32,
}

/// See the [module](self).
pub(super) struct Linux {
    kernel: Kernel,
    tasks: Vec<Task>,
    queues: Vec<Queue>,
    wakers: Wakers,
}

impl Linux {
    pub(super) fn new(recording: &Recording, kernel: Kernel, wakers: Wakers) -> Linux {
        let count = usize::from(kernel.processors);
        let tasks: Vec<_> = recording.scripts.iter().map(|of| task(of, recording, count)).collect();
        let mut queues: Vec<Queue> = (0..count).map(|_| Queue::default()).collect();
        tasks.iter().for_each(|task| queues[task.place].load += task.load);
        Linux { kernel, tasks, queues, wakers }
    }

    fn task(&self, client: ClientId) -> &Task {
        &self.tasks[client.index()]
    }

    fn task_mut(&mut self, client: ClientId) -> &mut Task {
        &mut self.tasks[client.index()]
    }

    fn slice(&self, client: ClientId) -> i64 {
        self.task(client).virtual_ns(self.kernel.slice_ns)
    }

    fn is_idle(&self, processor: usize) -> bool {
        let queue = &self.queues[processor];
        queue.current.is_none()
            && !queue.ready.iter().any(|&client| self.task(client).state == TaskState::Ready)
    }

    /// The threads that share by weight and compete there.
    fn competing(&self, processor: usize) -> impl Iterator<Item = &Task> {
        let queue = &self.queues[processor];
        let all = queue.ready.iter().chain(&queue.current);
        all.map(|&client| self.task(client)).filter(|task| task.real_time.is_none())
    }

    /// `avg_vruntime`, and the sum of the weights behind it.
    fn mean(&self, processor: usize) -> (i64, i64) {
        let Some(base) = self.competing(processor).next().map(|task| task.vruntime) else { return (0, 0) };
        let (mut sum, mut weight) = (0i128, 0i64);
        for task in self.competing(processor) {
            // Relative to one of them, so that the products stay small.
            sum += i128::from(task.vruntime.saturating_sub(base)) * i128::from(task.weight);
            weight += task.weight;
        }
        (base.saturating_add(sum.div_euclid(i128::from(weight.max(1))) as i64), weight)
    }

    /// `update_curr`; whether the current thread should give way.
    fn update(&mut self, processor: usize, now: Nanoseconds) -> bool {
        let queue = &self.queues[processor];
        let Some(client) = queue.current.filter(|&client| self.task(client).real_time.is_none()) else {
            return false;
        };
        let (picked, ran_ns) = (queue.picked, now.saturating_sub(queue.picked_ns));
        let is_over = self.has_run_to(client, picked, ran_ns);
        let is_protected = self.task(client).is_protected();
        // A thread alone keeps its processor, even when its slice is over.
        self.competing(processor).nth(1).is_some() && (is_over || !is_protected)
    }

    /// Sets a thread's virtual time to `ran_ns` after it was picked; whether its slice is over
    /// (`update_deadline`).
    fn has_run_to(&mut self, client: ClientId, picked: i64, ran_ns: Nanoseconds) -> bool {
        let slice = self.slice(client);
        let task = self.task_mut(client);
        task.vruntime = picked.saturating_add(task.virtual_ns(ran_ns));
        let is_over = task.vruntime >= task.deadline;
        if is_over {
            task.deadline = task.vruntime.saturating_add(slice);
        }
        is_over
    }

    /// `place_entity`.
    fn place(&mut self, processor: usize, client: ClientId) {
        let (mean, others) = self.mean(processor);
        let slice = self.slice(client);
        let task = self.task_mut(client);
        // The thread itself moves the mean when it joins, so its lag is scaled to be the same afterwards.
        let lag = if others > 0 { task.lag * (others + task.weight) / others } else { 0 };
        task.vruntime = mean.saturating_sub(lag);
        // A new thread comes when the others are, on average, halfway through their slices.
        let first = if std::mem::take(&mut task.is_new) { slice / 2 } else { slice };
        task.deadline = task.vruntime.saturating_add(first);
    }

    fn push(&mut self, processor: usize, client: ClientId) {
        let (was, load) = (self.task(client).place, self.task(client).load);
        self.queues[was].load -= load;
        self.queues[processor].load += load;
        self.task_mut(client).place = processor;
        self.queues[processor].ready.push(client);
    }

    fn take_out(&mut self, client: ClientId) {
        let place = self.task(client).place;
        self.queues[place].ready.retain(|&other| other != client);
    }

    /// How far it is behind the other threads in its queue (`update_entity_lag`).
    fn lag_of(&self, client: ClientId) -> i64 {
        let task = self.task(client);
        let limit = task.virtual_ns((2 * self.kernel.slice_ns).max(self.kernel.tick_ns));
        let (mean, _) = self.mean(task.place);
        mean.saturating_sub(task.vruntime).clamp(-limit, limit)
    }

    /// `pick_eevdf`. The running thread competes if it is eligible; with `may_protect` it may win by its
    /// protection.
    fn earliest(&self, processor: usize, may_protect: bool) -> Option<ClientId> {
        let queue = &self.queues[processor];
        let (mean, _) = self.mean(processor);
        let is_eligible = |client: &ClientId| {
            let task = self.task(*client);
            task.real_time.is_none() && task.vruntime <= mean
        };
        let current = queue.current.filter(is_eligible);
        if may_protect && let Some(current) = current.filter(|&current| self.task(current).is_protected()) {
            return Some(current);
        }
        let eligible = queue.ready.iter().filter(|client| is_eligible(client));
        let best = eligible.min_by_key(|&&client| self.task(client).deadline).copied();
        match (best, current) {
            (Some(best), Some(current)) if self.task(current).deadline < self.task(best).deadline => {
                Some(current)
            }
            (best, current) => best.or(current),
        }
    }

    fn most_urgent(&self, processor: usize) -> Option<ClientId> {
        let urgent = self.queues[processor].ready.iter().copied();
        let urgent = urgent.filter(|&client| self.task(client).real_time.is_some());
        urgent.min_by_key(|&client| self.task(client).real_time)
    }

    /// The thread to run next, from this processor's own queue. A delayed thread that would be next has slept
    /// long enough.
    fn next(&mut self, processor: usize) -> Option<ClientId> {
        if let Some(urgent) = self.most_urgent(processor) {
            return Some(urgent);
        }
        loop {
            let first = self.queues[processor].ready.first().copied();
            let best = self.earliest(processor, false).or(first)?;
            if self.task(best).state != TaskState::Delayed {
                return Some(best);
            }
            self.leave(best);
        }
    }

    /// A blocked thread leaves its queue.
    fn leave(&mut self, client: ClientId) {
        // It was only kept in the queue for what it owed, so it gains nothing by that time.
        self.task_mut(client).lag = self.lag_of(client).min(0);
        self.take_out(client);
        self.task_mut(client).state = TaskState::Blocked;
    }

    /// `select_task_rq_fair`.
    fn choose(&self, client: ClientId) -> usize {
        let task = self.task(client);
        if let Some(only) = task.only {
            return only;
        }
        let waker = self.wakers.get(client.index()).and_then(Cell::get);
        let waker = waker.map(|waker| self.task(waker)).filter(|waker| waker.state == TaskState::Running);
        match waker {
            // A new thread is woken by its parent.
            Some(parent) if task.is_new => self.least_loaded(parent.place),
            Some(waker) => self.near_idle(self.near(task, waker), task.place),
            None => self.near_idle(task.place, task.place),
        }
    }

    /// `wake_affine`: the waker's processor, or the processor where the thread ran last.
    fn near(&self, task: &Task, waker: &Task) -> usize {
        let (here, last) = (waker.place, task.place);
        let is_kept = waker.only.is_some() && here == last && self.queues[here].ready.is_empty();
        if self.is_idle(last) || is_kept {
            return last;
        }
        let here_load = self.queues[here].load + if here == last { 0 } else { task.load };
        let last_load = self.queues[last].load - task.load;
        if here_load * 100 < last_load * AFFINE_PERCENT { here } else { last }
    }

    /// `select_idle_sibling`.
    fn near_idle(&self, target: usize, last: usize) -> usize {
        let all = self.queues.len();
        let around = (0..all).map(|step| (target + step) % all);
        [target, last].into_iter().chain(around).find(|&place| self.is_idle(place)).unwrap_or(target)
    }

    /// Where a new thread begins: the parent's processor, unless another one has fewer threads to run.
    fn least_loaded(&self, here: usize) -> usize {
        let least = (0..self.queues.len()).min_by_key(|&place| self.running(place)).unwrap_or(here);
        if self.running(least) < self.running(here) { least } else { here }
    }

    /// How many threads can run there.
    fn running(&self, processor: usize) -> usize {
        let queue = &self.queues[processor];
        let ready = queue.ready.iter().filter(|&&client| self.task(client).state == TaskState::Ready);
        ready.count() + usize::from(queue.current.is_some())
    }

    /// Whether the thread that was just put there takes the processor (`wakeup_preempt`).
    fn takes(&self, processor: usize, client: ClientId) -> bool {
        let Some(current) = self.queues[processor].current else { return false };
        match (self.task(client).real_time, self.task(current).real_time) {
            (Some(mine), Some(other)) => mine < other,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => self.earliest(processor, true) == Some(client),
        }
    }

    /// Takes a thread from the longest other queue: one that does not run, may move, and whose caches are
    /// cold.
    fn pull(&mut self, to: usize, now: Nanoseconds) -> bool {
        let busiest =
            (0..self.queues.len()).filter(|&from| from != to).max_by_key(|&from| self.running(from));
        let Some(from) = busiest.filter(|&from| self.running(from) >= 2) else { return false };
        let mut ready = self.queues[from].ready.iter().copied();
        let Some(client) = ready.find(|&client| self.task(client).may_move(now)) else { return false };
        // The mean that the thread's lag is measured against has to be the present one.
        self.update(from, now);
        self.migrate(client, to, now);
        true
    }

    /// Moves a thread with its lag and what is left of its slice (`PLACE_LAG`, `PLACE_REL_DEADLINE`).
    fn migrate(&mut self, client: ClientId, to: usize, now: Nanoseconds) {
        let lag = self.lag_of(client);
        let task = self.task_mut(client);
        task.lag = lag;
        let left = task.deadline.saturating_sub(task.vruntime);
        self.take_out(client);
        self.update(to, now);
        self.place(to, client);
        let task = self.task_mut(client);
        task.deadline = task.vruntime.saturating_add(left);
        self.push(to, client);
    }

    /// `sched_balance_rq`, now and then: evens out queues that differ by two threads, or by one at the second
    /// attempt.
    fn balance(&mut self, processor: usize, now: Nanoseconds) -> bool {
        let every_ns = BALANCE_NS * BUSY_FACTOR * u64::from(self.kernel.processors);
        if now.saturating_sub(self.queues[processor].balanced_ns) < every_ns {
            return false;
        }
        self.queues[processor].balanced_ns = now;
        let most = (0..self.queues.len()).map(|place| self.running(place)).max().unwrap_or(0);
        let difference = most - self.running(processor).min(most);
        let failed = self.queues[processor].failed;
        let is_uneven = difference >= 2 || difference == 1 && failed > 0;
        let has_pulled = is_uneven && self.pull(processor, now);
        self.queues[processor].failed = if has_pulled || difference == 0 { 0 } else { failed + 1 };
        has_pulled
    }
}

impl Task {
    /// Whether it keeps its processor from others that are eligible, too.
    fn is_protected(&self) -> bool {
        self.vruntime < self.protected
    }

    fn may_move(&self, now: Nanoseconds) -> bool {
        let is_cold = now.saturating_sub(self.left_ns) >= CACHE_HOT_NS;
        self.state == TaskState::Ready && self.only.is_none() && is_cold
    }

    /// A real time in the thread's virtual time.
    fn virtual_ns(&self, ns: Nanoseconds) -> i64 {
        (i128::from(ns) * i128::from(NICE_0_WEIGHT) / i128::from(self.weight.max(1)))
            .min(i128::from(i64::MAX / 4)) as i64
    }
}

/// A recorded thread as a task of this scheduler.
fn task(script: &Script, recording: &Recording, processors: usize) -> Task {
    let nice = script.priority.clamp(100, 139) - NICE_0;
    let weight = (NICE_0_WEIGHT as f64 / libm::pow(NICE_STEP, nice.into())).round() as i64;
    // The mean over the recording stands for the load that the kernel measures.
    let part = script.service_ns().part_of(recording.duration_ns);
    let first = script.processors.iter().min_by_key(|&(_, &at_ns)| at_ns).map_or(0, |(&place, _)| place);
    let first = first as usize % processors;
    Task {
        state: TaskState::Absent,
        real_time: Some(script.priority).filter(|&priority| priority < 100),
        weight: weight.max(1),
        load: (weight as f64 * part) as i64,
        only: is_bound(script).then_some(first),
        place: first,
        is_new: script.is_new,
        vruntime: 0,
        deadline: 0,
        lag: 0,
        protected: 0,
        left_ns: Nanoseconds::ZERO,
    }
}

/// Whether a thread belongs to one processor. Such threads of the kernel have its number in their names:
/// `ksoftirqd/1`, `kworker/1:0H`.
fn is_bound(script: &Script) -> bool {
    let mut places = script.processors.keys();
    let (Some(place), None) = (places.next(), places.next()) else { return false };
    let Some((_, behind)) = script.name.split_once('/') else { return false };
    let number = behind.split(|c: char| !c.is_ascii_digit()).next();
    number.and_then(|number| number.parse().ok()) == Some(*place)
}

impl Policy for Linux {
    fn name(&self) -> &'static str {
        "eevdf"
    }

    fn add(&mut self, client: ClientId, _domain: DomainIndex, _share: Share, _now: Nanoseconds) {
        self.task_mut(client).state = TaskState::Blocked;
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        self.take_out(client);
        self.task_mut(client).state = TaskState::Absent;
    }

    fn set_share(&mut self, _client: ClientId, _share: Share, _now: Nanoseconds) {}

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        let was_delayed = match self.task(client).state {
            TaskState::Delayed => true,
            TaskState::Blocked => false,
            TaskState::Absent | TaskState::Ready | TaskState::Running => return None,
        };
        let to = if was_delayed { self.task(client).place } else { self.choose(client) };
        let is_over = self.update(to, now);
        if !was_delayed {
            self.place(to, client);
            self.push(to, client);
        } else if self.lag_of(client) > 0 {
            // The others have caught up with it while it was delayed, so it is placed anew.
            self.leave(client);
            self.place(to, client);
            self.push(to, client);
        }
        self.task_mut(client).state = TaskState::Ready;
        (self.takes(to, client) || is_over).then_some(ProcessorId::at(to))
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        let here = processor.index();
        if here >= self.queues.len() {
            return None;
        }
        let may_pull = std::mem::take(&mut self.queues[here].may_pull);
        let mut client = self.next(here);
        if client.is_none() && may_pull && self.pull(here, now) {
            client = self.next(here);
        }
        let client = client?;
        self.take_out(client);
        let task = self.task_mut(client);
        task.state = TaskState::Running;
        task.protected = task.deadline;
        let picked = task.vruntime;
        let queue = &mut self.queues[here];
        (queue.current, queue.picked_ns, queue.picked) = (Some(client), now, picked);
        // Its slice ends at a tick, and not by the host's clock.
        Some(Decision { client, slice_ns: Nanoseconds::MAX / 4, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        if self.task(client).state != TaskState::Running {
            return;
        }
        let place = self.task(client).place;
        let picked = self.queues[place].picked;
        self.has_run_to(client, picked, ran_ns);
        let lag = self.lag_of(client);
        let queue = &mut self.queues[place];
        (queue.current, queue.may_pull) = (None, true);
        let is_real_time = self.task(client).real_time.is_some();
        let task = self.task_mut(client);
        task.left_ns = now;
        task.state = match stop {
            // It is ahead of the others, so it owes them time.
            Stop::Blocked if lag < 0 && !is_real_time => TaskState::Delayed,
            Stop::Blocked => TaskState::Blocked,
            _ => TaskState::Ready,
        };
        task.lag = lag;
        if task.state != TaskState::Blocked {
            self.queues[place].ready.push(client);
        }
    }

    fn tick_ns(&self) -> Option<Nanoseconds> {
        Some(self.kernel.tick_ns)
    }

    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        let here = processor.index();
        let is_over = self.update(here, now);
        self.balance(here, now);
        if self.running(here) >= 2
            && let Some(idle) = (0..self.queues.len()).find(|&place| self.is_idle(place))
        {
            // As `nohz_balancer_kick`: the busy processor tells an idle one.
            self.queues[idle].may_pull = true;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording::{Action, Step};
    use super::*;

    const A: ClientId = ClientId::new(0);
    const B: ClientId = ClientId::new(1);
    const C: ClientId = ClientId::new(2);
    const D: ClientId = ClientId::new(3);
    const P0: ProcessorId = ProcessorId::new(0);
    const P1: ProcessorId = ProcessorId::new(1);
    const ZERO: Nanoseconds = Nanoseconds::ZERO;
    const MS: Nanoseconds = Nanoseconds::from_millis(1);
    const KERNEL: Kernel =
        Kernel { tick_ns: Nanoseconds::from_millis(4), slice_ns: Nanoseconds::from_millis(3), processors: 1 };

    /// A thread of this priority that computed for this percentage of the time, on processor 0.
    fn thread((priority, percent): (i32, u64)) -> Script {
        let steps = vec![Step { compute_ns: percent * MS, action: Action::Await }];
        Script { priority, steps, processors: [(0, ZERO)].into(), ..Script::default() }
    }

    /// These threads, all asleep.
    fn asleep(processors: u16, threads: &[(i32, u64)]) -> Linux {
        let recording = Recording {
            scripts: threads.iter().copied().map(thread).collect(),
            processors: processors.into(),
            duration_ns: 100 * MS,
            ..Recording::default()
        };
        let wakers = threads.iter().map(|_| Cell::new(None)).collect();
        let mut linux = Linux::new(&recording, Kernel { processors, ..KERNEL }, wakers);
        (0..)
            .zip(threads)
            .for_each(|(client, _)| linux.add(ClientId::new(client), DomainIndex::new(0), Share::ONE, ZERO));
        linux
    }

    fn picked(linux: &mut Linux, processor: ProcessorId, now: Nanoseconds) -> Option<ClientId> {
        linux.pick(processor, now).map(|decision| decision.client)
    }

    #[test]
    fn new_1_of_threads_that_are_entitled_alike_the_one_with_the_earliest_deadline_runs() {
        // By nice values: the more a thread weighs, the sooner it should have had its slice.
        let mut linux = asleep(1, &[(120, 0), (110, 0), (115, 0)]);
        for client in 0..3 {
            assert_eq!(linux.wake(ClientId::new(client), ZERO), None, "no client runs that could give way");
        }
        assert_eq!(picked(&mut linux, P0, ZERO), Some(B));
        linux.ran(B, ZERO, Stop::Blocked, ZERO);
        assert_eq!(picked(&mut linux, P0, ZERO), Some(C));
    }

    #[test]
    fn new_1_real_time_threads_are_above_all_others_and_in_the_order_of_their_priorities() {
        let mut linux = asleep(1, &[(120, 0), (98, 0), (10, 0)]);
        let _ = linux.wake(A, ZERO);
        assert_eq!(picked(&mut linux, P0, ZERO), Some(A));
        assert_eq!(linux.wake(B, MS), Some(P0), "it takes the processor");
        assert_eq!(linux.wake(C, MS), Some(P0));
        linux.ran(A, MS, Stop::Preempted, MS);
        assert_eq!(picked(&mut linux, P0, MS), Some(C));
        linux.ran(C, MS, Stop::Blocked, 2 * MS);
        assert_eq!(picked(&mut linux, P0, 2 * MS), Some(B));
        assert_eq!(linux.wake(C, 3 * MS), Some(P0), "also from a less urgent one");
        linux.ran(B, MS, Stop::Blocked, 3 * MS);
        assert_eq!(picked(&mut linux, P0, 3 * MS), Some(C));
        assert_eq!(linux.wake(B, 4 * MS), None, "which does not take it back");
        linux.ran(C, MS, Stop::Blocked, 4 * MS);
        assert_eq!(picked(&mut linux, P0, 4 * MS), Some(B));
    }

    #[test]
    fn new_1_a_thread_that_went_to_sleep_behind_the_others_comes_back_before_them() {
        let mut linux = asleep(1, &[(120, 0), (120, 0)]);
        let _ = linux.wake(A, ZERO);
        let _ = linux.wake(B, ZERO);
        assert_eq!(picked(&mut linux, P0, ZERO), Some(A));
        linux.ran(A, 10 * MS, Stop::Preempted, 10 * MS);
        assert_eq!(picked(&mut linux, P0, 10 * MS), Some(B));
        linux.ran(B, MS, Stop::Blocked, 11 * MS);
        assert_eq!(picked(&mut linux, P0, 11 * MS), Some(A));
        assert_eq!(linux.wake(B, 11 * MS + MS / 2), Some(P0), "it is owed what the other one had more");
    }

    #[test]
    fn new_1_a_thread_that_went_to_sleep_ahead_is_owed_nothing_however_long_it_sleeps() {
        let mut linux = asleep(1, &[(120, 0), (120, 0)]);
        let _ = linux.wake(A, ZERO);
        let _ = linux.wake(B, ZERO);
        assert_eq!(picked(&mut linux, P0, ZERO), Some(A));
        linux.ran(A, 5 * MS, Stop::Blocked, 5 * MS);
        assert!(linux.task(A).state == TaskState::Delayed, "it is kept until the other one has caught up");
        assert_eq!(picked(&mut linux, P0, 5 * MS), Some(B));
        assert!(linux.tick(P0, 17 * MS), "its slice is over");
        linux.ran(B, 12 * MS, Stop::Preempted, 17 * MS);
        assert_eq!(picked(&mut linux, P0, 17 * MS), Some(B));
        assert!(linux.task(A).state == TaskState::Blocked);
        assert_eq!(linux.wake(A, 18 * MS), None);
    }

    #[test]
    fn new_1_an_idle_processor_takes_a_waiting_thread_whose_caches_are_cold() {
        let mut linux = asleep(2, &[(120, 0), (120, 0), (120, 0)]);
        let _ = linux.wake(A, ZERO);
        assert_eq!(picked(&mut linux, P0, ZERO), Some(A));
        let _ = linux.wake(B, ZERO);
        assert_eq!(picked(&mut linux, P1, ZERO), Some(B), "the other processor was idle");
        let _ = linux.wake(C, ZERO);
        assert_eq!(linux.task(C).place, 0, "none is idle: where it ran last");
        linux.ran(A, 10 * MS, Stop::Preempted, 10 * MS);
        assert_eq!(picked(&mut linux, P0, 10 * MS), Some(C));
        let hot = 10 * MS + CACHE_HOT_NS / 2;
        linux.ran(B, hot, Stop::Blocked, hot);
        assert_eq!(picked(&mut linux, P1, hot), None, "the first one has just left its processor");
        let cold = 10 * MS + CACHE_HOT_NS;
        let _ = linux.tick(P0, cold);
        assert_eq!(picked(&mut linux, P1, cold), Some(A));
    }

    #[test]
    fn new_1_a_woken_thread_goes_to_the_waker_s_processor_if_that_has_less_to_do() {
        for (of_waker, of_other, expected) in [(5, 90, 1), (90, 5, 0)] {
            let mut linux = asleep(2, &[(120, of_other), (120, of_waker), (120, 10)]);
            let _ = linux.wake(A, ZERO);
            picked(&mut linux, P0, ZERO);
            let _ = linux.wake(B, ZERO);
            assert_eq!(picked(&mut linux, P1, ZERO), Some(B));
            linux.wakers[2].set(Some(B));
            let _ = linux.wake(C, MS);
            assert_eq!(linux.task(C).place, expected, "waker {of_waker} %, other {of_other} %");
        }
    }

    #[test]
    fn new_1_queues_that_differ_by_two_are_evened_out_at_a_tick_now_and_then() {
        let mut linux = asleep(2, &[(120, 0); 4]);
        let _ = linux.wake(A, ZERO);
        picked(&mut linux, P0, ZERO);
        let _ = linux.wake(B, ZERO);
        picked(&mut linux, P1, ZERO);
        let _ = linux.wake(C, ZERO);
        let _ = linux.wake(D, ZERO);
        assert_eq!([0, 1].map(|place| linux.running(place)), [3, 1]);
        let _ = linux.tick(P1, MS);
        assert_eq!([0, 1].map(|place| linux.running(place)), [3, 1], "not at each tick");
        let _ = linux.tick(P1, 100 * MS);
        assert_eq!([0, 1].map(|place| linux.running(place)), [2, 2]);
        let _ = linux.tick(P1, 200 * MS);
        assert_eq!([0, 1].map(|place| linux.running(place)), [2, 2]);
    }
}
