//! What the affinity policy promises (LOG-16; short paper §4, thesis §5.3).

use mete_policy::{Affinity, DomainIndex, Move, Period, Permille, ProcessorId, Role, affinity::Settings};
use proptest::prelude::*;

const QUICK: Settings = Settings {
    margin_percent: 25,
    confirm_periods: 1,
    dwell_periods: 0,
    min_transactions: 1,
    cap: Permille::new(900),
    max_imbalance: Permille::new(2000),
};

/// Two drivers, 0 on processor 0 and 1 on processor 1, and clients from 2 on, on processor 0.
#[derive(Clone, Debug)]
struct Machine {
    roles: Vec<Role>,
    transactions: Vec<u64>,
    processors: Vec<Option<ProcessorId>>,
    demand: Vec<Permille>,
    queue: Vec<Permille>,
}

fn permille(thousandths: impl IntoIterator<Item = u32>) -> Vec<Permille> {
    thousandths.into_iter().map(Permille::new).collect()
}

impl Machine {
    fn new(clients: usize) -> Machine {
        let domains = 2 + clients;
        let mut roles = vec![Role::Client; domains];
        roles[..2].fill(Role::Driver);
        let mut processors = vec![Some(ProcessorId::new(0)); domains];
        processors[1] = Some(ProcessorId::new(1));
        Machine {
            roles,
            transactions: vec![0; domains * domains],
            processors,
            demand: vec![Permille::new(100); domains],
            queue: vec![Permille::new(1000); 2],
        }
    }

    fn talk(mut self, client: usize, to_0: u64, to_1: u64) -> Machine {
        let row = client * self.roles.len();
        self.transactions[row..row + 2].copy_from_slice(&[to_0, to_1]);
        self
    }

    fn policy(&self, settings: Settings) -> Affinity {
        Affinity::new(self.roles.len(), 2, settings)
    }

    fn period(&self) -> Period<'_> {
        Period {
            roles: &self.roles,
            transactions: &self.transactions,
            processors: &self.processors,
            demand: &self.demand,
            queue: &self.queue,
        }
    }
}

fn moved(domain: u16, from: u16, to: u16, driver: u16) -> Move {
    Move {
        domain: DomainIndex::new(domain),
        from: Some(ProcessorId::new(from)),
        to: ProcessorId::new(to),
        driver: DomainIndex::new(driver),
    }
}

#[test]
fn log_16_a_client_moves_to_the_processor_of_the_driver_it_talks_to_most() {
    let machine = Machine::new(1).talk(2, 10, 90);
    let mut policy = machine.policy(QUICK);
    assert_eq!(policy.decide(&machine.period()), [moved(2, 0, 1, 1)]);
    assert_eq!(policy.placed(DomainIndex::new(2)), Some(ProcessorId::new(1)));
    assert!(policy.decide(&machine.period()).is_empty(), "it is there already");
}

#[test]
fn log_16_a_client_that_runs_beside_its_driver_is_put_there_once() {
    let machine = Machine::new(1).talk(2, 90, 10);
    let mut policy = machine.policy(QUICK);
    assert_eq!(policy.decide(&machine.period()), [moved(2, 0, 0, 0)]);
    assert!(policy.decide(&machine.period()).is_empty());
}

#[test]
fn log_16_drivers_and_bystanders_are_never_moved() {
    let mut machine = Machine::new(1).talk(1, 90, 0).talk(2, 0, 90);
    machine.roles[2] = Role::Bystander;
    assert!(machine.policy(QUICK).decide(&machine.period()).is_empty());
}

#[test]
fn log_16_a_lead_within_the_margin_moves_no_client() {
    let mut close = Machine::new(1).talk(2, 100, 125);
    close.processors[2] = Some(ProcessorId::new(0));
    assert!(close.policy(QUICK).decide(&close.period()).is_empty());
    let clear = Machine::new(1).talk(2, 100, 126);
    assert_eq!(clear.policy(QUICK).decide(&clear.period()).len(), 1);
}

#[test]
fn log_16_a_lead_must_last_for_the_confirming_periods_in_a_row() {
    let (toward, away) = (Machine::new(1).talk(2, 10, 90), Machine::new(1).talk(2, 50, 50));
    let mut policy = toward.policy(Settings { confirm_periods: 3, ..QUICK });
    for machine in [&toward, &toward, &away, &toward, &toward] {
        assert!(policy.decide(&machine.period()).is_empty());
    }
    assert_eq!(policy.decide(&toward.period()).len(), 1);
}

#[test]
fn log_16_a_client_dwells_before_it_moves_again() {
    let (there, back) = (Machine::new(1).talk(2, 10, 90), Machine::new(1).talk(2, 90, 10));
    let mut policy = there.policy(Settings { dwell_periods: 5, ..QUICK });
    assert_eq!(policy.decide(&there.period()).len(), 1);
    for _ in 0..4 {
        assert!(policy.decide(&back.period()).is_empty());
    }
    assert_eq!(policy.decide(&back.period()), [moved(2, 1, 0, 0)]);
}

#[test]
fn log_16_a_client_without_enough_transactions_stays() {
    let machine = Machine::new(1).talk(2, 0, 9);
    assert!(machine.policy(Settings { min_transactions: 10, ..QUICK }).decide(&machine.period()).is_empty());
}

