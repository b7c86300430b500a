//! A machine for the manager: processes that compute, sleep and end, on some processors.

use std::cell::RefCell;
use std::rc::Rc;

use mete_policy::{CATALOG, ClientId, DomainIndex, Entry, Nanoseconds, Setup, Share};
use mete_sched::actuator::ActuatorError;

use crate::manager::{Manager, Message};
use crate::processes::Processes;

const QUANTUM: Nanoseconds = Nanoseconds::from_millis(10);

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    is_there: bool,
    can_run: bool,
    is_paused: bool,
    /// It has another user now.
    is_others: bool,
    used: u64,
}

/// What the manager sees, and what it has done.
#[derive(Clone, Default)]
struct World(Rc<RefCell<Vec<Process>>>);

impl World {
    fn of(&self, process: usize) -> Process {
        self.0.borrow()[process]
    }

    fn change(&self, process: usize, change: impl FnOnce(&mut Process)) {
        change(&mut self.0.borrow_mut()[process]);
    }

    /// Those that run.
    fn running(&self) -> Vec<usize> {
        let all = self.0.borrow();
        let runs = |process: &Process| process.is_there && process.can_run && !process.is_paused;
        all.iter().enumerate().filter(|(_, process)| runs(process)).map(|(nth, _)| nth).collect()
    }
}

impl Processes for World {
    type Process = usize;

    fn used(&mut self, process: &usize) -> Option<Nanoseconds> {
        let found = self.of(*process);
        found.is_there.then(|| Nanoseconds::new(found.used))
    }

    fn can_run(&mut self, process: &usize) -> bool {
        let found = self.of(*process);
        found.is_there && found.can_run && !found.is_paused
    }

    fn is_there(&mut self, process: &usize) -> bool {
        self.of(*process).is_there
    }

    fn pause(&mut self, process: &usize) -> Result<bool, ActuatorError> {
        assert!(self.can_run(process), "it sleeps, or is paused already");
        self.change(*process, |process| process.is_paused = !process.is_others);
        Ok(!self.of(*process).is_others)
    }

    fn resume(&mut self, process: &usize) {
        self.change(*process, |process| process.is_paused = false);
    }

    fn settle(&mut self) -> Result<(), ActuatorError> {
        Ok(())
    }
}

struct Machine {
    world: World,
    manager: Manager<World>,
    processors: u64,
    now: Nanoseconds,
    dice: u64,
}

impl Machine {
    /// With processes that compute, each in a domain of its own with this share.
    fn of(policy: &Entry, shares: &[u32], processors: u64) -> Machine {
        let setup = Setup {
            clients: 64,
            domains: shares.len() as u16 + 1,
            processors: processors as u16,
            quantum_ns: QUANTUM,
            seed: 7,
        };
        let mut made = (policy.make)(&setup);
        let of = |nth: usize| (DomainIndex::at(nth + 1), Share::new(shares[nth]).unwrap());
        (0..shares.len())
            .map(of)
            .for_each(|(domain, share)| made.add_domain(domain, DomainIndex::ROOT, share));
        let world = World::default();
        let process = Process { is_there: true, can_run: true, ..Process::default() };
        world.0.borrow_mut().resize(shares.len(), process);
        let sizes = (shares.len(), processors as usize);
        let manager = Manager::new(made, world.clone(), sizes, QUANTUM);
        let mut machine = Machine { world, manager, processors, now: Nanoseconds::from_secs(1), dice: 7 };
        for nth in 0..shares.len() {
            let (domain, share) = of(nth);
            machine.join(nth, domain, share);
        }
        machine
    }

    fn join(&mut self, nth: usize, domain: DomainIndex, share: Share) {
        let join =
            Message::Join { number: ClientId::at(nth), process: nth, domain, share, allowed: u64::MAX };
        self.manager.tell(join, self.now).unwrap();
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % sides as u64) as usize
    }

    /// Time passes up to the next look, which may come late. Those that run share the processors.
    fn look(&mut self) {
        let passed = self.manager.next().get() + self.roll(1_000_000) as u64;
        let running = self.world.running();
        for &process in &running {
            let part = (passed * self.processors / running.len() as u64).min(passed);
            self.world.change(process, |process| process.used += part);
        }
        self.now += Nanoseconds::new(passed);
        self.manager.look(self.now).unwrap();
    }

    fn used(&self, process: usize) -> u64 {
        self.world.of(process).used
    }
}

#[test]
fn vtrr_6_by_every_policy_as_many_run_as_there_are_processors_and_everyone_has_a_turn() {
    for policy in CATALOG {
        for processors in 1..=3 {
            let mut machine = Machine::of(policy, &[1, 2, 3, 1, 1], processors);
            for _ in 0..3000 {
                machine.look();
                assert_eq!(machine.world.running().len(), processors as usize, "{}", policy.name);
            }
            let least = (0..5).map(|process| machine.used(process)).min().unwrap();
            assert!(least > QUANTUM.get(), "{} on {processors}: {least}", policy.name);
        }
    }
}

