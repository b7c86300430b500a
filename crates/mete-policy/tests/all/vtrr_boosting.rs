//! Clients that run briefly when they wake go ahead of all others, and shares of domains hold all the same.
#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use mete_policy::{
    ClientId, DistributedVtrr, DomainIndex, Event, Grant, KernelVtrr, Nanoseconds, Observation, Policy,
    ProcessorId, RequestId, Setup, Share, Stop,
};

const QUANTUM: u64 = 1_000_000;
/// A sleeper sleeps so long and then runs so long.
const SLEEP: u64 = 5_000_000;
const BURST: u64 = 200_000;
const SECOND: u64 = 1_000_000_000;

/// A client of the tests: one that sleeps and runs, or one that computes all the time.
struct Task {
    domain: u16,
    burst: Option<(u64, u64)>,
    /// What is left of its burst, and when it wakes.
    left: u64,
    /// It goes ahead when it wakes, as the policy said when it blocked.
    goes_ahead: bool,
    wakes: Option<u64>,
    woke: u64,
    ran: u64,
    waits: Vec<u64>,
}

impl Task {
    fn hog(domain: u16) -> Task {
        Task {
            domain,
            burst: None,
            left: u64::MAX,
            goes_ahead: false,
            wakes: Some(0),
            woke: 0,
            ran: 0,
            waits: Vec::new(),
        }
    }

    fn sleeper(domain: u16, sleep: u64, burst: u64) -> Task {
        Task { burst: Some((sleep, burst)), left: burst, ..Task::hog(domain) }
    }
}

/// What a processor does: a client, since when, and until when its slice lasts.
#[derive(Clone, Copy)]
struct Run {
    client: usize,
    since: u64,
    until: u64,
}

struct Machine<P> {
    policy: P,
    tasks: Vec<Task>,
    runs: Vec<Option<Run>>,
    now: u64,
    decisions: Vec<(u32, Grant)>,
    /// This processor has something else to do, and asks for no client.
    held: Option<usize>,
    /// Wake-ups that took a processor from its client, and those of them of which the policy had said so when the client blocked.
    took: [u64; 2],
}

impl<P: Policy> Machine<P> {
    /// The domains have these shares, and domain 0 is the root.
    fn new(new: impl Fn(&Setup) -> P, processors: u16, shares: &[u32], tasks: Vec<Task>) -> Machine<P> {
        let setup = Setup {
            domains: shares.len() as u16 + 1,
            processors,
            quantum_ns: Nanoseconds::new(QUANTUM),
            ..Setup::for_clients(tasks.len() as u32)
        };
        let mut policy = new(&setup);
        for (domain, &share) in (1..).zip(shares) {
            policy.add_domain(DomainIndex::new(domain), DomainIndex::ROOT, Share::new(share).unwrap());
        }
        for (client, task) in (0..).zip(&tasks) {
            policy.add(ClientId::new(client), DomainIndex::new(task.domain), Share::ONE, Nanoseconds::ZERO);
        }
        Machine {
            policy,
            tasks,
            runs: vec![None; processors.into()],
            now: 0,
            decisions: Vec::new(),
            held: None,
            took: [0; 2],
        }
    }

    fn time(&self) -> Nanoseconds {
        Nanoseconds::new(self.now)
    }

    /// The client of a processor stops, for the reason that there is.
    fn stop(&mut self, processor: usize, preempted: bool) {
        let Some(run) = self.runs[processor].take() else { return };
        let used = self.now - run.since;
        let task = &mut self.tasks[run.client];
        task.ran += used;
        task.left -= used.min(task.left);
        let stop = match task.burst {
            Some((sleep, burst)) if task.left == 0 => {
                (task.left, task.wakes) = (burst, Some(self.now + sleep));
                Stop::Blocked
            }
            _ if preempted => Stop::Preempted,
            _ => Stop::Expired,
        };
        let client = ClientId::new(run.client as u32);
        self.policy.ran(client, Nanoseconds::new(used), stop, self.time());
        self.tasks[run.client].goes_ahead = self.policy.goes_ahead(client).has(None);
    }

    fn wake_all(&mut self) {
        for client in 0..self.tasks.len() {
            let task = &mut self.tasks[client];
            if task.wakes.is_some_and(|at| at <= self.now) {
                (task.wakes, task.woke) = (None, self.now);
                if let Some(processor) = self.policy.wake(ClientId::new(client as u32), self.time()) {
                    self.took[0] += 1;
                    self.took[1] += u64::from(self.tasks[client].goes_ahead);
                    self.stop(processor.index(), true);
                }
            }
        }
    }

