//! The manager on a modelled machine. Each processor runs a thread that stands in front, or else an ordinary
//! task, or else a thread that stands behind; what it runs is charged as the programs in the kernel do it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use mete_kernel::Weight;
use mete_policy::{
    ClientId, Decision, DistributedVtrr, DomainIndex, Nanoseconds, Policy, ProcessorId, RoundRobin, Setup,
    Share, Stop,
};
use mete_sched::actuator::Mask;
use rustix::io::Errno;

use crate::channels::Channels;
use crate::counts::Counts;
use crate::dues::Dues;
use crate::error::DispatchError;
use crate::manager::Manager;
use crate::memory::{Birth, Memory, Row, What};
use crate::message::Message;
use crate::step_back::StepBack;
use crate::threads::{Standing, Threads};

const MS: u64 = 1_000_000;
/// How finely time passes.
const STEP: u64 = 50_000;
/// The numbers of the threads that are clients begin here.
const FIRST: u32 = 1000;

/// What the kernel knows of threads.
#[derive(Debug, Default)]
struct Kernel {
    standing: BTreeMap<u32, Standing>,
    runnable: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    /// Real time is not given any more, to any thread or to this one.
    refuses: bool,
    refused: Option<u32>,
    /// The processor on which the manager runs, if on one only; and the one on which it may, if on one only.
    manager_at: Option<usize>,
    manager_may: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct ModelThreads(Rc<RefCell<Kernel>>);

impl Threads for ModelThreads {
    type Thread = u32;

    fn number(thread: &u32) -> u32 {
        *thread
    }

    fn renumbered(_thread: &u32, number: u32) -> u32 {
        number
    }

    fn stand(&mut self, thread: &u32, standing: Standing) -> Result<(), Errno> {
        let mut kernel = self.0.borrow_mut();
        if kernel.ended.contains(thread) {
            return Err(Errno::SRCH);
        }
        if (kernel.refuses || kernel.refused == Some(*thread)) && standing == Standing::Front {
            return Err(Errno::PERM);
        }
        let before = kernel.standing.insert(*thread, standing);
        assert!(
            standing != Standing::Behind || before == Some(Standing::Own),
            "a kernel may lose count of a group whose thread goes from the front straight to behind"
        );
        Ok(())
    }

    fn run_on(&mut self, processors: Option<&Mask>) -> bool {
        let at = processors.and_then(|mask| mask.processors().next());
        let mut kernel = self.0.borrow_mut();
        let goes = at.is_none_or(|at| kernel.manager_may.is_none_or(|may| may == at));
        kernel.manager_at = if goes { at } else { kernel.manager_at };
        goes
    }
}

/// What has a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Client(usize),
    Rest,
    Nothing,
}

/// A machine with a manager.
struct Machine {
    manager: Manager<ModelThreads>,
    channels: Channels<u32>,
    kernel: Rc<RefCell<Kernel>>,
    memory: Memory,
    rows: VecDeque<Row>,
    now: u64,
    /// When the manager acts next.
    due: u64,
    /// What each client has used, and where it ran last.
    clients: Vec<(u64, usize)>,
    /// The thread of each, and the processor to which it is bound, if to one.
    threads: Vec<u32>,
    bound: Vec<Option<usize>>,
    /// What ordinary tasks that are no clients want on each processor, and have had.
    wanted: Vec<u64>,
    had: Vec<u64>,
    /// What has each processor, and whether tasks there wanted anything when it was looked at last.
    has: Vec<Has>,
    wanted_any: Vec<bool>,
    /// The kernel moves tasks that are no clients to where none is in front.
    balances: bool,
    /// How often the manager has acted.
    steps: u64,
    /// For how long tasks have waited there in vain, and what the longest time was.
    waits: Vec<u64>,
    longest_wait: u64,
    /// For how long the kernel prefers a client there that has stepped back.
    owed: Vec<u64>,
    /// Where clients may run.
    processors: Range<usize>,
}

impl Machine {
    /// With a domain for each share, and a hog in each. The rest has a tenth, and the kernel asks for no pauses.
    fn new(processors: usize, shares: &[u32]) -> Machine {
        let sum = Weight::new(shares.iter().sum()).unwrap();
        let shares: Vec<_> = shares.iter().map(|share| 9 * share).collect();
        Machine::beside((sum, 0), processors, &shares)
    }

    /// The same beside a rest of this share; and for how many thousandths of the time the kernel asks for it.
    fn beside(rest: (Weight, u64), processors: usize, shares: &[u32]) -> Machine {
        let mut machine = Machine::without_clients(rest, processors, shares);
        (1..=shares.len()).for_each(|domain| machine.join(domain as u16));
        machine
    }

    /// The same without hogs.
    fn without_clients((rest, owed): (Weight, u64), processors: usize, shares: &[u32]) -> Machine {
        let setup = Setup {
            domains: shares.len() as u16 + 1,
            processors: processors as u16,
            quantum_ns: Nanoseconds::from_millis(4),
            ..Setup::for_clients(64)
        };
        let mut policy = DistributedVtrr::new(&setup);
        let mut dues = Dues::new(rest, Nanoseconds::ZERO);
        for (domain, share) in (1..).map(DomainIndex::new).zip(shares) {
            let share = Share::new(*share).unwrap();
            policy.add_domain(domain, DomainIndex::ROOT, share);
            dues.set_share(domain, share);
        }
        Machine::under(Box::new(policy), processors, (StepBack::owing(owed), dues))
    }

