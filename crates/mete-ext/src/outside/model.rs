//! A machine for the decider: random histories of tasks, as the kernel's side tells them.

use mete_policy::{CATALOG, ClientId, DomainIndex, Entry, Event, Nanoseconds, ProcessorId, RequestId, Setup};

use crate::outside::answer::Answer;
use crate::outside::client::share_in;
use crate::outside::decider::Decider;
use crate::outside::memory::{Activity, AheadView, CLIENTS, DOMAINS, Memory, TaskView};
use crate::outside::strict::{Strict, Told};
use crate::outside::swap::Owned;
use crate::skeleton::outside::types::{self, row_kind};

const QUANTUM: Nanoseconds = Nanoseconds::from_millis(4);

/// A number that follows from the last one (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Task {
    view: TaskView,
    used: u64,
    /// How often it has run.
    runs: u64,
}

fn make(policy: &Entry, processors: usize, seed: u64, told: &Told) -> Owned {
    let setup = Setup {
        clients: CLIENTS as u32,
        domains: DOMAINS as u16,
        processors: processors as u16,
        quantum_ns: QUANTUM,
        seed,
    };
    Strict::of((policy.make)(&setup), told, seed % 2 == 1)
}

struct Machine {
    memory: Memory,
    decider: Decider,
    tasks: Vec<Task>,
    running: Vec<Option<usize>>,
    /// Processors that a task of a higher class has, or that are gone; never all.
    held: u64,
    /// Those of them that are taken for idle.
    seem_idle: u64,
    /// What wakes a task now.
    event: Option<Event>,
    /// The weights of the domains.
    weights: [u32; 3],
    told: Told,
    /// How long what runs on each processor may run.
    slices: Vec<u64>,
    now: Nanoseconds,
    dice: Dice,
    decided: u64,
    late: u64,
    went_ahead: u64,
}

impl Machine {
    fn new(policy: &Entry, tasks: usize, processors: usize, seed: u64) -> Machine {
        let memory = Memory::of_nothing().unwrap();
        memory.set_online((1 << processors) - 1);
        let view = TaskView {
            joined: 0,
            generation: 0,
            activity: Activity::Absent,
            domain: DomainIndex::ROOT,
            weight: 100,
            allowed: u64::MAX,
        };
        let told = Told::default();
        let mut machine = Machine {
            decider: Decider::new(make(policy, processors, seed, &told), processors),
            memory,
            tasks: vec![Task { view, used: 0, runs: 0 }; tasks],
            running: vec![None; processors],
            held: 0,
            seem_idle: 0,
            event: None,
            weights: [0; 3],
            told,
            slices: vec![QUANTUM.get(); processors],
            now: Nanoseconds::from_secs(1),
            dice: Dice(seed),
            decided: 0,
            late: 0,
            went_ahead: 0,
        };
        (0..3).for_each(|number| machine.weigh(number, 100 + 50 * number as u32));
        machine
    }

    /// Gives a domain a weight. The second one is inside the third.
    fn weigh(&mut self, domain: usize, weight: u32) {
        self.weights[domain] = weight;
        self.memory.set_domain(domain as u32, [0, 2, 0][domain], weight);
        self.tell_number(row_kind::ROW_DOMAIN, domain as u32, 0, 0);
    }

    /// A processor goes or comes, or a task of a higher class takes it or gives it back.
    fn hold(&mut self, processor: usize) {
        let bit = 1 << processor;
        if self.held & bit != 0 {
            self.held &= !bit;
            self.seem_idle &= !bit;
            self.memory.set_online(self.memory.online() | bit);
        } else if (self.held | bit).count_ones() < self.running.len() as u32 {
            if self.running[processor].is_none() {
                self.seem_idle |= bit;
            }
            self.stop_waiting(processor, row_kind::ROW_PREEMPTED);
            self.held |= bit;
            if self.dice.roll(2) == 0 {
                self.memory.set_online(self.memory.online() & !bit);
                self.seem_idle &= !bit;
            }
        }
    }

    fn is_held(&self, processor: usize) -> bool {
        self.held >> processor & 1 == 1
    }