    fn fill(&mut self) {
        for processor in 0..self.runs.len() {
            if self.runs[processor].is_some() || self.held == Some(processor) {
                continue;
            }
            let Some(decision) = self.policy.pick(ProcessorId::new(processor as u16), self.time()) else {
                continue;
            };
            self.decisions.push((decision.client.get(), decision.grant));
            let client = decision.client.index();
            let task = &mut self.tasks[client];
            if task.burst.is_some_and(|(_, burst)| task.left == burst) {
                task.waits.push(self.now - task.woke);
            }
            let until = self.now + decision.slice_ns.get().min(task.left);
            self.runs[processor] = Some(Run { client, since: self.now, until });
        }
    }

    fn run_for(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.wake_all();
            self.fill();
            let ends = self.runs.iter().flatten().map(|run| run.until);
            let wakes = self.tasks.iter().filter_map(|task| task.wakes);
            self.now = ends.chain(wakes).min().unwrap().min(end);
            for processor in 0..self.runs.len() {
                if self.runs[processor].is_some_and(|run| run.until <= self.now) {
                    self.stop(processor, false);
                }
            }
        }
    }

    /// What a domain has had, in thousandths of a processor.
    fn permille(&self, domain: u16) -> u64 {
        let ran: u64 = self.tasks.iter().filter(|task| task.domain == domain).map(|task| task.ran).sum();
        ran * 1000 / self.now
    }

    /// The wait of a sleeper in the middle, and the one that a hundredth of its waits exceed.
    fn waits(&self, client: usize) -> (u64, u64) {
        let mut waits = self.tasks[client].waits.clone();
        waits.sort_unstable();
        (waits[waits.len() / 2], waits[waits.len() * 99 / 100])
    }
}

/// A sleeper with hogs beside it in its domain, and beside the domain five with a hog each.
fn sleeper_beside(hogs: usize) -> Vec<Task> {
    let mut tasks = vec![Task::sleeper(1, SLEEP, BURST)];
    tasks.extend((0..hogs).map(|_| Task::hog(1)));
    tasks.extend((2..=6).map(Task::hog));
    tasks
}

#[test]
fn tavs_9_a_sleeper_among_hogs_runs_at_once_and_every_domain_has_its_share() {
    for hogs in [1, 10] {
        let mut machine = Machine::new(DistributedVtrr::new, 1, &[1; 6], sleeper_beside(hogs));
        machine.run_for(20 * SECOND);
        let (median, most) = machine.waits(0);
        assert!(median <= QUANTUM / 2 && most <= QUANTUM, "{median} and {most} ns beside {hogs} hogs");
        for domain in 1..=6 {
            let permille = machine.permille(domain);
            assert!(permille.abs_diff(166) <= 2, "domain {domain} has had {permille} thousandths");
        }
    }
}

#[test]
fn tavs_9_who_will_go_ahead_is_known_before_it_wakes() {
    fn took<P: Policy>(new: impl Fn(&Setup) -> P) -> [u64; 2] {
        // It wakes in the middle of slices.
        let mut tasks = sleeper_beside(10);
        tasks[0] = Task::sleeper(1, SLEEP + 300_000, BURST);
        let mut machine = Machine::new(new, 1, &[1; 6], tasks);
        machine.run_for(20 * SECOND);
        machine.took
    }
    for [took, were_known] in [took(DistributedVtrr::new), took(KernelVtrr::new)] {
        assert!(took > 3000 && were_known * 100 >= took * 99, "{were_known} of {took}");
    }
}

#[test]
fn tavs_9_on_several_processors_too() {
    let mut tasks = sleeper_beside(10);
    tasks.extend((2..=6).map(Task::hog));
    let mut machine = Machine::new(DistributedVtrr::new, 2, &[1; 6], tasks);
    machine.run_for(20 * SECOND);
    let (median, most) = machine.waits(0);
    assert!(median <= QUANTUM / 2 && most <= QUANTUM, "{median} and {most} ns");
    for domain in 1..=6 {
        let permille = machine.permille(domain);
        assert!(permille.abs_diff(333) <= 4, "domain {domain} has had {permille} thousandths");
    }
}