    /// The same under another policy, which knows the domains.
    fn under(policy: Box<dyn Policy + Send>, processors: usize, rest: (StepBack, Dues)) -> Machine {
        let memory = Memory::of_nothing().unwrap();
        let channels = Channels::new().unwrap();
        let threads = ModelThreads::default();
        let kernel = Rc::clone(&threads.0);
        let now = Nanoseconds::ZERO;
        let manager = Manager::new(policy, memory.clone(), threads, channels.clone(), processors, rest, now);
        let (rows, clients, threads_of) = (VecDeque::new(), Vec::new(), Vec::new());
        let (wanted, had, owed) = (vec![0; processors], vec![0; processors], vec![0; processors]);
        let mut machine = Machine {
            manager,
            channels,
            kernel,
            memory,
            rows,
            now: 0,
            due: 0,
            clients,
            threads: threads_of,
            bound: Vec::new(),
            has: vec![Has::Nothing; processors],
            wanted_any: vec![false; processors],
            balances: false,
            steps: 0,
            waits: vec![0; processors],
            longest_wait: 0,
            wanted,
            had,
            owed,
            processors: 0..0,
        };
        machine.use_processors(0..processors);
        machine
    }

    fn use_processors(&mut self, processors: Range<usize>) {
        self.processors = processors.clone();
        let masks = processors.filter_map(Mask::single);
        let all = masks.reduce(|all, mask| all.or(&mask)).unwrap();
        self.channels.messages.put(Message::Processors(Box::new(all)));
        self.due = self.now;
    }

    fn join(&mut self, domain: u16) {
        self.join_bound(domain, None);
    }

    /// It may run on this processor only, if any is said.
    fn join_bound(&mut self, domain: u16, to: Option<usize>) {
        self.clients.push((0, to.unwrap_or(0)));
        self.threads.push(0);
        self.bound.push(to);
        self.begin(self.clients.len() - 1, FIRST + self.clients.len() as u32 - 1, domain);
    }

    /// The client's thread is a client no more, and ends.
    fn leaves(&mut self, client: usize) {
        self.kernel.borrow_mut().runnable.remove(&self.threads[client]);
        self.channels.messages.put(Message::Leave { number: ClientId::at(client) });
        self.due = self.now;
    }

    /// Another thread gets its number.
    fn comes_again(&mut self, client: usize, domain: u16) {
        self.clients[client] = (0, 0);
        self.begin(client, FIRST + 100, domain);
    }

    fn begin(&mut self, client: usize, thread: u32, domain: u16) {
        let number = ClientId::at(client);
        self.threads[client] = thread;
        self.kernel.borrow_mut().runnable.insert(thread);
        let bound = self.bound[client];
        self.memory.begin(number, bound.unwrap_or(0), Nanoseconds::new(self.now));
        let (domain, allowed) = (DomainIndex::new(domain), bound.map_or(u64::MAX, |to| 1 << to));
        self.channels.messages.put(Message::Join { number, thread, domain, share: Share::ONE, allowed });
        self.due = self.now;
    }

    fn tell(&mut self, what: What, client: usize, processor: usize) {
        let (time, number) = (Nanoseconds::new(self.now), ClientId::at(client));
        self.rows.push_back(Row { time, what, number, thread: self.threads[client], processor });
        self.due = self.now;
    }

    /// It wakes, and the row is lost.
    fn wakes_unseen(&mut self, client: usize) {
        self.kernel.borrow_mut().runnable.insert(self.threads[client]);
        self.memory.set_can_run(ClientId::at(client), true);
    }

    fn wakes(&mut self, client: usize) {
        self.wakes_unseen(client);
        self.tell(What::Woke, client, self.clients[client].1);
    }

    fn blocks(&mut self, client: usize) {
        self.kernel.borrow_mut().runnable.remove(&self.threads[client]);
        self.memory.set_can_run(ClientId::at(client), false);
        self.tell(What::Blocked, client, self.clients[client].1);
    }

    /// Clients that can run and stand there.
    fn standing(&self, at: Standing) -> Vec<usize> {
        let kernel = self.kernel.borrow();
        let stands = |client: &usize| {
            let thread = self.threads[*client];
            let runs = kernel.runnable.contains(&thread) && !kernel.ended.contains(&thread);
            runs && kernel.standing.get(&thread) == Some(&at)
        };
        (0..self.clients.len()).filter(stands).collect()
    }

    /// Lets time pass.
    fn pass(&mut self, ns: u64) -> Result<(), DispatchError> {
        let end = self.now + ns;
        while self.now < end {
            if self.now >= self.due {
                // It has displaced what ran there.
                let manager_at = self.kernel.borrow().manager_at.unwrap_or(0);
                if self.has[manager_at] == Has::Rest && self.wanted[manager_at] > 0 {
                    self.memory.withhold(manager_at, false);
                }
                self.steps += 1;
                let sleep = self.manager.step(Nanoseconds::new(self.now), &mut self.rows)?;
                self.due = self.now + sleep.as_nanos() as u64;
            }
            self.now += STEP;
            self.run();
        }
        Ok(())
    }