    fn write(&self, task: usize) {
        let Task { view, .. } = self.tasks[task];
        let activity = match view.activity {
            Activity::Absent => types::activity::ABSENT,
            Activity::Away => types::activity::AWAY,
            Activity::Waiting => types::activity::WAITING,
            Activity::Running | Activity::Interrupted(_) => types::activity::RUNNING,
        };
        self.memory.set_task(task as u32, activity, view);
    }

    fn tell_number(&mut self, kind: row_kind, number: u32, generation: u32, used: u64) {
        self.now = self.now.saturating_add(Nanoseconds::from_micros(1));
        let processor = self.dice.roll(self.running.len());
        self.memory.tell(processor, self.now, (kind, number, generation, used), self.event);
    }

    fn tell(&mut self, kind: row_kind, task: usize) {
        self.write(task);
        let Task { view, used, .. } = self.tasks[task];
        self.tell_number(kind, task as u32, view.generation, used);
    }

    fn set(&mut self, task: usize, activity: Activity, kind: row_kind) {
        let of = &mut self.tasks[task].view;
        of.activity = activity;
        of.generation += u32::from(activity == Activity::Waiting);
        self.tell(kind, task);
    }

    fn join(&mut self, task: usize) {
        let domain = DomainIndex::at(self.dice.roll(3));
        let view = &mut self.tasks[task].view;
        (view.joined, view.domain) = (view.joined + 1, domain);
        self.tasks[task].used = 0;
        self.set(task, Activity::Away, row_kind::ROW_JOINED);
    }

    fn place(&self, task: usize) -> Option<usize> {
        self.running.iter().position(|running| *running == Some(task))
    }

    /// Takes a task from its processor, after it has used about a slice, or a part of one.
    fn stop(&mut self, task: usize, kind: row_kind) {
        if let Some(processor) = self.place(task) {
            let part = if kind == row_kind::ROW_EXPIRED { 1 } else { 4 };
            let used = self.slices[processor] / part - self.dice.roll(100_000) as u64;
            self.running[processor] = None;
            self.tasks[task].used += used;
            self.now = self.now.saturating_add(Nanoseconds::new(used));
        }
    }

    /// A task that goes ahead has its processor before the policy knows, from the one that runs there, if there is one.
    fn wake(&mut self, task: usize) {
        let port = self.dice.roll(7) as u16;
        let events =
            [None, Some(Event::Other), Some(Event::Block(RequestId::new(0))), Some(Event::Packet { port })];
        let event = events[self.dice.roll(4)];
        self.event = event;
        self.set(task, Activity::Waiting, row_kind::ROW_WOKE);
        self.event = None;
        let said = self.memory.ahead(task as u32).filter(|said| said.causes.has(event));
        let Some(AheadView { processor, slice_us, .. }) = said else { return };
        if self.dice.roll(4) == 0 {
            // The policy reads of the wake-up before the other rows are there.
            self.round();
        }
        if self.is_held(processor) || !self.may_run(task, processor) {
            return;
        }
        self.stop_waiting(processor, row_kind::ROW_PREEMPTED);
        self.run_untold(task, processor, Nanoseconds::from_micros(slice_us.into()));
        self.went_ahead += 1;
    }

    /// Without a decision; the policy is told afterwards.
    fn run_untold(&mut self, task: usize, processor: usize, slice: Nanoseconds) {
        self.run(task, processor, slice);
        let generation = self.tasks[task].view.generation;
        self.tell_number(row_kind::ROW_TAKEN, task as u32, generation, processor as u64);
    }

    fn stop_waiting(&mut self, processor: usize, kind: row_kind) {
        if let Some(task) = self.running[processor] {
            self.stop(task, kind);
            self.set(task, Activity::Waiting, kind);
        }
    }

    fn may_run(&self, task: usize, processor: usize) -> bool {
        self.tasks[task].view.activity == Activity::Waiting
            && self.tasks[task].view.allowed >> processor & 1 == 1
    }

    fn run(&mut self, task: usize, processor: usize, slice: Nanoseconds) {
        self.slices[processor] = slice.get();
        self.tasks[task].view.activity = Activity::Running;
        self.memory.forget_ahead(task as u32);
        self.tasks[task].runs += 1;
        self.write(task);
        self.running[processor] = Some(task);
    }