#[test]
fn tavs_9_who_goes_ahead_does_not_wait_for_a_processor_that_something_else_has() {
    let sleepers = (0..4).map(|nth| Task::sleeper(1 + nth, SLEEP + u64::from(nth) * 1000, BURST));
    let tasks: Vec<_> =
        sleepers.chain((1..=4).flat_map(|domain| [Task::hog(domain), Task::hog(domain)])).collect();
    let mut machine = Machine::new(DistributedVtrr::new, 2, &[1; 4], tasks);
    machine.run_for(2 * SECOND);
    for processor in [0, 1] {
        machine.stop(processor, true);
        machine.held = Some(processor);
        machine.tasks.iter_mut().for_each(|task| task.waits.clear());
        machine.run_for(2 * SECOND);
        for client in 0..4 {
            // It wakes some 190 times in a second. A round of eight hogs on one processor is eight quanta.
            assert!(
                machine.tasks[client].waits.len() > 200,
                "{} of client {client}",
                machine.tasks[client].waits.len()
            );
            assert!(machine.waits(client).1 <= 10 * QUANTUM, "{:?}", machine.waits(client));
        }
    }
}

#[test]
fn tavs_4_what_goes_ahead_is_bounded_by_a_part_of_its_domains_time() {
    // It would use two thirds of a processor, of which its domain has half: a half of that is for those that
    // go ahead.
    let mut tasks = vec![Task::sleeper(1, 200_000, 400_000)];
    tasks.extend((0..4).map(|_| Task::hog(1)));
    tasks.push(Task::hog(2));
    let mut machine = Machine::new(DistributedVtrr::new, 1, &[1, 1], tasks);
    machine.run_for(20 * SECOND);
    let sleeper = machine.tasks[0].ran * 1000 / machine.now;
    // What it runs in its turn, a fifth of the rest at most, comes in addition.
    assert!((230..=320).contains(&sleeper), "{sleeper} thousandths");
    assert!(machine.permille(2).abs_diff(500) <= 2, "{}", machine.permille(2));
}

#[test]
fn tavs_4_domains_in_debt_do_not_go_ahead() {
    // The sleeper would use a quarter of the processor, and its domain's share is a tenth.
    let mut tasks = vec![Task::sleeper(1, 600_000, 200_000), Task::hog(2)];
    tasks.extend((0..3).map(|_| Task::hog(2)));
    let mut machine = Machine::new(DistributedVtrr::new, 1, &[1, 9], tasks);
    machine.run_for(20 * SECOND);
    assert!(machine.permille(1).abs_diff(100) <= 3, "{}", machine.permille(1));
}

#[test]
fn tavs_3_clients_that_compute_never_go_ahead() {
    let mut tasks: Vec<_> = (0..3).map(|_| Task::sleeper(1, 3_000_000, 3_000_000)).collect();
    tasks.extend((0..3).map(|_| Task::hog(2)));
    let mut machine = Machine::new(DistributedVtrr::new, 1, &[1, 1], tasks);
    machine.run_for(5 * SECOND);
    assert!(machine.decisions.iter().all(|&(_, grant)| grant == Grant::Share));
}

#[test]
fn tavs_3_a_client_that_ceases_to_run_briefly_ceases_to_go_ahead() {
    let mut machine =
        Machine::new(DistributedVtrr::new, 1, &[1, 1], vec![Task::sleeper(1, SLEEP, BURST), Task::hog(2)]);
    machine.run_for(5 * SECOND);
    let ahead = |decisions: &[(u32, Grant)]| {
        decisions.iter().filter(|&&decision| decision == (0, Grant::PartialBoost)).count()
    };
    assert!(ahead(&machine.decisions) > 500, "{}", ahead(&machine.decisions));
    machine.tasks[0].burst = Some((SLEEP, 3 * QUANTUM));
    // From a belief of 300, four long runs of three quanta each leave none.
    machine.run_for(SECOND / 2);
    machine.decisions.clear();
    machine.run_for(5 * SECOND);
    assert_eq!(ahead(&machine.decisions), 0);
}