#[test]
fn vtrr_6_shares_hold_though_looks_come_late() {
    for name in ["vtrr", "group-vtrr", "distributed-vtrr", "wfq", "stride", "drr", "eevdf", "bvt"] {
        let policy = CATALOG.iter().find(|policy| policy.name == name).unwrap();
        let mut machine = Machine::of(policy, &[1, 2, 3], 1);
        (0..8000).for_each(|_| machine.look());
        let all: u64 = (0..3).map(|process| machine.used(process)).sum();
        for (process, due) in [167, 333, 500].into_iter().enumerate() {
            let had = machine.used(process) * 1000 / all;
            assert!(had.abs_diff(due) <= 20, "{name}: {process} had {had}");
        }
        // What is counted is what was used, up to the last look.
        assert_eq!(machine.manager.used[1..].iter().map(|used| used.get()).sum::<u64>(), all);
    }
}

#[test]
fn log_16_in_random_histories_who_sleeps_is_never_paused_and_no_processor_is_without_one_that_could_run() {
    for policy in CATALOG {
        let mut machine = Machine::of(policy, &[1, 2, 3, 1, 2, 3, 1], 2);
        for nth in 0..20_000 {
            let process = machine.roll(7);
            let Process { is_there, can_run, is_paused, .. } = machine.world.of(process);
            // Some wake for a moment, and some for a third of a quantum.
            let used = [10_000, 3_000_000][machine.roll(2)];
            match machine.roll(8) {
                // It goes to sleep, which only those can that run.
                0 if can_run && !is_paused => {
                    machine.world.change(process, |process| process.can_run = false)
                }
                // One that wakes runs a little at once.
                1 | 2 if !can_run && is_there => machine.world.change(process, |process| {
                    process.can_run = true;
                    process.used += used;
                }),
                3 if nth % 50 == 0 && is_there => {
                    machine.world.change(process, |process| process.is_there = false);
                }
                4 if !is_there => {
                    machine.manager.tell(Message::Leave(ClientId::at(process)), machine.now).unwrap();
                    machine.world.change(process, |process| {
                        *process = Process { is_there: true, can_run: true, used: 5, ..Process::default() };
                    });
                    machine.join(process, DomainIndex::at(process + 1), Share::ONE);
                }
                // Its user, or who watches over the manager, has it go on.
                5 if nth % 20 == 0 => machine.world.change(process, |process| process.is_paused = false),
                _ => machine.look(),
            }
        }
        // What has changed since is seen.
        (0..20).for_each(|_| machine.look());
        let all: Vec<_> = (0..7).map(|process| machine.world.of(process)).collect();
        let asleep = all.iter().filter(|process| process.is_there && !process.can_run);
        assert!(asleep.into_iter().all(|process| !process.is_paused), "{}: {all:?}", policy.name);
        let can_run = all.iter().filter(|process| process.is_there && process.can_run).count();
        assert_eq!(machine.world.running().len(), can_run.min(2), "{}: {all:?}", policy.name);
    }
}

#[test]
fn log_16_who_cannot_be_paused_any_more_is_no_client() {
    let policy = CATALOG.iter().find(|policy| policy.name == "vtrr").unwrap();
    let mut machine = Machine::of(policy, &[1, 1, 1], 1);
    (0..20).for_each(|_| machine.look());
    machine.world.change(0, |process| process.is_others = true);
    (0..50).for_each(|_| machine.look());
    assert_eq!(machine.manager.refused, [ClientId::at(0)]);
    assert!(!machine.world.of(0).is_paused);
    assert_eq!(machine.world.running().len(), 2, "it runs beside the one that is chosen");
}

#[test]
fn vtrr_6_where_no_processor_is_among_those_that_the_policy_has_they_run_all_the_same() {
    let policy = CATALOG.iter().find(|policy| policy.name == "vtrr").unwrap();
    let mut machine = Machine::of(policy, &[1, 1, 1], 2);
    for (processors, run) in [(0b10000, 1), (0b10, 1), (0b11, 2)] {
        machine.manager.tell(Message::Processors(processors), machine.now).unwrap();
        (0..20).for_each(|_| machine.look());
        assert_eq!(machine.world.running().len(), run, "{processors:b}");
    }
}

#[test]
fn log_16_who_is_no_client_any_more_goes_on() {
    let policy = CATALOG.iter().find(|policy| policy.name == "vtrr").unwrap();
    let mut machine = Machine::of(policy, &[1, 1, 1], 1);
    (0..10).for_each(|_| machine.look());
    let paused = (0..3).find(|process| machine.world.of(*process).is_paused).unwrap();
    machine.manager.tell(Message::Leave(ClientId::at(paused)), machine.now).unwrap();
    assert!(!machine.world.of(paused).is_paused);
}