    /// A processor without a task carries out what was answered.
    fn dispatch(&mut self, processor: usize) {
        while self.running[processor].is_none() && !self.is_held(processor) {
            let Some(answer) = self.memory.take_answer(processor).and_then(Answer::of_bits) else { return };
            let (task, generation) = (answer.client.index(), answer.generation);
            let slice = answer.slice.saturating_add(Nanoseconds::from_micros(500));
            if self.tasks[task].view.generation == generation && self.may_run(task, processor) {
                self.run(task, processor, slice);
                self.decided += 1;
            } else {
                self.late += 1;
                self.tell_number(row_kind::ROW_MISSED, task as u32, generation, 0);
            }
        }
    }

    fn round(&mut self) {
        self.now = self.now.saturating_add(Nanoseconds::from_micros(5));
        let all = (0..self.running.len()).filter(|processor| !self.is_held(*processor));
        let mut free: Vec<_> = all.collect();
        let first = self.dice.roll(free.len());
        free.rotate_left(first);
        let is_idle = |processor: &usize| self.running[*processor].is_none();
        let idle = free.iter().copied().filter(is_idle).fold(0, |mask, processor| mask | 1 << processor);
        self.memory.set_idle(idle | self.seem_idle);
        // It runs where nothing else does, if there is such a processor.
        let own = free.iter().copied().find(is_idle).unwrap_or(free[0]);
        self.decider.round(&self.memory, self.now, own);
        self.seem_idle &= !self.memory.take_wakes();
        let preempts = self.memory.take_preempts();
        for processor in (0..self.running.len()).filter(|processor| preempts >> processor & 1 == 1) {
            // Another one may run there since.
            let gives_way = self.memory.gives_way(processor);
            if self.running[processor].is_some_and(|task| task as u64 + 1 == gives_way) {
                self.stop_waiting(processor, row_kind::ROW_PREEMPTED);
            }
        }
    }

    fn step(&mut self) {
        let task = self.dice.roll(self.tasks.len());
        let processor = self.dice.roll(self.running.len());
        let activity = self.tasks[task].view.activity;
        match (self.dice.roll(18), activity) {
            (0..=3, Activity::Absent) => self.join(task),
            (0..=2 | 12, Activity::Away) => self.wake(task),
            (0..=2, Activity::Running | Activity::Waiting) => {
                self.stop(task, row_kind::ROW_BLOCKED);
                self.set(task, Activity::Away, row_kind::ROW_BLOCKED);
            }
            (3, Activity::Away) => self.set(task, Activity::Absent, row_kind::ROW_LEFT),
            (4, Activity::Away) => {
                self.tasks[task].view.allowed = [u64::MAX, 1, 2, u64::MAX][self.dice.roll(4)]
                    & if self.running.len() == 1 { 1 } else { u64::MAX };
                if self.tasks[task].view.allowed == 0 {
                    self.tasks[task].view.allowed = u64::MAX;
                }
                self.tell(row_kind::ROW_CHANGED, task);
            }
            (5, Activity::Away | Activity::Running) => {
                self.tasks[task].view.weight = 50 + self.dice.roll(200) as u32;
                self.tasks[task].view.domain = DomainIndex::at(self.dice.roll(3));
                self.tell(row_kind::ROW_CHANGED, task);
            }
            (6, Activity::Waiting)
                if self.running[processor].is_none()
                    && !self.is_held(processor)
                    && self.may_run(task, processor) =>
            {
                // By turn.
                self.run_untold(task, processor, QUANTUM);
            }
            (7..=8, _) => self.stop_waiting(processor, row_kind::ROW_EXPIRED),
            (9, _) => self.stop_waiting(processor, row_kind::ROW_PREEMPTED),
            (10, _) => self.stop_waiting(processor, row_kind::ROW_YIELDED),
            (11..=13, _) => self.dispatch(processor),
            (14..=15, _) => self.round(),
            (16, _) => self.hold(processor),
            (17, _) => {
                let (domain, weight) = (self.dice.roll(3), 50 + self.dice.roll(200) as u32);
                self.weigh(domain, weight);
            }
            _ => {}
        }
    }