    /// Each processor runs something for a step.
    fn run(&mut self) {
        let mut free: BTreeSet<_> = (0..self.wanted.len()).collect();
        let mut has = vec![Has::Nothing; self.wanted.len()];
        let front = self.standing(Standing::Front);
        self.run_front(&front, &mut free, &mut has);
        for client in self.standing(Standing::After) {
            let at = self.clients[client].1;
            if self.owed[at] > 0 && free.remove(&at) {
                self.owed[at] -= STEP;
                has[at] = Has::Client(client);
            }
        }
        free.retain(|&at| {
            let waits = self.wanted[at] > 0;
            has[at] = if waits { Has::Rest } else { has[at] };
            !waits
        });
        for standing in [Standing::Aside, Standing::After, Standing::Own, Standing::Behind] {
            for client in self.standing(standing) {
                let at = self.bound[client].or(free.first().copied()).filter(|at| free.contains(at));
                if let Some(at) = at.filter(|_| !has.contains(&Has::Client(client))) {
                    free.remove(&at);
                    has[at] = Has::Client(client);
                }
            }
        }
        (0..has.len()).for_each(|at| self.switch(at, has[at]));
        (0..has.len()).for_each(|at| self.charge(at));
        for (at, has) in has.into_iter().enumerate() {
            let waits = self.wanted[at] > 0 && has != Has::Rest;
            self.waits[at] = if waits { self.waits[at] + STEP } else { 0 };
            self.longest_wait = self.longest_wait.max(self.waits[at]);
        }
        self.balance();
    }

    /// Clients in front have processors: bound ones their own, others that on which they were. What the manager displaces goes where none is
    /// in front.
    fn run_front(&self, front: &[usize], free: &mut BTreeSet<usize>, has: &mut [Has]) {
        let manager_at = self.kernel.borrow().manager_at;
        let stays_free = manager_at.filter(|_| front.len() < self.processors.len());
        let (bound, others): (Vec<usize>, Vec<usize>) =
            front.iter().partition(|client| self.bound[**client].is_some());
        for client in bound.into_iter().chain(others) {
            let may = |at: &usize| self.processors.contains(at) && stays_free != Some(*at);
            let last = Some(self.clients[client].1).filter(|last| may(last) && free.contains(last));
            let at = self.bound[client].or(last).or(free.iter().copied().find(may));
            if let Some(at) = at.filter(|at| free.remove(at)) {
                has[at] = Has::Client(client);
            }
        }
    }

    /// Another task has a processor, or the same one. The programs tell of what happens, and of nothing else.
    fn switch(&mut self, at: usize, has: Has) {
        let before = std::mem::replace(&mut self.has[at], has);
        let wants_any = self.wanted[at] > 0;
        let comes = !std::mem::replace(&mut self.wanted_any[at], wants_any) && wants_any;
        match has {
            Has::Client(client) => {
                if comes || before == Has::Rest && wants_any {
                    self.memory.withhold(at, false);
                }
                if comes || before != has {
                    self.tell_of_what_waits(client, at);
                }
            }
            Has::Rest | Has::Nothing => drop(self.memory.take_untold(at)),
        }
    }

    fn tell_of_what_waits(&mut self, client: usize, at: usize) {
        if self.memory.gives_way(at) || !self.memory.is_chosen(ClientId::at(client)) {
            return;
        }
        let (was_left, has_woken) = self.memory.take_untold(at);
        for (waits, has_woken) in [(was_left, false), (has_woken, true)] {
            if waits && self.memory.tells_of_rest(at, has_woken) {
                self.tell(What::Waited { has_woken }, client, at);
            }
        }
    }

    fn charge(&mut self, at: usize) {
        match self.has[at] {
            Has::Client(client) => {
                self.clients[client] = (self.clients[client].0 + STEP, at);
                let used = Nanoseconds::new(self.clients[client].0);
                self.memory.set_account(ClientId::at(client), used, at);
            }
            Has::Rest => {
                self.wanted[at] = self.wanted[at].saturating_sub(STEP);
                self.had[at] += STEP;
                self.memory.charge_rest(at, STEP);
                if self.wanted[at] == 0 && self.memory.gives_way(at) {
                    self.tell(What::Served, 0, at);
                }
            }
            Has::Nothing => {}
        }
    }

    /// Moves a task that always waits to where no client is in front.
    fn balance(&mut self) {
        let front = self.standing(Standing::Front);
        let is_taken = |at: &usize| matches!(self.has[*at], Has::Client(client) if front.contains(&client));
        let from = (0..self.has.len()).find(|at| self.wanted[*at] > u64::MAX / 2);
        let to = (0..self.has.len()).find(|at| self.wanted[*at] == 0 && !is_taken(at));
        if let (true, Some(from), Some(to)) = (self.balances, from, to) {
            self.wanted.swap(from, to);
        }
    }

    /// A task that is no client wakes where this client runs, and needs this much.
    fn rest_wakes(&mut self, client: usize, ns: u64) {
        let at = self.clients[client].1;
        self.wanted[at] += ns;
        self.wanted_any[at] = true;
        self.memory.withhold(at, true);
        if self.has[at] != Has::Rest {
            self.tell_of_what_waits(client, at);
        }
    }

    fn used(&self) -> Vec<u64> {
        self.clients.iter().map(|(used, _)| *used).collect()
    }

    fn counts(&self) -> Counts {
        self.manager.counts
    }
}

fn is_near(one: u64, other: u64, most: u64) -> bool {
    one.abs_diff(other) <= most
}