#[test]
fn tavs_9_the_kernels_policy_boosts_as_its_twin_in_rust() {
    for processors in [1, 2, 4] {
        let decisions = |new: fn(&Setup) -> Box<dyn Policy>| {
            let mut tasks = sleeper_beside(10);
            tasks.extend(
                (0..6).map(|domain| Task::sleeper(domain, 700_000 + u64::from(domain) * 1000, 150_000)),
            );
            tasks.extend((0..4).map(|domain| Task::sleeper(domain, 300_000, 900_000)));
            let mut machine = Machine::new(new, processors, &[1, 2, 3, 1, 2, 3], tasks);
            machine.run_for(3 * SECOND);
            machine.decisions
        };
        let kernel = decisions(|setup| Box::new(KernelVtrr::new(setup)));
        assert!(kernel == decisions(|setup| Box::new(DistributedVtrr::new(setup))));
        assert!(kernel.iter().any(|&(_, grant)| grant == Grant::PartialBoost));
    }
}

/// One server with a hog beside it in its domain, and a hog in another one. A packet wakes it for a request, which takes a tenth of a
/// quantum; every third time it is another event that wakes it, to compute for three quanta. Which of both went ahead, of the last
/// hundred each.
fn boosts(policy: &mut dyn Policy, request: Event, other: Option<Event>) -> [usize; 2] {
    const ZERO: Nanoseconds = Nanoseconds::ZERO;
    let [server, beside, hog] = [0, 1, 2].map(ClientId::new);
    for (client, domain) in [(server, 1), (beside, 1), (hog, 2)] {
        policy.add(client, DomainIndex::new(domain), Share::ONE, ZERO);
    }
    let _ = (policy.wake(beside, ZERO), policy.wake(hog, ZERO));
    let processor = ProcessorId::new(0);
    let mut ahead = [Vec::new(), Vec::new()];
    for nth in 0..900 {
        let is_batch = nth % 3 == 2;
        let event = if is_batch { other } else { Some(request) };
        if let Some(event) = event {
            let _ = policy.observe(Observation::EventPending { client: server, event }, ZERO);
        }
        let _ = policy.wake(server, ZERO);
        let mut left = if is_batch { 3 } else { 0 };
        let mut was_ahead = None;
        // Between two wake-ups the others run for long, so that its domain may afford it.
        for _ in 0..40 {
            let Some(decision) = policy.pick(processor, ZERO) else { break };
            let is_server = decision.client == server;
            if is_server {
                was_ahead = was_ahead.or(Some(decision.grant == Grant::PartialBoost));
            }
            let (used, stop) = match (is_server, left) {
                (false, _) => (QUANTUM, Stop::Expired),
                (true, 0) => (QUANTUM / 10, Stop::Blocked),
                (true, _) => (QUANTUM, Stop::Expired),
            };
            left -= u32::from(is_server && left > 0);
            policy.ran(decision.client, Nanoseconds::new(used), stop, ZERO);
        }
        ahead[usize::from(is_batch)].push(was_ahead.expect("it ran"));
    }
    ahead.map(|all| all[all.len() - 100..].iter().filter(|is_ahead| **is_ahead).count())
}

#[test]
fn tavs_5_what_wakes_a_client_tells_whether_it_runs_briefly() {
    let packet = |port| Event::Packet { port };
    let block = Event::Block(RequestId::new(7));
    let setup = Setup { domains: 3, quantum_ns: Nanoseconds::new(QUANTUM), ..Setup::for_clients(3) };
    for is_kernels in [false, true] {
        let boosts = |request, other| {
            let mut policy: Box<dyn Policy> = if is_kernels {
                Box::new(KernelVtrr::new(&setup))
            } else {
                Box::new(DistributedVtrr::new(&setup))
            };
            for domain in 1..3 {
                policy.add_domain(DomainIndex::new(domain), DomainIndex::ROOT, Share::ONE);
            }
            boosts(policy.as_mut(), request, other)
        };
        // A timer, another client, a block and a packet to another port are other events.
        for other in [Some(Event::Other), None, Some(block), Some(packet(81))] {
            let boosted = boosts(packet(80), other);
            assert!(boosted[0] >= 95 && boosted[1] == 0, "{other:?}: {boosted:?}");
        }
        // The same event for both says nothing: as it was without events.
        assert_eq!(boosts(packet(80), Some(packet(80))), [0, 0]);
        // As many ports on as there are places, both have one.
        assert_eq!(boosts(packet(80), Some(packet(85))), [0, 0]);
        assert_eq!(boosts(block, Some(Event::Block(RequestId::new(8)))), [0, 0]);
    }
}