    /// The policy knows the domain and the share of every task.
    fn check_shares(&self, about: &str) {
        let told = self.told.lock().unwrap();
        for (number, task) in self.tasks.iter().enumerate() {
            let TaskView { activity, domain, weight, .. } = task.view;
            // The second domain is inside the third.
            let path: &[usize] = [&[][..], &[1, 2], &[2]][domain.index()];
            let share = share_in(weight, path.iter().map(|domain| self.weights[*domain]));
            let due = (activity != Activity::Absent).then_some((domain, share));
            assert_eq!(told.clients.get(&ClientId::at(number)).copied(), due, "{about}: task {number}");
        }
    }

    /// Every task that waits runs, and no processor is idle while one waits that may run there.
    fn settle(&mut self, about: &str) {
        let all: Vec<_> = (0..self.tasks.len())
            .filter(|task| self.tasks[*task].view.activity == Activity::Waiting)
            .collect();
        let before: Vec<_> = self.tasks.iter().map(|task| task.runs).collect();
        for nth in 0..2000 * self.tasks.len() {
            // While a processor is held, clients that may run elsewhere can find those bound to the others in their way: a policy
            // counts the held one. The kernel's side has one that waits run after five seconds; here, the processor comes back.
            if nth == 1000 * self.tasks.len() {
                for processor in 0..self.running.len() {
                    if self.is_held(processor) {
                        self.hold(processor);
                    }
                }
            }
            for _ in 0..4 {
                self.round();
                (0..self.running.len()).for_each(|processor| self.dispatch(processor));
            }
            for processor in 0..self.running.len() {
                let waits = (0..self.tasks.len()).find(|task| self.may_run(*task, processor));
                if let (None, Some(task), false) = (self.running[processor], waits, self.is_held(processor)) {
                    let known = self.decider.about(ClientId::at(task));
                    panic!(
                        "{about}: processor {processor} is idle, {task} waits: {:?}, {known}",
                        self.tasks[task]
                    );
                }
            }
            self.check_shares(about);
            if all.iter().all(|task| self.tasks[*task].runs > before[*task]) {
                return;
            }
            let kind = [row_kind::ROW_EXPIRED, row_kind::ROW_PREEMPTED][self.dice.roll(2)];
            (0..self.running.len()).for_each(|processor| self.stop_waiting(processor, kind));
        }
        let never = all.into_iter().filter(|task| self.tasks[*task].runs == before[*task]);
        let never: Vec<_> = never.map(|task| (task, self.tasks[task])).collect();
        // Policies that do not know bounds may always find others for the processor of a bound task, and one
        // that does may, if its group has its share elsewhere. The kernel's side has such a task run after two
        // seconds.
        let is_bound = |task: &Task| task.view.allowed != u64::MAX;
        if let Some((number, task)) = never.into_iter().find(|(_, task)| !is_bound(task)) {
            panic!("{about}: {number} never runs: {task:?}, {}", self.decider.about(ClientId::at(number)));
        }
    }
}

#[test]
fn new_1_no_task_is_forgotten_in_random_histories_of_every_policy() {
    for policy in CATALOG {
        for seed in 1..=12 {
            let (tasks, processors) = (2 + seed as usize, 1 + seed as usize % 3);
            let mut machine = Machine::new(policy, tasks, processors, seed * 0x9e37_79b9);
            for nth in 0..4 {
                for _ in 0..2000 {
                    machine.step();
                }
                machine.settle(&format!("{} seed {seed} part {nth}", policy.name));
            }
            assert!(
                machine.decided > 100,
                "{}: {} decided, {} late",
                policy.name,
                machine.decided,
                machine.late
            );
            let is_said = seed % 2 == 1;
            assert!(machine.went_ahead > 50 || !is_said, "{}: {}", policy.name, machine.went_ahead);
        }
    }
}