#[test]
fn vtrr_6_domains_have_their_shares_of_one_processor_and_of_two() {
    let mut machine = Machine::new(1, &[300, 100]);
    machine.pass(1000 * MS).unwrap();
    let used = machine.used();
    assert!(is_near(used[0], 750 * MS, 8 * MS) && is_near(used[1], 250 * MS, 8 * MS), "{used:?}");

    let mut machine = Machine::new(2, &[100; 3]);
    machine.pass(1200 * MS).unwrap();
    let used = machine.used();
    assert!(used.iter().all(|used| is_near(*used, 800 * MS, 12 * MS)), "{used:?}");
}

#[test]
fn a_task_that_waits_behind_a_client_runs_soon_though_the_kernel_asks_for_no_pause() {
    for processors in [1, 2] {
        let mut machine = Machine::new(processors, &vec![100; processors]);
        machine.pass(100 * MS).unwrap();
        let last = processors - 1;
        machine.wanted[last] = MS;
        machine.pass(6 * MS).unwrap();
        assert_eq!(machine.wanted[last], 0, "on {processors}, {:?}", machine.counts());
        assert!(machine.counts().waited > 0);
    }
}

#[test]
fn a_client_that_lets_a_task_go_first_is_in_front_again_when_the_task_blocks() {
    let mut machine = Machine::new(1, &[100]);
    machine.pass(100 * MS).unwrap();
    machine.wanted[0] = 2 * STEP;
    while machine.wanted[0] > 0 {
        machine.pass(STEP).unwrap();
    }
    // What was saved would last for some milliseconds.
    assert_eq!(machine.standing(Standing::After), [0]);
    // It has blocked. The client is owed as much.
    machine.pass(2 * STEP).unwrap();
    assert_eq!(machine.standing(Standing::After), [0]);
    machine.pass(STEP).unwrap();
    assert_eq!(machine.standing(Standing::Front), [0], "{:?}", machine.counts());
}

/// It is told of when the step back ends.
#[test]
fn a_task_that_wakes_while_a_client_steps_back_for_another_one_and_has_nothing_is_not_forgotten() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[300, 100]);
    machine.pass(500 * MS).unwrap();
    for _ in 0..20 {
        machine.pass(50 * MS).unwrap();
        let at = machine.clients[0].1;
        machine.rest_wakes(0, STEP);
        machine.pass(STEP).unwrap();
        assert!(machine.memory.gives_way(at));
        // The kernel has the client run first until the step back is over.
        machine.owed[at] = 7 * MS;
        machine.rest_wakes(0, STEP);
        machine.pass(12 * MS).unwrap();
        assert_eq!(machine.wanted, [0; 2]);
    }
}

/// For what the client's group had not had when others ran, the kernel has it run first.
#[test]
fn a_client_steps_back_until_the_task_has_had_its_turn_where_the_kernel_lets_the_client_run_first() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[300, 100]);
    machine.pass(500 * MS).unwrap();
    for _ in 0..20 {
        machine.pass(50 * MS).unwrap();
        let at = machine.clients[0].1;
        machine.owed[at] = 3 * MS;
        machine.rest_wakes(0, 2 * STEP);
        machine.pass(3 * MS + 10 * STEP).unwrap();
        assert_eq!(machine.wanted, [0; 2]);
        // That costs the client nothing.
        machine.owed[at] = 100 * MS;
        machine.rest_wakes(0, 2 * STEP);
        let used = machine.used()[0];
        machine.pass(60 * MS).unwrap();
        assert!(machine.used()[0] - used >= 58 * MS, "{}", machine.used()[0] - used);
        machine.owed[at] = 0;
        machine.wanted[at] = 0;
    }
}

#[test]
fn the_rest_has_its_share_of_both_processors_where_it_is_and_no_more() {
    let mut machine = Machine::new(2, &[100; 2]);
    machine.wanted[1] = u64::MAX;
    machine.pass(2000 * MS).unwrap();
    // A tenth of both, and what was saved at the start.
    assert!(is_near(machine.had[1], 410 * MS, 15 * MS), "{:?}", machine.had);
}

/// What one thread cannot use is for the other domain and the rest.
#[test]
fn vtrr_6_a_client_that_is_due_a_whole_processor_has_it_beside_others_and_the_rest() {
    for (others, shares, elsewhere) in
        [(1, [300, 100], u64::MAX), (4, [300, 100], u64::MAX), (1, [700, 100], u64::MAX), (4, [300, 100], 0)]
    {
        let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &shares);
        (1..others).for_each(|_| machine.join(2));
        machine.wanted = vec![u64::MAX, elsewhere];
        machine.pass(2000 * MS).unwrap();
        let used = machine.used();
        let (first, second, rest) = (used[0], used[1..].iter().sum::<u64>(), machine.had.iter().sum::<u64>());
        // Where the kernel asks for a part of a processor, the others make room.
        assert!(is_near(first, 2000 * MS, 30 * MS), "{used:?}");
        assert!(is_near(second, rest, 200 * MS), "{used:?} {rest}");
    }
}

/// Wherever the rest's tasks are.
#[test]
fn vtrr_6_the_domain_that_is_ahead_makes_room_for_the_rest() {
    let (all, none) = (u64::MAX, 0);
    for wanted in [[all, all], [all, none], [none, all]] {
        // One thread of a domain with a share of 1, and some of one with a tenth of it.
        for (others, share, due) in [(1, 100, [1333, 1333]), (3, 100, [1333, 1333]), (3, 10, [1905, 190])] {
            let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[100, share]);
            (1..others).for_each(|_| machine.join(2));
            machine.wanted = wanted.to_vec();
            machine.pass(2000 * MS).unwrap();
            let used = machine.used();
            let of_domains = [used[0], used[1..].iter().sum()];
            for (used, due) in of_domains.into_iter().zip(due) {
                assert!(is_near(used, due * MS, 40 * MS), "{wanted:?} {others} {share}: {of_domains:?}");
            }
        }
    }
}