#[test]
fn log_16_clients_fill_a_processor_up_to_the_cap_and_no_further() {
    let mut machine = (2..7).fold(Machine::new(5), |machine, client| machine.talk(client, 1, 99));
    machine.demand = permille([100, 300, 250, 250, 250, 250, 250]);
    let mut policy = machine.policy(QUICK);
    let moved: Vec<_> = policy.decide(&machine.period()).iter().map(|m| m.domain.get()).collect();
    assert_eq!(moved, [2, 3], "300 + 2 × 250 fit under 900, a third does not");
}

#[test]
fn log_16_a_client_that_leaves_makes_room_for_one_that_comes() {
    // Client 3 is where 2 wants to be, and the other way round.
    let mut machine = Machine::new(2).talk(2, 1, 99).talk(3, 99, 1);
    machine.processors[3] = Some(ProcessorId::new(1));
    machine.demand = permille([100, 500, 300, 300]);
    let mut policy = machine.policy(QUICK);
    let mut moved: Vec<_> =
        policy.decide(&machine.period()).iter().map(|m| (m.domain.get(), m.to.get())).collect();
    moved.sort_unstable();
    assert_eq!(moved, [(2, 1), (3, 0)]);
}

#[test]
fn log_16_a_much_longer_run_queue_takes_no_client() {
    let mut machine = Machine::new(1).talk(2, 0, 99);
    machine.queue = permille([1000, 3001]);
    assert!(machine.policy(QUICK).decide(&machine.period()).is_empty());
    machine.queue[1] = Permille::new(3000);
    assert_eq!(machine.policy(QUICK).decide(&machine.period()).len(), 1);
}

#[test]
fn log_16_a_refused_move_is_proposed_again_after_the_dwell() {
    let machine = Machine::new(1).talk(2, 10, 90);
    let mut policy = machine.policy(Settings { dwell_periods: 2, ..QUICK });
    let proposal = policy.decide(&machine.period())[0];
    policy.refused(proposal);
    assert_eq!(policy.placed(DomainIndex::new(2)), None);
    assert!(policy.decide(&machine.period()).is_empty());
    assert_eq!(policy.decide(&machine.period()), [proposal]);
}

prop_compose! {
    fn any_settings()(
        margin_percent: u32, confirm_periods in 0..4u32, dwell_periods in 0..4u32,
        min_transactions in prop_oneof![0..20u64, any::<u64>()],
        cap in prop_oneof![0..2000u32, any::<u32>()], max_imbalance: u32,
    ) -> Settings {
        let margin_percent = if margin_percent % 2 == 0 { margin_percent % 100 } else { margin_percent };
        let (cap, max_imbalance) = (Permille::new(cap), Permille::new(max_imbalance));
        Settings { margin_percent, confirm_periods, dwell_periods, min_transactions, cap, max_imbalance }
    }
}

prop_compose! {
    fn any_machine()(
        roles in prop::collection::vec(prop_oneof![Just(Role::Bystander), Just(Role::Driver), Just(Role::Client)], 0..8),
        transactions in prop::collection::vec(prop_oneof![0..200u64, any::<u64>()], 0..50),
        processors in prop::collection::vec(prop::option::of(prop_oneof![0..3u16, any::<u16>()]), 0..8),
        demand in prop::collection::vec(prop_oneof![0..1000u32, any::<u32>()], 0..8),
        queue in prop::collection::vec(any::<u32>(), 0..4),
    ) -> Machine {
        let processors = processors.into_iter().map(|at: Option<u16>| at.map(ProcessorId::new)).collect();
        let (demand, queue) = (permille(demand), permille(queue));
        Machine { roles, transactions, processors, demand, queue }
    }
}

proptest! {
    #[test]
    fn no_sequence_of_calls_panics_and_every_move_is_a_client_s_to_a_real_processor(
        settings in any_settings(), domains in 0..8usize, processors in 0..4usize,
        periods in prop::collection::vec((any_machine(), any::<bool>()), 1..12),
    ) {
        let mut policy = Affinity::new(domains, processors, settings);
        for (machine, refuse) in &periods {
            let moves = policy.decide(&machine.period()).to_vec();
            for proposal in &moves {
                prop_assert_eq!(machine.roles[proposal.domain.index()], Role::Client);
                prop_assert_eq!(machine.roles[proposal.driver.index()], Role::Driver);
                prop_assert!(proposal.to.index() < processors);
            }
            moves.iter().filter(|_| *refuse).for_each(|&proposal| policy.refused(proposal));
            policy.refused(Move { from: None, ..moved(u16::MAX, 0, 9, 0) });
        }
    }

    #[test]
    fn log_16_no_move_takes_a_processor_over_the_cap(
        demand in prop::collection::vec(0..600u32, 10),
        talk in prop::collection::vec((0..100u64, 0..100u64), 8),
        homes in prop::collection::vec(0..2u16, 10),
    ) {
        let mut machine = Machine::new(8);
        for (client, (to_0, to_1)) in talk.into_iter().enumerate() {
            machine = machine.talk(2 + client, to_0, to_1);
        }
        machine.demand = permille(demand);
        machine.processors[2..].iter_mut().zip(&homes).for_each(|(at, home)| *at = Some(ProcessorId::new(*home)));
        let mut policy = machine.policy(QUICK);
        let moves = policy.decide(&machine.period()).to_vec();
        for target in moves.iter().filter(|m| m.from != Some(m.to)).map(|m| m.to) {
            let there = |&domain: &usize| {
                policy.placed(DomainIndex::at(domain)).or(machine.processors[domain]) == Some(target)
            };
            let load: u32 = (0..machine.roles.len()).filter(there).map(|domain| machine.demand[domain].get()).sum();
            prop_assert!(load <= QUICK.cap.get(), "{load} on {target}");
        }
    }
}
