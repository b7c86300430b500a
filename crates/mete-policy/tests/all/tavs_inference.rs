//! TAVS-2 and TAVS-3: tasks that are tracked by address-space switches, and the beliefs in them.

use crate::common::plain::Policy;
use mete_policy::{
    ClientId, Credit, CreditSettings, DomainIndex, Event, Nanoseconds, Observation, RequestId, Setup, Share,
    Stop, TaskId, TavsSettings,
};
use proptest::prelude::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

struct Guest {
    policy: Credit,
    now: u64,
}

impl Guest {
    fn with(tavs: TavsSettings) -> Guest {
        let setup = Setup { domains: 2, ..Setup::for_clients(2) };
        let mut policy = Credit::new(&setup, CreditSettings { tavs, ..CreditSettings::BASELINE });
        policy.add(0, 1, Share::ONE, 0);
        Guest { policy, now: 0 }
    }

    fn new() -> Guest {
        Guest::with(TavsSettings { inference: true, ..TavsSettings::OFF })
    }

    fn observe(&mut self, observation: Observation) {
        let _ = self.policy.observe(observation, self.now);
    }

    fn dispatch(&mut self, pending: bool) {
        self.dispatch_for(pending.then_some(Event::Other));
    }

    fn dispatch_for(&mut self, pending: Option<Event>) {
        if let Some(event) = pending {
            self.observe(Observation::EventPending { client: ClientId::new(0), event });
        }
        let _ = self.policy.wake(0, self.now);
        assert!(self.policy.pick(0, self.now).is_some());
    }

    fn switch(&mut self, task: u16) {
        self.observe(Observation::TaskSwitch { client: ClientId::new(0), task: TaskId::new(task) });
    }

    /// The running task runs on for that time, and `next` is switched in.
    fn after(&mut self, ran_ns: u64, next: u16) {
        self.now += ran_ns;
        self.switch(next);
    }

    fn stop(&mut self) {
        self.policy.ran(0, 0, Stop::Blocked, self.now);
    }

    fn beliefs(&self, tasks: std::ops::RangeInclusive<u16>) -> Vec<i16> {
        tasks.map(|task| self.policy.belief(ClientId::new(0), TaskId::new(task)).expect("tracked")).collect()
    }

    /// A slice in which `task`, woken by an event, runs between two runs of task 1, each of that length.
    fn round(&mut self, task: u16, ran_ns: u64) {
        self.dispatch(true);
        self.switch(1);
        self.after(10 * US, task);
        self.after(ran_ns, 1);
        self.stop();
    }

    fn counter(&self, wanted: &str) -> u64 {
        let mut found = 0;
        self.policy.counters(&mut |name, value| found += if name == wanted { value } else { 0 });
        found
    }
}

/// Figure 2: an event is pending; T1 is interrupted at once, T2 and T3 run briefly, T4 long, T5 briefly,
/// T6 long.
#[test]
fn tavs_3_figure_2_finds_t2_and_t3_for_t4_and_t6_against_t1_and_t5_ambiguous() {
    let mut guest = Guest::new();
    guest.dispatch(false);
    guest.switch(1);
    guest.stop();
    guest.dispatch(true);
    let runs = [(100 * US, 2), (300 * US, 3), (500 * US, 4), (3 * MS, 5), (100 * US, 6), (4 * MS, 7)];
    for (ran_ns, next) in runs {
        guest.after(ran_ns, next);
    }
    assert_eq!(guest.beliefs(1..=6), [0, 5, 5, -20, 0, -20]);
    let counted = ["positive_evidence", "negative_evidence", "ambiguous"].map(|name| guest.counter(name));
    assert_eq!(counted, [2, 2, 2]);
}

#[test]
fn tavs_3_short_runs_in_a_slice_without_a_pending_event_say_nothing() {
    let mut guest = Guest::new();
    guest.dispatch(false);
    for task in [1, 2, 3, 1] {
        guest.after(100 * US, task);
    }
    assert_eq!(guest.beliefs(1..=3), [0, 0, 0]);
}

#[test]
fn tavs_3_an_event_counts_for_the_next_slice_only() {
    let mut guest = Guest::new();
    guest.round(2, 100 * US);
    assert_eq!(guest.beliefs(2..=2), [5]);
    guest.dispatch(false);
    guest.after(10 * US, 2);
    guest.after(100 * US, 1);
    assert_eq!(guest.beliefs(2..=2), [5]);
}

#[test]
fn tavs_3_the_threshold_itself_is_short_and_one_nanosecond_more_is_long() {
    let mut guest = Guest::new();
    guest.round(2, 500 * US);
    guest.round(3, 500 * US + 1);
    assert_eq!(guest.beliefs(2..=3), [5, -20]);
}

#[test]
fn tavs_3_belief_stays_between_minus_100_and_300_and_turns_with_the_evidence() {
    let mut guest = Guest::new();
    for _ in 0..100 {
        guest.round(2, 100 * US);
        guest.round(3, MS);
    }
    assert_eq!(guest.beliefs(2..=3), [300, -100]);
    for _ in 0..14 {
        guest.round(2, MS);
    }
    assert_eq!(guest.beliefs(2..=2), [20], "fourteen long runs and it is no longer more than 20");
}