/// The kernel cannot move the one that is behind to where the other one is; but tasks that are no clients.
#[test]
fn vtrr_6_domains_that_are_bound_to_different_processors_make_room_for_the_rest_alike() {
    for balances in [true, false] {
        let mut machine = Machine::without_clients((Weight::ORDINARY, 65), 2, &[100, 100]);
        machine.balances = balances;
        (1..=2).for_each(|domain| machine.join_bound(domain, Some(usize::from(domain) - 1)));
        machine.wanted[0] = u64::MAX;
        machine.pass(2000 * MS).unwrap();
        let (used, had) = (machine.used(), machine.had.iter().sum::<u64>());
        assert!(is_near(had, 1333 * MS, 40 * MS), "{used:?} {had}");
        // Where the kernel moves none, the one whose processor it is pays.
        let due = if balances { [1333, 1333] } else { [667, 2000] };
        assert!((0..2).all(|at| is_near(used[at], due[at] * MS, 40 * MS)), "{used:?} {had}");
    }
}

/// It uses more than it is due, and sleeps now and then.
#[test]
fn vtrr_6_a_domain_that_is_ahead_makes_room_also_if_it_sleeps_for_moments() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[100, 10]);
    machine.wanted = vec![u64::MAX; 2];
    for _ in 0..500 {
        machine.pass(4 * MS - 2 * STEP).unwrap();
        machine.blocks(1);
        machine.pass(2 * STEP).unwrap();
        machine.wakes(1);
    }
    let used = machine.used();
    assert!(is_near(used[0], 1900 * MS, 100 * MS) && used[1] < 300 * MS, "{used:?}");
}

/// Less than it is due, so that much is saved for it at all times.
#[test]
fn vtrr_6_where_the_rest_cannot_use_what_it_is_due_domains_make_room_alike_all_the_same() {
    for at in 0..4 {
        let mut machine = Machine::beside((Weight::ORDINARY, 65), 4, &[100, 100]);
        (1..=2).for_each(|domain| machine.join(domain));
        machine.wanted[at] = u64::MAX;
        machine.pass(2000 * MS).unwrap();
        let used = machine.used();
        let of_domains = [used[0] + used[2], used[1] + used[3]];
        assert!(is_near(of_domains[0], of_domains[1], 100 * MS), "{used:?} {:?}", machine.had);
        assert!(machine.had[at] > 1800 * MS, "{used:?} {:?}", machine.had);
    }
}

/// As long as the rest has less than it is due.
#[test]
fn vtrr_6_tasks_wait_nowhere_for_long() {
    for (processors, shares) in [(2, &[100, 10][..]), (2, &[300, 100]), (3, &[100, 50, 10]), (4, &[400, 100])]
    {
        let mut machine = Machine::beside((Weight::ORDINARY, 65), processors, shares);
        (0..processors).for_each(|nth| machine.join((nth % shares.len()) as u16 + 1));
        machine.wanted.fill(u64::MAX);
        machine.pass(2000 * MS).unwrap();
        assert!(machine.longest_wait < 80 * MS, "{processors} {shares:?}: {}", machine.longest_wait);
    }
}

#[test]
fn vtrr_6_the_threads_of_a_domain_make_room_for_the_rest_in_turn() {
    for threads in [2, 3] {
        let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[200]);
        (1..threads).for_each(|_| machine.join(1));
        machine.wanted[0] = u64::MAX;
        machine.pass(1000 * MS).unwrap();
        // One that has slept is not made to pay for that.
        machine.blocks(0);
        machine.pass(1000 * MS).unwrap();
        machine.wakes(0);
        let before = machine.used();
        machine.pass(2000 * MS).unwrap();
        let used: Vec<_> = machine.used().iter().zip(before).map(|(now, before)| now - before).collect();
        let each = 4000 * MS * 2 / 3 / threads;
        assert!(used.iter().all(|used| is_near(*used, each, 30 * MS)), "{used:?}");
    }
}

#[test]
fn tavs_9_where_a_client_is_due_all_another_one_gives_the_rest_that_processor() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[300, 100]);
    machine.pass(500 * MS).unwrap();
    let at = machine.clients[0].1;
    machine.wanted[at] = MS;
    machine.pass(3 * MS).unwrap();
    assert_eq!(machine.wanted, [0; 2]);
    assert_eq!(machine.clients[0].1, 1 - at);
}

/// Two domains and the rest have a third each, and where one sleeps, or has left, a half.
#[test]
fn vtrr_6_the_rest_has_its_share_beside_those_that_can_run() {
    let had_in = |machine: &mut Machine| {
        machine.pass(100 * MS).unwrap();
        let had = machine.had[0];
        machine.pass(900 * MS).unwrap();
        machine.had[0] - had
    };
    let mut machine = Machine::beside((Weight::ORDINARY, 0), 1, &[100; 2]);
    machine.wanted[0] = u64::MAX;
    machine.pass(600 * MS).unwrap();
    for (sleeps, percent) in [(true, 50), (false, 33), (true, 50), (false, 33)] {
        if sleeps {
            machine.blocks(1)
        } else {
            machine.wakes(1)
        }
        let had = had_in(&mut machine);
        assert!(is_near(had, 9 * percent * MS, 15 * MS), "{sleeps}: {had}");
    }
    machine.leaves(1);
    let had = had_in(&mut machine);
    assert!(is_near(had, 450 * MS, 15 * MS), "{had}");
    let (domain, share) = (DomainIndex::new(1), Share::new(300).unwrap());
    machine.channels.messages.put(Message::Shares { domain, share, clients: Vec::new() });
    machine.due = machine.now;
    let had = had_in(&mut machine);
    assert!(is_near(had, 225 * MS, 15 * MS), "{had}");
}