#[test]
fn new_1_who_goes_ahead_has_the_processor_before_the_policy_knows_and_keeps_it() {
    let policy = CATALOG.iter().find(|policy| policy.name == "distributed-vtrr").unwrap();
    // An even seed: the policy alone says who goes ahead.
    let mut machine = Machine::new(policy, 2, 1, 2);
    let (hog, sleeper) = (0, 1);
    machine.join(hog);
    machine.join(sleeper);
    machine.set(hog, Activity::Waiting, row_kind::ROW_WOKE);
    let mut said = 0;
    // The policy learns how it runs for each kind of event.
    for _ in 0..400 {
        machine.round();
        machine.dispatch(0);
        if machine.running[0] == Some(sleeper) {
            machine.stop(sleeper, row_kind::ROW_BLOCKED);
            machine.set(sleeper, Activity::Away, row_kind::ROW_BLOCKED);
        } else if machine.tasks[sleeper].view.activity == Activity::Away {
            let before = machine.went_ahead;
            machine.wake(sleeper);
            if machine.went_ahead > before {
                said += 1;
                assert_eq!(machine.running[0], Some(sleeper));
                machine.round();
                // The policy has it there, and no one gives way.
                assert_eq!(machine.running[0], Some(sleeper));
                let answer = machine.memory.take_answer(0).and_then(Answer::of_bits);
                assert!(answer.is_none_or(|answer| answer.client.index() == sleeper), "{answer:?}");
            }
        } else {
            machine.stop_waiting(0, row_kind::ROW_EXPIRED);
        }
    }
    assert!(said > 50, "{said} times");
}

#[test]
fn new_1_what_was_decided_for_the_processor_on_which_the_policy_decides_stays() {
    let policy = CATALOG.iter().find(|policy| policy.name == "distributed-vtrr").unwrap();
    let mut machine = Machine::new(policy, 2, 2, 2);
    for task in 0..2 {
        machine.join(task);
        machine.set(task, Activity::Waiting, row_kind::ROW_WOKE);
    }
    machine.decider.round(&machine.memory, machine.now, 0);
    // Much later, it decides on the second processor, which has had no time for what was decided.
    machine.now = machine.now.saturating_add(QUANTUM).saturating_add(QUANTUM);
    machine.decider.round(&machine.memory, machine.now, 1);
    assert!(machine.memory.take_answer(1).is_some());
    // The first one is taken for absent.
    assert_eq!(machine.memory.take_answer(0), None);
}

/// Three that compute on the second processor alone, with shares of 1, 2 and 3, and one that sleeps and runs on the first.
#[test]
fn new_1_shares_of_bound_tasks_hold_beside_one_that_wakes_elsewhere() {
    for name in ["group-vtrr", "vtrr", "wfq", "stride", "eevdf", "wrr"] {
        let policy = CATALOG.iter().find(|policy| policy.name == name).unwrap();
        let mut machine = Machine::new(policy, 4, 2, 2);
        for task in 0..4 {
            machine.join(task);
            machine.tasks[task].view.allowed = if task < 3 { 0b10 } else { u64::MAX };
            machine.tasks[task].view.weight = [1, 2, 3, 1][task];
            machine.tasks[task].view.domain = DomainIndex::ROOT;
            machine.tell(row_kind::ROW_CHANGED, task);
            machine.set(task, Activity::Waiting, row_kind::ROW_WOKE);
        }
        for nth in 0..3000 {
            // It wakes or blocks while another one runs.
            if machine.running[0] == Some(3) {
                machine.stop(3, row_kind::ROW_BLOCKED);
                machine.set(3, Activity::Away, row_kind::ROW_BLOCKED);
            } else if nth % 3 == 0 && machine.tasks[3].view.activity == Activity::Away {
                machine.set(3, Activity::Waiting, row_kind::ROW_WOKE);
            }
            for _ in 0..2 {
                machine.round();
                (0..2).for_each(|processor| machine.dispatch(processor));
            }
            machine.stop_waiting(1, row_kind::ROW_EXPIRED);
        }
        assert!(machine.tasks[3].runs > 400, "{name}: {:?}", machine.tasks[3]);
        let all: u64 = machine.tasks[..3].iter().map(|task| task.used).sum();
        let permille: Vec<_> = machine.tasks[..3].iter().map(|task| task.used * 1000 / all).collect();
        for (had, due) in permille.iter().zip([166, 333, 500]) {
            assert!(had.abs_diff(due) <= 5, "{name}: {permille:?}");
        }
    }
}

