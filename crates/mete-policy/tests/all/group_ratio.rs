//! What group ratio round robin promises (VTRR-3; Caprita and others 2005, §3).

use std::collections::{BTreeMap, VecDeque};

use crate::common::plain::Policy;
use crate::common::{self, CLIENTS, Line, QUANTUM_NS, setup};
use mete_policy::{GroupRatio, Setup, Share, Stop};
use proptest::prelude::*;

fn line(shares: &[u32]) -> Line<GroupRatio> {
    Line::new(GroupRatio::new(&setup()), shares)
}

/// The paper's algorithm as it is written there (§3): whole quanta, fixed clients, an index.
struct Paper {
    groups: Vec<PaperGroup>,
    index: usize,
}

struct PaperGroup {
    weight: u64,
    work: u64,
    /// Number, share / 2ᵏ as a fraction over 2ᵏ, deficit over 2ᵏ.
    clients: VecDeque<(u32, u64, u64)>,
    unit: u64,
}

impl Paper {
    fn new(shares: &[u32]) -> Paper {
        let mut groups = BTreeMap::new();
        for (client, &share) in (0..).zip(shares) {
            let unit = 1 << share.ilog2();
            let empty = PaperGroup { weight: 0, work: 0, clients: VecDeque::new(), unit };
            let group = groups.entry(unit).or_insert(empty);
            group.weight += u64::from(share);
            group.clients.push_back((client, u64::from(share), 0));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.weight, group.unit)));
        Paper { groups, index: 0 }
    }

    fn next(&mut self) -> u32 {
        let client = self.groups[self.index].next();
        let (group, next) = (&self.groups[self.index], self.groups.get(self.index + 1));
        let exceeds = |next: &PaperGroup| (group.work + 1) * next.weight > (next.work + 1) * group.weight;
        self.index = if next.is_some_and(exceeds) { self.index + 1 } else { 0 };
        client
    }
}

impl PaperGroup {
    fn next(&mut self) -> u32 {
        self.work += 1;
        let unit = self.unit;
        let (client, share, deficit) = self.clients.front_mut().expect("no group is empty");
        if *deficit < unit {
            *deficit += *share;
        }
        *deficit -= unit;
        let (client, through) = (*client, *deficit < unit);
        if through {
            self.clients.rotate_left(1);
        }
        client
    }
}

fn shares() -> impl Strategy<Value = Vec<u32>> {
    let share = prop_oneof![1u32..=10, 1u32..=1000, 1u32..=1 << 20];
    prop::collection::vec(share, 1..CLIENTS as usize)
}

proptest! {
    #[test]
    fn vtrr_3_grrr_schedules_as_the_paper_s_algorithm_does(shares in shares()) {
        let (mut line, mut paper) = (line(&shares), Paper::new(&shares));
        for quantum in 0..2_000 {
            prop_assert_eq!(line.step().0, paper.next(), "quantum {} of {:?}", quantum, &shares);
        }
    }

    /// At every quantum, for each of g groups: −(g−1)(g−2)/2 − 1 < E < g − 1.
    #[test]
    fn vtrr_3_grrr_keeps_every_group_s_service_error_within_the_bounds(shares in shares()) {
        let paper = Paper::new(&shares);
        let g = paper.groups.len() as f64;
        prop_assume!(paper.groups.len() > 1);
        let total: u64 = paper.groups.iter().map(|group| group.weight).sum();
        line(&shares).run_until(5_000 * QUANTUM_NS, |served_ns| {
            let quanta = served_ns.iter().sum::<u64>() as f64 / QUANTUM_NS as f64;
            for group in &paper.groups {
                let members = group.clients.iter().map(|&(client, ..)| served_ns[client as usize]);
                let error = members.sum::<u64>() as f64 / QUANTUM_NS as f64 - quanta * group.weight as f64 / total as f64;
                let bounds = -(g - 1.0) * (g - 2.0) / 2.0 - 1.0..g - 1.0;
                assert!(bounds.contains(&error), "{error} is not within {bounds:?} for {shares:?}");
            }
        });
    }

    /// At every quantum: −(g−1)(g−2)/2 − 4 < E < g + 3, a group's bounds and those within a group.
    #[test]
    fn vtrr_3_grrr_keeps_every_service_error_within_the_bounds(shares in shares()) {
        let total: f64 = shares.iter().map(|&share| f64::from(share)).sum();
        let groups = shares.iter().map(|share| share.ilog2()).collect::<std::collections::BTreeSet<_>>().len();
        let g = groups as f64;
        let bounds = -(g - 1.0) * (g - 2.0) / 2.0 - 4.0..g + 3.0;
        line(&shares).run_until(5_000 * QUANTUM_NS, |served_ns| {
            let quanta: f64 = served_ns.iter().sum::<u64>() as f64 / QUANTUM_NS as f64;
            for (&served_ns, &share) in served_ns.iter().zip(&shares) {
                let error = served_ns as f64 / QUANTUM_NS as f64 - quanta * f64::from(share) / total;
                assert!(bounds.contains(&error), "{error} is not within {bounds:?} for {share} of {shares:?}");
            }
        });
    }
}