#[test]
fn vtrr_6_the_rest_is_due_nothing_of_a_processor_where_no_client_may_run() {
    let mut machine = Machine::beside((Weight::ORDINARY, 0), 2, &[100]);
    machine.use_processors(0..1);
    machine.wanted = vec![u64::MAX; 2];
    machine.pass(1000 * MS).unwrap();
    assert!(is_near(machine.used()[0], 500 * MS, 20 * MS), "{:?}", machine.used());
}

/// What has passed is of those that could run then.
#[test]
fn vtrr_6_a_client_that_sleeps_most_of_the_time_shares_its_bursts_with_the_rest() {
    let mut machine = Machine::beside((Weight::ORDINARY, 0), 1, &[100]);
    machine.wanted[0] = u64::MAX;
    machine.blocks(0);
    machine.pass(500 * MS).unwrap();
    let (mut used, mut had) = (machine.used()[0], machine.had[0]);
    let mut in_bursts = (0, 0);
    for _ in 0..30 {
        machine.pass(90 * MS).unwrap();
        machine.wakes(0);
        (used, had) = (machine.used()[0] - used, machine.had[0] - had);
        let begin = (machine.used()[0], machine.had[0]);
        machine.pass(20 * MS).unwrap();
        in_bursts = (in_bursts.0 + machine.used()[0] - begin.0, in_bursts.1 + machine.had[0] - begin.1);
        machine.blocks(0);
    }
    assert!(is_near(in_bursts.0, in_bursts.1, 60 * MS), "{in_bursts:?} {used} {had}");
}

/// It was not in front while it slept.
#[test]
fn vtrr_6_a_client_that_is_due_all_does_not_step_back_as_it_wakes() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[300]);
    machine.wanted = vec![u64::MAX; 2];
    machine.pass(300 * MS).unwrap();
    machine.blocks(0);
    for nth in 0..50 {
        machine.pass(90 * MS).unwrap();
        machine.wakes(0);
        let used = machine.used()[0];
        machine.pass(MS).unwrap();
        assert_eq!(machine.used()[0] - used, MS, "{nth}");
        machine.blocks(0);
        machine.pass(STEP).unwrap();
    }
}

#[test]
fn tavs_9_tasks_that_wake_behind_a_client_that_is_due_all_go_first_at_once() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[300, 100]);
    machine.pass(500 * MS).unwrap();
    for tasks in [1, 2, 3].into_iter().cycle().take(30) {
        machine.pass(50 * MS).unwrap();
        (0..tasks).for_each(|_| {
            machine.rest_wakes(0, 2 * STEP);
            // The manager hears of each.
            machine.manager.step(Nanoseconds::new(machine.now), &mut machine.rows).unwrap();
        });
        machine.pass((1 + 2 * tasks) * STEP).unwrap();
        assert_eq!(machine.wanted, [0; 2], "{tasks}");
    }
}

#[test]
fn tavs_9_a_client_that_runs_briefly_when_it_wakes_displaces_the_one_that_runs() {
    let mut machine = Machine::new(1, &[100; 2]);
    for _ in 0..40 {
        machine.blocks(1);
        machine.pass(20 * MS).unwrap();
        machine.wakes(1);
        let used = machine.used()[1];
        while machine.used()[1] == used {
            machine.pass(STEP).unwrap();
        }
    }
    machine.blocks(1);
    machine.pass(5 * MS).unwrap();
    machine.wakes(1);
    let used = machine.used()[1];
    machine.pass(STEP).unwrap();
    assert_eq!(machine.used()[1], used + STEP, "{:?}", machine.counts());
}

#[test]
fn a_processor_is_kept_free_for_a_thread_that_was_born_until_it_is_a_client_and_not_for_long() {
    let birth = Birth { parent: FIRST, thread: FIRST + 2, process: FIRST + 2, is_renumbered: false };
    for comes in [true, false] {
        let mut machine = Machine::new(1, &[100; 2]);
        while machine.standing(Standing::Front) != [0] {
            machine.pass(STEP).unwrap();
        }
        // It waits for what it has started, as a shell does.
        machine.tell(What::Born(birth), 0, 0);
        machine.blocks(0);
        machine.pass(4 * STEP).unwrap();
        assert_eq!(machine.channels.births.hear(), Some(birth));
        assert!(machine.standing(Standing::Front).is_empty());
        if comes {
            machine.join(1);
        }
        machine.pass(if comes { 4 * STEP } else { MS }).unwrap();
        assert_eq!(machine.standing(Standing::Front).len(), 1);
    }
}