/// §5.4, figure 18: the threshold, changed on the fly, separates wget from bzip2 at 0.5 ms and not at 0.1 ms.
#[test]
fn tavs_3_the_threshold_can_be_changed_while_running_for_each_domain() {
    let mut guest = Guest::new();
    guest.policy.set_io_threshold(DomainIndex::new(1), Nanoseconds::new(100 * US));
    for _ in 0..3 {
        guest.round(2, 300 * US);
    }
    assert_eq!(guest.beliefs(2..=2), [-60]);
    guest.policy.set_io_threshold(DomainIndex::new(0), Nanoseconds::new(2 * MS));
    guest.round(2, 300 * US);
    assert_eq!(guest.beliefs(2..=2), [-80], "another domain's threshold does not apply to it");
    guest.policy.set_io_threshold(DomainIndex::new(1), Nanoseconds::new(500 * US));
    for _ in 0..21 {
        guest.round(2, 300 * US);
    }
    assert_eq!(guest.beliefs(2..=2), [25]);
}

#[test]
fn tavs_2_a_task_is_followed_over_slices_and_time_off_the_processor_is_not_its() {
    let mut guest = Guest::new();
    guest.dispatch(false);
    guest.switch(1);
    guest.after(10 * US, 2);
    guest.now += 400 * US;
    guest.stop();
    guest.now += 50 * MS;
    guest.dispatch(true);
    guest.after(400 * US, 1);
    assert_eq!(guest.beliefs(2..=2), [0], "400 µs, and the first of its slice");
    guest.after(MS, 2);
    assert_eq!(guest.beliefs(1..=1), [-20]);
}

/// A server's reply wakes the driver, which preempts the server in the middle of its short run and then
/// reports that the reply is sent; or a packet comes.
#[test]
fn tavs_3_a_preempted_run_goes_on_unless_a_block_or_packet_came_in_between() {
    let events =
        [None, Some(Event::Other), Some(Event::Block(RequestId::new(1))), Some(Event::Packet { port: 7 })];
    for (pending, expected) in events.into_iter().zip([5, 5, 0, 0]) {
        let mut guest = Guest::new();
        guest.dispatch(false);
        guest.switch(1);
        guest.stop();
        guest.dispatch(true);
        guest.after(10 * US, 2);
        guest.now += 200 * US;
        guest.policy.ran(0, 210 * US, Stop::Preempted, guest.now);
        guest.now += 40 * MS;
        guest.dispatch_for(pending);
        guest.after(200 * US, 1);
        assert_eq!(guest.beliefs(2..=2), [expected], "event pending: {pending:?}");
    }
    let mut guest = Guest::new();
    guest.dispatch(true);
    guest.switch(2);
    for _ in 0..3 {
        guest.now += 200 * US;
        guest.policy.ran(0, 200 * US, Stop::Preempted, guest.now);
        guest.dispatch(false);
    }
    guest.switch(1);
    assert_eq!(guest.beliefs(2..=2), [-20], "three times 200 µs are one long run");
}

/// An owner may fail to carry out a decision: an event that was pending is still pending.
#[test]
fn tavs_3_an_event_outlasts_a_decision_that_is_given_back() {
    let mut guest = Guest::new();
    guest.dispatch(true);
    for _ in 0..2 {
        guest.policy.ran(0, 0, Stop::Preempted, guest.now);
        guest.now += 50 * MS;
        guest.dispatch(false);
    }
    guest.switch(1);
    guest.after(10 * US, 2);
    guest.after(10 * US, 1);
    assert_eq!(guest.beliefs(2..=2), [5]);
}

#[test]
fn tavs_2_loading_the_address_space_that_is_loaded_is_no_switch() {
    let mut guest = Guest::new();
    guest.dispatch(true);
    guest.switch(1);
    guest.after(10 * US, 2);
    guest.after(300 * US, 2);
    guest.after(300 * US, 1);
    assert_eq!(guest.beliefs(2..=2), [-20], "600 µs in one run");
}

#[test]
fn tavs_2_a_new_task_with_an_old_number_starts_from_zero() {
    let mut guest = Guest::new();
    guest.round(2, MS);
    assert_eq!(guest.beliefs(2..=2), [-20]);
    guest.observe(Observation::TaskExit { client: ClientId::new(0), task: TaskId::new(2) });
    assert_eq!(guest.beliefs(2..=2), [0]);
    guest.round(2, MS);
    guest.policy.remove(0, guest.now);
    assert_eq!(guest.beliefs(2..=2), [0], "so does a new client's");
}

#[test]
fn tavs_2_of_tasks_and_clients_that_are_not_tracked_nothing_is_believed() {
    let tavs = TavsSettings { inference: true, tasks_per_client: 3, tracked_clients: 1, ..TavsSettings::OFF };
    let mut guest = Guest::with(tavs);
    guest.round(7, 100 * US);
    guest.round(2, 100 * US);
    assert_eq!(
        (
            guest.policy.belief(ClientId::new(0), TaskId::new(7)),
            guest.policy.belief(ClientId::new(0), TaskId::new(2))
        ),
        (None, Some(5))
    );
    assert_eq!(guest.policy.belief(ClientId::new(1), TaskId::new(0)), None);
}

proptest! {
    #[test]
    fn tavs_3_belief_never_leaves_its_range_and_moves_by_the_papers_steps(
        runs in prop::collection::vec((0u16..4, 0..3 * MS, any::<bool>()), 1..300),
    ) {
        let mut guest = Guest::new();
        guest.dispatch(true);
        let mut before = guest.beliefs(0..=3);
        for (task, ran_ns, new_slice) in runs {
            if new_slice {
                guest.stop();
                guest.dispatch(ran_ns % 2 == 0);
            }
            guest.after(ran_ns, task);
            let after = guest.beliefs(0..=3);
            for (&old, &new) in before.iter().zip(&after) {
                prop_assert!((-100..=300).contains(&new));
                prop_assert!(new == old || new == (old + 5).min(300) || new == (old - 20).max(-100));
            }
            before = after;
        }
    }
}