/// Twelve that compute on the second processor alone, each in turn, and one that wakes again and again and may run on the first one
/// alone: it takes no turn from the others.
#[test]
fn new_1_who_alone_may_run_on_a_processor_takes_no_turns_from_others() {
    for name in ["group-vtrr", "vtrr", "drr", "rr", "wrr"] {
        let policy = CATALOG.iter().find(|policy| policy.name == name).unwrap();
        let mut machine = Machine::new(policy, 13, 2, 2);
        let sleeper = 12;
        for task in 0..13 {
            machine.join(task);
            let view = &mut machine.tasks[task].view;
            (view.allowed, view.domain) = (if task == sleeper { 0b01 } else { 0b10 }, DomainIndex::ROOT);
            machine.tell(row_kind::ROW_CHANGED, task);
            machine.set(task, Activity::Waiting, row_kind::ROW_WOKE);
        }
        let (mut last, mut longest) = ([0; 12], 0);
        for nth in 0..3000 {
            if machine.running[0] == Some(sleeper) {
                machine.stop(sleeper, row_kind::ROW_BLOCKED);
                machine.set(sleeper, Activity::Away, row_kind::ROW_BLOCKED);
            } else if machine.tasks[sleeper].view.activity == Activity::Away {
                machine.set(sleeper, Activity::Waiting, row_kind::ROW_WOKE);
            }
            machine.round();
            (0..2).for_each(|processor| machine.dispatch(processor));
            if let Some(hog) = machine.running[1] {
                longest = longest.max(nth - last[hog]);
                last[hog] = nth;
            }
            machine.stop_waiting(1, row_kind::ROW_EXPIRED);
        }
        assert!(machine.tasks[sleeper].runs > 1000, "{name}: {:?}", machine.tasks[sleeper]);
        assert_eq!(longest, 12, "{name}: one of twelve waits for so many turns");
    }
}

/// A policy by which those that wake displace others would take the processor for idle.
#[test]
fn new_1_the_policy_is_asked_about_everyone_if_it_knows_bounds_or_has_clients_displace_others() {
    for policy in CATALOG {
        let mut machine = Machine::new(policy, 4, 2, 2);
        for task in 0..4 {
            machine.join(task);
            machine.tasks[task].view.allowed = if task == 0 { 0b01 } else { 0b10 };
            machine.tell(row_kind::ROW_CHANGED, task);
            machine.set(task, Activity::Waiting, row_kind::ROW_WOKE);
        }
        let mut was_alone = false;
        for nth in 0..50 {
            machine.round();
            (0..2).for_each(|processor| machine.dispatch(processor));
            was_alone |= machine.decider.about(ClientId::at(0)).contains("is_alone: true");
            machine.stop_waiting(nth % 2, row_kind::ROW_EXPIRED);
        }
        let made = make(policy, 2, 2, &machine.told);
        let is_told = made.knows_bounds() || !made.keeps(ProcessorId::at(0));
        assert_eq!(was_alone, !is_told, "{}", policy.name);
        assert!(machine.tasks[0].runs > 20, "{}", policy.name);
    }
}

#[test]
fn new_1_no_task_is_forgotten_when_another_policy_takes_over() {
    for seed in 1..=60 {
        let (tasks, processors) = (2 + seed as usize % 12, 1 + seed as usize % 3);
        let mut machine = Machine::new(&CATALOG[0], tasks, processors, seed * 0x9e37_79b9);
        for nth in 0..CATALOG.len() {
            for _ in 0..500 {
                machine.step();
            }
            let policy = &CATALOG[(nth * 7 + seed as usize) % CATALOG.len()];
            // Rows that were not read yet tell of what the new policy knows already.
            let made = make(policy, processors, seed, &machine.told);
            if nth % 3 == 0 {
                // In another thread, after the one before hung.
                machine.decider = Decider::new(made, processors);
                machine.decider.begin(&machine.memory);
            } else {
                machine.decider.adopt(&machine.memory, made, machine.now);
            }
            // At once: what happens later would mend what was forgotten.
            machine.settle(&format!("{} seed {seed} part {nth}", policy.name));
        }
    }
}