#[test]
fn a_share_that_is_set_counts_from_then_on() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(100 * MS).unwrap();
    let share = Share::new(2700).unwrap();
    let domain = DomainIndex::new(2);
    machine.channels.messages.put(Message::Shares { domain, share, clients: Vec::new() });
    machine.due = machine.now;
    let before = machine.used();
    machine.pass(800 * MS).unwrap();
    let used = machine.used();
    assert!(is_near(used[1] - before[1], 600 * MS, 10 * MS), "{before:?}, {used:?}");
}

/// As for a thread that begins when another one has ended.
#[test]
fn a_number_that_is_given_again_has_the_share_of_its_new_domain_and_its_former_holders_class_is_put_back() {
    let mut machine = Machine::new(1, &[300, 100]);
    machine.pass(100 * MS).unwrap();
    machine.leaves(0);
    machine.pass(STEP).unwrap();
    assert_eq!(machine.kernel.borrow().standing[&FIRST], Standing::Own);
    machine.comes_again(0, 2);
    let before = machine.used();
    machine.pass(800 * MS).unwrap();
    // In the same domain as the other one now.
    let used = machine.used();
    assert!(is_near(used[1] - before[1], 400 * MS, 10 * MS), "{before:?}, {used:?}");
    assert!(is_near(used[0], 400 * MS, 10 * MS), "{used:?}");
}

#[test]
fn a_row_of_a_thread_that_had_the_number_before_is_no_row_of_the_client() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(50 * MS).unwrap();
    let client = machine.standing(Standing::Front)[0];
    let (time, number) = (Nanoseconds::new(machine.now), ClientId::at(client));
    for what in [What::Blocked, What::Ended] {
        machine.rows.push_back(Row { time, what, number, thread: FIRST + 9, processor: 0 });
    }
    machine.due = machine.now;
    let used = machine.used()[client];
    machine.pass(200 * MS).unwrap();
    assert!(is_near(machine.used()[client] - used, 100 * MS, 8 * MS), "{:?}", machine.used());
}

#[test]
fn a_client_that_wakes_after_its_row_was_lost_runs_again() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(50 * MS).unwrap();
    machine.blocks(1);
    machine.pass(50 * MS).unwrap();
    machine.wakes_unseen(1);
    let before = machine.used()[1];
    machine.pass(50 * MS).unwrap();
    assert_eq!(machine.used()[1], before);
    machine.memory.lose();
    machine.pass(200 * MS).unwrap();
    assert!(machine.used()[1] > before + 50 * MS && machine.counts().lost == 1);
}

#[test]
fn a_client_of_whose_waking_no_row_tells_runs_as_soon_as_it_is_found_awake() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(50 * MS).unwrap();
    machine.blocks(1);
    machine.pass(50 * MS).unwrap();
    machine.wakes_unseen(1);
    let before = machine.used()[1];
    machine.pass(50 * MS).unwrap();
    assert_eq!(machine.used()[1], before);
    // Twice is no more than once.
    for _ in 0..2 {
        machine.channels.messages.put(Message::Awake { number: ClientId::at(1) });
        machine.due = machine.now;
        machine.pass(50 * MS).unwrap();
    }
    assert!(is_near(machine.used()[1] - before, 50 * MS, 8 * MS), "{:?}", machine.used());
}

#[test]
fn a_client_that_may_use_an_idle_processor_leaves_its_own_one_to_a_task_that_waits_there() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[100]);
    machine.pass(100 * MS).unwrap();
    let at = machine.clients[0].1;
    machine.wanted[at] = u64::MAX;
    let before = machine.used()[0];
    machine.pass(1000 * MS).unwrap();
    assert!(machine.had[at] > 970 * MS && machine.used()[0] - before > 970 * MS, "{:?}", machine.had);
}

/// As where a real-time task of others has the idle processor, or the manager itself is bound.
#[test]
fn a_client_that_cannot_be_moved_steps_back_for_a_task_that_waits_and_the_manager_sleeps_in_between() {
    let mut machine = Machine::beside((Weight::ORDINARY, 65), 2, &[100]);
    machine.pass(100 * MS).unwrap();
    let at = machine.clients[0].1;
    machine.kernel.borrow_mut().manager_may = Some(1 - at);
    machine.wanted[at] = u64::MAX;
    machine.pass(1000 * MS).unwrap();
    assert!(machine.had[at] > 60 * MS && machine.longest_wait < 40 * MS, "{:?}", machine.had);
    assert!(machine.steps < 2000, "{}", machine.steps);
}

/// They need little, and have it where they woke.
#[test]
fn vtrr_6_clients_elsewhere_do_not_step_back_for_tasks_that_have_woken() {
    let mut machine = Machine::beside((Weight::ORDINARY, 0), 2, &[100, 100]);
    (1..=2).for_each(|domain| machine.join(domain));
    machine.pass(500 * MS).unwrap();
    for _ in 0..50 {
        machine.pass(5 * MS).unwrap();
        let client = machine.standing(Standing::Front)[0];
        machine.rest_wakes(client, STEP);
        machine.pass(2 * STEP).unwrap();
        assert!(!machine.standing(Standing::Front).is_empty());
    }
}

#[test]
fn a_client_that_was_taken_for_blocked_and_runs_is_found_within_a_second() {
    let mut machine = Machine::new(2, &[100; 2]);
    machine.pass(50 * MS).unwrap();
    // It is told of, and wakes without a word; one processor is left over for it.
    machine.blocks(1);
    machine.pass(MS).unwrap();
    machine.wakes_unseen(1);
    machine.pass(1100 * MS).unwrap();
    assert_eq!(machine.standing(Standing::Front).len(), 2);
}