/// Groups {A: 6}, {B: 3}, {C: 1}: after A, (1 + 1) / (0 + 1) ≤ 6 / 3, so A again; then 3 > 2, so B; then
/// 2 / 1 ≤ 3 / 1, so back to A, and so on.
#[test]
fn vtrr_3_grrr_serves_groups_by_the_ratio_of_their_work() {
    assert_eq!(line(&[6, 3, 1]).letters(10), "AABAABAABC");
}

/// One group, 3 and 2 over 2: in a round A may run 1 1/2 quanta and B 1, so A has two every other time.
#[test]
fn vtrr_3_grrr_carries_the_fraction_of_a_quantum_over_within_a_group() {
    assert_eq!(line(&[3, 2]).letters(10), "ABAABABAAB");
}

#[test]
fn vtrr_3_grrr_runs_one_client_all_the_time() {
    assert_eq!(line(&[7]).letters(6), "AAAAAA");
}

#[test]
fn vtrr_3_grrr_goes_on_with_a_quantum_that_was_interrupted_or_given_back() {
    let mut line = line(&[1, 1]);
    for (ran_ns, left_ns) in [(QUANTUM_NS / 4, QUANTUM_NS), (0, QUANTUM_NS / 4 * 3)] {
        let decision = line.policy.pick(0, line.now).expect("ready");
        assert_eq!((decision.client, decision.slice_ns), (0, left_ns));
        line.end(0, ran_ns, Stop::Preempted);
    }
    let decision = line.policy.pick(0, line.now).expect("ready");
    line.end(0, decision.slice_ns, Stop::Expired);
    assert_eq!(line.letters(4), "BABA");
}

#[test]
fn vtrr_3_grrr_serves_the_rest_while_a_group_runs_elsewhere() {
    let mut policy = GroupRatio::new(&setup());
    common::start(&mut policy, &[1000, 1]);
    let on: Vec<_> = (0..2).map(|processor| policy.pick(processor, 0).expect("ready").client).collect();
    assert_eq!((on, policy.pick(2, 0)), (vec![0, 1], None));
}

/// A client that comes and goes after every quantum changes all weights each time; the others keep their
/// parts of what is left.
#[test]
fn vtrr_3_grrr_keeps_the_parts_of_the_others_while_one_comes_and_goes() {
    let mut line = line(&[1000, 1, 4]);
    for _ in 0..200_000 {
        let decision = line.policy.pick(0, line.now).expect("ready");
        let stop = if decision.client == 2 { Stop::Blocked } else { Stop::Expired };
        line.end(decision.client, decision.slice_ns, stop);
        let _ = line.policy.wake(2, line.now);
    }
    let ratio = line.quanta(0) / line.quanta(1);
    assert!((800.0..1200.0).contains(&ratio), "{ratio} for 1000");
}

/// The share of client 0 is more than a processor. What it cannot have is not owed to it, so a client that
/// comes late waits no longer than the bound says.
#[test]
fn vtrr_3_grrr_owes_nothing_for_more_than_a_processor() {
    let mut policy = GroupRatio::new(&Setup { processors: 2, ..setup() });
    common::start(&mut policy, &[1000, 1, 1]);
    let mut now = 0;
    let mut both = |policy: &mut GroupRatio| {
        let on = [0, 1].map(|processor| policy.pick(processor, now).expect("ready").client);
        now += QUANTUM_NS;
        on.iter().for_each(|&client| policy.ran(client, QUANTUM_NS, Stop::Expired, now));
        on
    };
    for _ in 0..100_000 {
        assert!(both(&mut policy).contains(&0), "it has a processor of its own");
    }
    common::join(&mut policy, 3, 0, 2);
    let served: Vec<_> = (0..1_000).flat_map(|_| both(&mut policy)).collect();
    let quanta = |client| served.iter().filter(|&&other| other == client).count();
    assert_eq!(quanta(0), 1_000);
    for (client, least) in [(1, 150), (2, 150), (3, 500)] {
        assert!(quanta(client) >= least, "client {client} had {}", quanta(client));
    }
}

#[test]
fn vtrr_3_grrr_gives_a_running_client_its_new_share() {
    let mut line = line(&[1, 1]);
    let decision = line.policy.pick(0, 0).expect("ready");
    line.policy.set_share(0, Share::new(8).expect("a share"), 0);
    line.end(decision.client, decision.slice_ns, Stop::Expired);
    line.letters(900);
    assert!((795.0..=805.0).contains(&line.quanta(0)), "{}", line.quanta(0));
}