#[test]
fn new_1_after_rows_were_lost_all_tasks_are_looked_at() {
    for policy in CATALOG {
        let mut machine = Machine::new(policy, 8, 2, 7);
        for _ in 0..20 {
            // More than a ring has room for, and the policy is late.
            for _ in 0..6000 {
                let (task, activity) = (machine.dice.roll(8), Activity::Waiting);
                match machine.tasks[task].view.activity {
                    Activity::Absent => machine.join(task),
                    Activity::Away => machine.set(task, activity, row_kind::ROW_WOKE),
                    Activity::Waiting => machine.set(task, Activity::Away, row_kind::ROW_BLOCKED),
                    Activity::Running | Activity::Interrupted(_) => {}
                }
                if machine.dice.roll(50) == 0 {
                    let (domain, weight) = (machine.dice.roll(3), 50 + machine.dice.roll(200) as u32);
                    machine.weigh(domain, weight);
                }
            }
            assert!(machine.memory.lost(2) > 0);
            machine.settle(policy.name);
        }
    }
}

#[test]
fn new_1_the_number_of_a_domain_that_has_gone_may_be_that_of_one_elsewhere() {
    for (policy, is_seen_going) in CATALOG.iter().flat_map(|policy| [(policy, true), (policy, false)]) {
        let mut machine = Machine::new(policy, 2, 2, 7);
        let domain = DomainIndex::at(1);
        let parent = |machine: &Machine| machine.told.lock().unwrap().parents.get(&domain).copied();
        machine.round();
        assert_eq!(parent(&machine), Some(DomainIndex::at(2)), "{}", policy.name);
        machine.memory.forget_domain(1);
        machine.tell_number(row_kind::ROW_DOMAIN, 1, 0, 0);
        if is_seen_going {
            machine.round();
            assert_eq!(parent(&machine), None, "{}", policy.name);
        }
        machine.memory.set_domain(1, 0, 100);
        machine.tell_number(row_kind::ROW_DOMAIN, 1, 0, 0);
        machine.round();
        assert_eq!(parent(&machine), Some(DomainIndex::ROOT), "{}, {is_seen_going}", policy.name);
    }
}

#[test]
fn new_1_a_thread_whose_policy_hung_decides_nothing_when_it_goes_on() {
    let [kernels, of_one, of_another] = Memory::mapped().unwrap();
    kernels.set_online(1);
    kernels.set_domain(0, 0, 100);
    let policy = CATALOG.iter().find(|policy| policy.name == "stride").unwrap();
    let waits = |task: u32| {
        let view = TaskView {
            joined: 1,
            generation: task,
            activity: Activity::Waiting,
            domain: DomainIndex::ROOT,
            weight: 100,
            allowed: 1,
        };
        kernels.set_task(task, types::activity::WAITING, view);
        let row = (row_kind::ROW_WOKE, task, task, 0);
        assert!(kernels.tell(0, Nanoseconds::from_secs(1), row, None));
    };
    let told = Told::default();
    let decider = |memory: &Memory| {
        let mut decider = Decider::new(make(policy, 1, 2, &told), 1);
        decider.begin(memory);
        decider
    };
    let decide = |decider: &mut Decider, memory: &Memory| {
        memory.begin_round();
        decider.round(memory, Nanoseconds::from_secs(2), 0);
    };
    let mut one = decider(&of_one);
    waits(1);
    decide(&mut one, &of_one);
    assert!(kernels.take_answer(0).is_some());
    let taken = kernels.rows_taken(0);
    of_one.come_off().unwrap();
    waits(2);
    // Whatever it was about to do.
    one.begin(&of_one);
    decide(&mut one, &of_one);
    of_one.preempt(0, ClientId::new(1));
    assert_eq!((kernels.take_answer(0), kernels.gives_way(0), kernels.rows_taken(0)), (None, 0, taken));
    decide(&mut decider(&of_another), &of_another);
    assert!(kernels.take_answer(0).is_some());
    assert_ne!(kernels.rows_taken(0), taken);
}