#[test]
fn a_client_that_has_ended_without_a_row_leaves_its_slot_to_another_one_at_once() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(50 * MS).unwrap();
    let behind = machine.standing(Standing::Behind)[0];
    machine.kernel.borrow_mut().ended.insert(FIRST + behind as u32);
    // While nothing stands in front, this has the processor.
    machine.wanted[0] = u64::MAX;
    let used = machine.used()[1 - behind];
    machine.pass(50 * MS).unwrap();
    assert!(machine.used()[1 - behind] - used > 30 * MS, "{:?}", machine.used());
}

#[test]
fn after_an_absence_all_clients_are_put_where_they_belong() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(50 * MS).unwrap();
    // While it was stopped, others gave all threads their own classes.
    machine.now += 500 * MS;
    machine.kernel.borrow_mut().standing.values_mut().for_each(|standing| *standing = Standing::Own);
    machine.pass(MS).unwrap();
    assert_eq!((machine.standing(Standing::Own).len(), machine.counts().absences), (0, 1));
}

#[test]
fn no_client_is_chosen_for_a_processor_that_none_may_run_on() {
    let mut machine = Machine::new(2, &[100; 3]);
    machine.use_processors(1..2);
    machine.pass(50 * MS).unwrap();
    assert_eq!(machine.standing(Standing::Front).len(), 1);
    machine.use_processors(0..2);
    machine.pass(50 * MS).unwrap();
    assert_eq!(machine.standing(Standing::Front).len(), 2);
}

#[test]
fn a_client_that_may_not_be_put_in_front_is_one_no_longer_and_the_others_go_on() {
    let mut machine = Machine::new(1, &[100; 3]);
    machine.pass(10 * MS).unwrap();
    machine.kernel.borrow_mut().refused = Some(machine.threads[1]);
    machine.pass(100 * MS).unwrap();
    assert_eq!((machine.counts().refused, machine.standing(Standing::Own)), (1, vec![1]));
    let used = |machine: &mut Machine| {
        let before = machine.used();
        machine.pass(3000 * MS).unwrap();
        machine.used().iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>()
    };
    let others = used(&mut machine);
    assert!(others[1] < 20 * MS && is_near(others[0], others[2], 20 * MS), "{others:?}");
    assert_eq!(machine.counts().refused, 1);
    // It is tried again, and has its share as soon as the kernel takes it.
    machine.kernel.borrow_mut().refused = None;
    machine.pass(2000 * MS).unwrap();
    let all = used(&mut machine);
    assert!(all.iter().all(|used| is_near(*used, 1000 * MS, 20 * MS)), "{all:?}");
    assert_eq!(machine.counts().refused, 0);
}

#[test]
fn where_the_kernel_does_not_take_any_more_clients_none_is_in_front_and_the_manager_goes_on() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.pass(10 * MS).unwrap();
    machine.kernel.borrow_mut().refuses = true;
    machine.pass(100 * MS).unwrap();
    assert_eq!((machine.counts().refused, machine.standing(Standing::Front).len()), (2, 0));
}

#[test]
fn where_no_client_has_ever_been_taken_by_the_kernel_the_manager_ends() {
    let mut machine = Machine::new(1, &[100; 2]);
    machine.kernel.borrow_mut().refuses = true;
    let ended = machine.pass(100 * MS).unwrap_err();
    assert!(matches!(ended, DispatchError::Refused { source: Errno::PERM, .. }), "{ended}");
}

/// Clients in turn; and when the policy was told of what.
struct Told {
    inner: RoundRobin,
    calls: Arc<Mutex<Vec<(u64, &'static str)>>>,
}

impl Told {
    fn note(&self, now: Nanoseconds, what: &'static str) {
        self.calls.lock().unwrap().push((now.get() / MS, what));
    }
}

impl Policy for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, now: Nanoseconds) {
        self.inner.add(client, domain, share, now);
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        self.inner.remove(client, now);
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        self.inner.set_share(client, share, now);
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        self.inner.wake(client, now)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.inner.pick(processor, now)
    }

    fn ran(&mut self, client: ClientId, ran: Nanoseconds, stop: Stop, now: Nanoseconds) {
        if stop == Stop::Blocked {
            self.note(now, "blocked");
        }
        self.inner.ran(client, ran, stop, now);
    }

    fn tick_ns(&self) -> Option<Nanoseconds> {
        Some(Nanoseconds::from_millis(10))
    }

    fn tick(&mut self, _processor: ProcessorId, now: Nanoseconds) -> bool {
        self.note(now, "tick");
        false
    }
}

/// The manager comes late, and finds a tick that was due before a client blocked.
#[test]
fn vtrr_7_a_policy_has_its_ticks_in_the_order_of_time() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let inner = RoundRobin::new(&Setup { quantum_ns: Nanoseconds::from_secs(1), ..Setup::for_clients(64) });
    let policy = Box::new(Told { inner, calls: Arc::clone(&calls) });
    let mut machine = Machine::under(policy, 1, (StepBack::owing(0), Dues::of_rate(100_000)));
    machine.join(1);
    machine.pass(5 * MS).unwrap();
    machine.now = 15 * MS;
    machine.blocks(0);
    machine.now = 18 * MS;
    machine.due = machine.now;
    machine.pass(MS).unwrap();
    let calls = calls.lock().unwrap();
    assert_eq!(*calls, [(0, "tick"), (15, "tick"), (15, "blocked")]);
}
