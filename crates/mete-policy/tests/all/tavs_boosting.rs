//! TAVS-4 and TAVS-5: partial boosting, and the events that it is granted for.

use crate::common::plain::Policy;
use mete_policy::credit::Priority;
use mete_policy::{
    ClientId, Credit, CreditSettings, Event, Grant, Observation, Permille, RequestId, Setup, Share, Stop,
    TaskId, TavsSettings,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// The virtual processor with mixed tasks, the one that computes, and the driver's.
const MIXED: u32 = 0;
const HOG: u32 = 1;
const DRIVER: u32 = 2;
/// Tasks of the mixed virtual processor.
const CPU: u16 = 1;
const IO: u16 = 2;

struct Host {
    policy: Credit,
    now: u64,
    /// The processor on which all clients run; a host has no processors behind that one.
    processor: u16,
}

impl Host {
    /// The mixed client has run for 80 ms, so it may spend 10 ms boosted, and `IO` is I/O-bound.
    fn with(tavs: TavsSettings) -> Host {
        Host::on(0, tavs)
    }

    fn on(processor: u16, tavs: TavsSettings) -> Host {
        let setup = Setup { processors: processor + 1, ..Setup::for_clients(3) };
        let policy = Credit::new(&setup, CreditSettings { tavs, ..CreditSettings::BASELINE });
        let mut host = Host { policy, now: 0, processor };
        for client in [MIXED, HOG, DRIVER] {
            host.policy.add(client, 0, Share::ONE, 0);
        }
        let _ = host.policy.wake(MIXED, 0);
        host.pick(MIXED);
        host.switch(CPU);
        // Ticks find it running: it is active.
        host.account();
        host.ran(MIXED, 75 * MS, Stop::Expired);
        for _ in 0..5 {
            host.pending(Event::Other);
            host.pick(MIXED);
            host.switch(IO);
            host.now += 100 * US;
            host.switch(CPU);
            host.ran(MIXED, MS, Stop::Expired);
        }
        assert_eq!(host.policy.belief(ClientId::new(MIXED), TaskId::new(IO)), Some(25));
        host
    }

    /// Puts the mixed client among the clients without credit, and lets the hog run.
    fn behind_the_hog(tavs: TavsSettings) -> Host {
        Host::with(tavs).put_behind_the_hog()
    }

    fn put_behind_the_hog(self) -> Host {
        let mut host = self;
        host.account();
        assert_eq!(host.policy.priority(ClientId::new(MIXED)), Priority::Over);
        let _ = host.policy.wake(HOG, host.now);
        host.pick(HOG);
        let _ = host.policy.tick(host.processor, host.now);
        assert_eq!(host.policy.priority(ClientId::new(HOG)), Priority::Under, "its wake-up boost is gone");
        host
    }

    /// Three ticks: credit is handed out.
    fn account(&mut self) {
        for _ in 0..3 {
            for processor in (0..=self.processor).rev() {
                let _ = self.policy.tick(processor, self.now);
            }
        }
    }

    fn observe(&mut self, observation: Observation) -> Option<u16> {
        self.policy.observe(observation, self.now)
    }

    fn pending(&mut self, event: Event) -> Option<u16> {
        self.observe(Observation::EventPending { client: ClientId::new(MIXED), event })
    }

    fn switch(&mut self, task: u16) -> Option<u16> {
        self.observe(Observation::TaskSwitch { client: ClientId::new(MIXED), task: TaskId::new(task) })
    }

    fn read(&mut self, request: u16) {
        let _ = self.observe(Observation::BlockRead {
            client: ClientId::new(MIXED),
            request: RequestId::new(request),
        });
    }

    fn pick(&mut self, client: u32) -> (u64, Grant) {
        let decision = self.policy.pick(self.processor, self.now).expect("a client is ready");
        assert_eq!(decision.client, client);
        (decision.slice_ns, decision.grant)
    }

    fn ran(&mut self, client: u32, ran_ns: u64, stop: Stop) {
        self.now += ran_ns;
        self.policy.ran(client, ran_ns, stop, self.now);
    }

    fn counter(&self, wanted: &str) -> u64 {
        let mut found = 0;
        self.policy.counters(&mut |name, value| found += if name == wanted { value } else { 0 });
        found
    }

    /// The mixed client runs for a slice that begins with packets for these ports, and wakes `first`.
    fn packets(&mut self, ports: &[u16], first: u16) {
        for &port in ports {
            let _ = self.pending(Event::Packet { port });
        }
        let decision = self.policy.pick(0, self.now).expect("the mixed one is ready");
        assert_eq!(decision.client, MIXED);
        // Whichever task ran before, another one is switched in.
        self.switch(first);
        self.now += 10 * US;
        self.switch(CPU);
        self.ran(MIXED, 100 * US, Stop::Preempted);
    }
}

/// Inference and boosting for any event.
const BOOSTING: TavsSettings = TavsSettings { inference: true, partial_boosting: true, ..TavsSettings::OFF };
const BLOCK: TavsSettings = TavsSettings { block_correlation: true, ..BOOSTING };
/// Learns without boosting, so that all slices are plain.
const LEARNING: TavsSettings =
    TavsSettings { inference: true, network_correlation: true, ..TavsSettings::OFF };
const NETWORK: TavsSettings = TavsSettings { partial_boosting: true, ..LEARNING };

#[test]
fn tavs_4_a_boost_is_revoked_on_the_processor_where_it_runs() {
    for processor in 0..3 {
        let mut host = Host::on(processor, BOOSTING).put_behind_the_hog();
        let _ = host.pending(Event::Other);
        host.ran(HOG, MS, Stop::Preempted);
        assert_eq!(host.pick(MIXED).1, Grant::PartialBoost);
        assert_eq!(host.switch(IO), None);
        assert_eq!(host.switch(CPU), Some(processor));
    }
}

#[test]
fn tavs_4_an_event_for_a_vcpu_with_an_io_bound_task_preempts_until_another_task_is_switched_in() {
    let mut host = Host::behind_the_hog(BOOSTING);
    assert_eq!(host.pending(Event::Other), Some(0), "even a client that is over its credit preempts");
    assert_eq!(host.policy.priority(ClientId::new(MIXED)), Priority::Boost);
    host.ran(HOG, MS, Stop::Preempted);
    assert_eq!(host.pick(MIXED).1, Grant::PartialBoost);
    assert_eq!(host.switch(IO), None, "it goes on while I/O-bound tasks run");
    host.now += 100 * US;
    assert_eq!(host.switch(CPU), Some(0), "and gives way when another is switched in");
    assert_eq!(host.policy.priority(ClientId::new(MIXED)), Priority::Over, "its own priority again");
    host.ran(MIXED, 100 * US, Stop::Preempted);
    assert_eq!(host.pick(HOG).1, Grant::Share);
    let counted = ["partial_boosts", "partial_boost_hits", "revocations", "partial_boost_ns"];
    assert_eq!(counted.map(|name| host.counter(name)), [1, 1, 1, 100 * US]);
}

/// Figure 11: a client that is boosted often must not lose its turn each time.
#[test]
fn tavs_6_a_client_whose_boost_is_revoked_stands_where_it_stood_if_places_are_kept() {
    for (keep_on_run_queue, expected) in [(true, [MIXED, DRIVER]), (false, [DRIVER, MIXED])] {
        let mut host = Host::behind_the_hog(TavsSettings { keep_on_run_queue, ..BOOSTING });
        // The driver's virtual processor serves as another hog here, which came after the mixed client.
        let _ = host.policy.wake(DRIVER, host.now);
        host.ran(HOG, 0, Stop::Blocked);
        host.pick(DRIVER);
        let _ = host.policy.tick(0, host.now);
        host.ran(DRIVER, 70 * MS, Stop::Preempted);
        for _ in 0..30 {
            let _ = host.policy.tick(0, host.now);
        }
        assert_eq!(
            [MIXED, DRIVER].map(|client| host.policy.priority(ClientId::new(client))),
            [Priority::Under; 2]
        );
        let _ = host.pending(Event::Other);
        assert_eq!(host.pick(MIXED).1, Grant::PartialBoost);
        host.switch(IO);
        assert_eq!(host.switch(CPU), Some(0));
        host.ran(MIXED, 50 * US, Stop::Preempted);
        let mut order = [0; 2];
        for client in &mut order {
            let decision = host.policy.pick(0, host.now).expect("two are ready");
            *client = decision.client;
            host.ran(decision.client, 0, Stop::Blocked);
        }
        assert_eq!(order, expected, "places kept: {keep_on_run_queue}");
    }
}

#[test]
fn tavs_4_no_io_bound_task_no_boost() {
    let mut host = Host::behind_the_hog(BOOSTING);
    for _ in 0..2 {
        host.ran(HOG, MS, Stop::Blocked);
        host.pick(MIXED);
        host.switch(IO);
        host.now += 20 * MS;
        host.switch(CPU);
        host.ran(MIXED, MS, Stop::Preempted);
        let _ = host.policy.wake(HOG, host.now);
        host.pick(HOG);
    }
    assert!(host.policy.belief(ClientId::new(MIXED), TaskId::new(IO)) <= Some(20));
    assert_eq!(host.pending(Event::Other), None);
    assert_eq!(host.counter("partial_boosts"), 0);
}

#[test]
fn tavs_4_a_boost_lasts_10_ms_at_most_however_much_is_allowed() {
    let tavs = TavsSettings { boost_ratio: Permille::new(1000), ..BOOSTING };
    let mut host = Host::behind_the_hog(tavs);
    let _ = host.pending(Event::Other);
    host.ran(HOG, MS, Stop::Preempted);
    assert_eq!(host.pick(MIXED), (10 * MS, Grant::PartialBoost));
    let _ = host.policy.tick(0, host.now);
    assert_eq!(host.policy.priority(ClientId::new(MIXED)), Priority::Boost, "its slice ends it, not a tick");
    host.ran(MIXED, 10 * MS, Stop::Expired);
    assert_eq!(host.policy.priority(ClientId::new(MIXED)), Priority::Over);
}

#[test]
fn tavs_4_boosts_stay_within_pbratio_of_the_vcpus_own_processor_time() {
    let mut host = Host::behind_the_hog(BOOSTING);
    let mut boosted = 0;
    loop {
        if host.pending(Event::Other).is_none() {
            break;
        }
        host.ran(HOG, 0, Stop::Preempted);
        let (slice_ns, _) = host.pick(MIXED);
        let ran_ns = slice_ns.min(3 * MS);
        boosted += ran_ns;
        host.ran(MIXED, ran_ns, Stop::Preempted);
        host.pick(HOG);
        assert!(boosted <= (80 * MS + boosted) / 8, "{boosted}");
    }
    assert!(boosted > 10 * MS, "all that is allowed can be used: {boosted}");
    assert_eq!((host.counter("partial_boost_ns"), host.counter("refused_by_ratio")), (boosted, 1));
    host.ran(HOG, 0, Stop::Blocked);
    host.pick(MIXED);
    host.ran(MIXED, 8 * MS, Stop::Preempted);
    let _ = host.policy.wake(HOG, host.now);
    host.pick(HOG);
    let _ = host.policy.tick(0, host.now);
    assert_eq!(host.pending(Event::Other), Some(0), "8 ms of processor time allow another one");
}

#[test]
fn tavs_4_a_ratio_of_zero_is_the_original_scheduler() {
    let mut host = Host::behind_the_hog(TavsSettings { boost_ratio: Permille::new(0), ..BOOSTING });
    assert_eq!(host.pending(Event::Other), None);
    assert_eq!(host.policy.priority(ClientId::new(MIXED)), Priority::Over);
}

#[test]
fn tavs_4_a_blocked_vcpu_without_credit_is_boosted_when_the_event_wakes_it() {
    let mut host = Host::behind_the_hog(BOOSTING);
    host.ran(HOG, 0, Stop::Preempted);
    host.ran(HOG, 0, Stop::Blocked);
    host.pick(HOG);
    host.ran(HOG, 0, Stop::Blocked);
    host.pick(MIXED);
    host.ran(MIXED, 0, Stop::Blocked);
    let _ = host.policy.wake(HOG, host.now);
    host.pick(HOG);
    let _ = host.policy.tick(0, host.now);
    assert_eq!(host.pending(Event::Other), None, "it is not ready yet");
    assert_eq!(host.policy.wake(MIXED, host.now), Some(0));
    host.ran(HOG, 0, Stop::Preempted);
    assert_eq!(host.pick(MIXED).1, Grant::PartialBoost);
    host.ran(MIXED, 0, Stop::Blocked);
    host.pick(HOG);
    assert_eq!(host.policy.wake(MIXED, host.now), None, "one event, one boost");
}

/// §3.5.1, figure 3: the request is sent while another task runs, and T2 is still in the window.
#[test]
fn tavs_5_a_block_read_boosts_if_an_io_bound_task_is_in_the_window_of_3() {
    for (others, expected) in [(0, Some(0)), (1, Some(0)), (2, Some(0)), (3, None)] {
        let mut host = Host::behind_the_hog(BLOCK);
        host.ran(HOG, 0, Stop::Blocked);
        host.pick(MIXED);
        host.switch(IO);
        for other in 0..others {
            host.switch(10 + other);
        }
        host.read(7);
        host.ran(MIXED, 0, Stop::Preempted);
        let _ = host.policy.wake(HOG, host.now);
        host.pick(HOG);
        let _ = host.policy.tick(0, host.now);
        assert_eq!(
            host.pending(Event::Block(RequestId::new(7))),
            expected,
            "{others} tasks after the I/O-bound one"
        );
        assert_eq!(host.counter("refused_by_correlation"), u64::from(expected.is_none()));
    }
}

#[test]
fn tavs_5_the_window_holds_tasks_of_this_slice_only_and_a_request_counts_once() {
    let mut host = Host::behind_the_hog(BLOCK);
    host.ran(HOG, 0, Stop::Blocked);
    host.pick(MIXED);
    host.switch(IO);
    host.switch(CPU);
    host.ran(MIXED, 0, Stop::Expired);
    host.pick(MIXED);
    host.read(3);
    host.switch(IO);
    host.read(4);
    host.ran(MIXED, 0, Stop::Preempted);
    let _ = host.policy.wake(HOG, host.now);
    host.pick(HOG);
    let _ = host.policy.tick(0, host.now);
    assert_eq!(host.pending(Event::Block(RequestId::new(3))), None, "IO had run in the slice before");
    assert_eq!(host.pending(Event::Other), None, "an event that no task waits for does not boost");
    assert_eq!(host.pending(Event::Block(RequestId::new(4))), Some(0));
    host.ran(HOG, 0, Stop::Preempted);
    host.pick(MIXED);
    host.switch(CPU);
    host.ran(MIXED, 0, Stop::Preempted);
    host.pick(HOG);
    assert_eq!(host.pending(Event::Block(RequestId::new(4))), None);
}

/// §4.2: a client that is kept on the run queue resumes "for its time slice", and the window is that slice's
/// (§3.5.1), even if a block came for it in between, so that its run is judged anew.
#[test]
fn tavs_5_the_window_goes_on_in_a_slice_that_the_driver_interrupted() {
    for keep_on_run_queue in [false, true] {
        let mut host = Host::behind_the_hog(TavsSettings { keep_on_run_queue, ..BLOCK });
        host.ran(HOG, 0, Stop::Blocked);
        let _ = host.observe(Observation::Driver { client: ClientId::new(DRIVER) });
        host.pick(MIXED);
        host.switch(IO);
        host.switch(CPU);
        host.now += MS;
        assert_eq!(host.policy.wake(DRIVER, host.now), Some(0));
        host.ran(MIXED, MS, Stop::Preempted);
        host.pick(DRIVER);
        let _ = host.pending(Event::Block(RequestId::new(9)));
        host.ran(DRIVER, 10 * US, Stop::Blocked);
        host.pick(MIXED);
        host.read(3);
        host.ran(MIXED, MS, Stop::Expired);
        let boosts = host.counter("partial_boosts");
        let _ = host.pending(Event::Block(RequestId::new(3)));
        assert_eq!(host.counter("partial_boosts") - boosts, u64::from(keep_on_run_queue));
    }
}

/// Figure 4: up with I/O-bound tasks, down with others, saturating; the two upper states boost.
#[test]
fn tavs_5_figure_4_a_2_bit_counter_walks_its_four_states() {
    let mut host = Host::with(LEARNING);
    let walk = [(IO, 1), (IO, 2), (IO, 3), (IO, 3), (9, 2), (9, 1), (9, 0), (9, 0), (IO, 1), (9, 0), (IO, 1)];
    assert_eq!(host.policy.portmap_counter(ClientId::new(MIXED), 80), Some(0));
    for (first, expected) in walk {
        host.packets(&[80], first);
        assert_eq!(
            host.policy.portmap_counter(ClientId::new(MIXED), 80),
            Some(expected),
            "after task {first}"
        );
    }
    assert_eq!(host.policy.portmap_counter(ClientId::new(MIXED), 81), Some(0));
    assert_eq!(host.counter("portmap_updates"), walk.len() as u64);
}

#[test]
fn tavs_5_a_packet_boosts_while_the_highest_bit_of_its_ports_counter_is_set() {
    for lessons in 0..=3 {
        let mut host = Host::with(NETWORK);
        for _ in 0..lessons {
            host.packets(&[80], IO);
        }
        for _ in 0..3 {
            let _ = host.policy.tick(0, host.now);
        }
        let boosted = host.counter("partial_boosts");
        let _ = host.pending(Event::Packet { port: 80 });
        let expected = u64::from(lessons >= 2);
        assert_eq!(host.counter("partial_boosts") - boosted, expected, "after {lessons} lessons");
    }
}

#[test]
fn tavs_5_packets_for_different_ports_teach_nothing_and_several_for_one_teach_once() {
    let mut host = Host::with(LEARNING);
    host.packets(&[80, 81], IO);
    host.packets(&[80, 81, 80], IO);
    assert_eq!([80, 81].map(|port| host.policy.portmap_counter(ClientId::new(MIXED), port)), [Some(0); 2]);
    host.packets(&[80, 80, 80], IO);
    assert_eq!(host.policy.portmap_counter(ClientId::new(MIXED), 80), Some(1));
    host.packets(&[], IO);
    assert_eq!(host.policy.portmap_counter(ClientId::new(MIXED), 80), Some(1), "no packet, no lesson");
}

/// §3.5.3: the packets of one slice of the driver's have to be for one port; §3.5.2: all pending packets have
/// to.
#[test]
fn tavs_5_by_driver_slice_packets_for_two_ports_teach_about_both_unless_they_came_together() {
    for (learn_by_driver_slice, together, expected) in
        [(true, false, [1, 1]), (true, true, [0, 0]), (false, false, [0, 0]), (false, true, [0, 0])]
    {
        let mut host = Host::behind_the_hog(TavsSettings { learn_by_driver_slice, ..LEARNING });
        host.ran(HOG, 0, Stop::Blocked);
        let _ = host.observe(Observation::Driver { client: ClientId::new(DRIVER) });
        let slices: &[&[u16]] = if together { &[&[80, 81]] } else { &[&[80], &[81]] };
        for ports in slices {
            let _ = host.policy.wake(DRIVER, host.now);
            host.pick(DRIVER);
            for &port in *ports {
                let _ = host.pending(Event::Packet { port });
            }
            host.ran(DRIVER, 10 * US, Stop::Blocked);
        }
        host.packets(&[], IO);
        let learnt = [80, 81]
            .map(|port| host.policy.portmap_counter(ClientId::new(MIXED), port).expect("there is a portmap"));
        assert_eq!(learnt, expected, "by driver slice: {learn_by_driver_slice}, together: {together}");
    }
}

#[test]
fn tavs_5_only_the_first_task_woken_tells_about_the_port() {
    let mut host = Host::with(LEARNING);
    let _ = host.pending(Event::Packet { port: 80 });
    host.pick(MIXED);
    host.switch(9);
    host.switch(IO);
    host.switch(CPU);
    host.switch(IO);
    assert_eq!(
        (host.policy.portmap_counter(ClientId::new(MIXED), 80), host.counter("portmap_updates")),
        (Some(0), 1)
    );
}

/// §3.5.3: the VMM reads the driver's notes, 16 of them, when it deschedules the driver.
#[test]
fn tavs_5_a_drivers_packets_are_noted_up_to_16_and_judged_when_it_is_descheduled() {
    for (before, expected) in [(15, Priority::Boost), (16, Priority::Over)] {
        let mut host = Host::behind_the_hog(NETWORK);
        let _ = host.observe(Observation::Driver { client: ClientId::new(DRIVER) });
        host.ran(HOG, 0, Stop::Blocked);
        for _ in 0..2 {
            host.packets(&[80], IO);
        }
        let _ = host.policy.wake(DRIVER, host.now);
        host.pick(DRIVER);
        let _ = host.policy.tick(0, host.now);
        for _ in 0..before {
            let _ = host.observe(Observation::EventPending {
                client: ClientId::new(HOG),
                event: Event::Packet { port: 9 },
            });
        }
        assert_eq!(host.pending(Event::Packet { port: 80 }), None);
        assert_eq!(
            host.policy.priority(ClientId::new(MIXED)),
            Priority::Over,
            "while the driver runs it is only noted"
        );
        host.ran(DRIVER, 100 * US, Stop::Blocked);
        assert_eq!(host.policy.priority(ClientId::new(MIXED)), expected, "after {before} others");
        assert_eq!(host.counter("ports_missed"), before / 16);
    }
}

#[test]
fn tavs_5_without_correlation_every_event_boosts() {
    for event in [Event::Other, Event::Block(RequestId::new(1)), Event::Packet { port: 1 }] {
        let mut host = Host::behind_the_hog(BOOSTING);
        assert_eq!(host.pending(event), Some(0), "{event:?}");
    }
}

/// Not in the paper: a client that goes on in any case when the driver is done gains nothing by a boost.
#[test]
fn tavs_4_a_client_that_is_next_already_is_not_boosted_if_needless_boosts_are_skipped() {
    for skip_needless_boosts in [false, true] {
        let mut host = Host::behind_the_hog(TavsSettings { skip_needless_boosts, ..BOOSTING });
        host.ran(HOG, MS, Stop::Blocked);
        host.observe(Observation::Driver { client: ClientId::new(DRIVER) });
        let _ = host.policy.wake(DRIVER, host.now);
        host.pick(DRIVER);
        let boosts_before = host.counter("partial_boosts");
        host.pending(Event::Other);
        let boosts = host.counter("partial_boosts") - boosts_before;
        assert_eq!(boosts, u64::from(!skip_needless_boosts));
        assert_eq!(host.counter("needless_boosts"), u64::from(skip_needless_boosts));
    }
    let mut host = Host::behind_the_hog(TavsSettings { skip_needless_boosts: true, ..BOOSTING });
    assert_eq!(host.pending(Event::Other), Some(0), "otherwise the hog would go on");
}

/// Figure 1(b): the task beside an I/O-bound task spends the boost that is meant for that task.
#[test]
fn tavs_4_aggressive_boosting_preempts_for_any_packet_and_is_not_revoked() {
    let mut host = Host::behind_the_hog(TavsSettings {
        aggressive_boosting: true,
        inference: true,
        ..TavsSettings::OFF
    });
    assert_eq!(host.pending(Event::Other), None, "a packet that was sent is no packet that came");
    assert_eq!(host.pending(Event::Packet { port: 9 }), Some(0), "although it is over its credit");
    host.ran(HOG, MS, Stop::Preempted);
    assert_eq!(host.pick(MIXED), (30 * MS, Grant::WakeBoost));
    host.switch(IO);
    assert_eq!(host.switch(CPU), None, "the task that computes goes on with the slice");
}

/// §4.2: "the domain should not be ousted from the current location on its priority list by its own I/O
/// requests". A boost in its own turn, which the driver interrupted, does not oust it either, even if another
/// client has waited for longer and was without credit until now.
#[test]
fn tavs_6_a_client_that_is_boosted_in_its_own_turn_goes_on_with_it_afterwards() {
    let mut host = Host::with(TavsSettings { keep_on_run_queue: true, ..BOOSTING });
    let _ = host.observe(Observation::Driver { client: ClientId::new(DRIVER) });
    host.account();
    let _ = host.policy.wake(HOG, host.now);
    host.pick(HOG);
    let _ = host.policy.tick(0, host.now);
    host.ran(HOG, 40 * MS, Stop::Expired);
    host.account();
    host.account();
    // They take turns; the hog's place in the queue becomes the older one.
    let mut last = HOG;
    for turn in 0.. {
        let client = host.policy.pick(0, host.now).expect("both are ready").client;
        host.ran(client, 30 * MS, Stop::Expired);
        if (std::mem::replace(&mut last, client), client) == (HOG, MIXED) && turn > 2 {
            break;
        }
        assert!(turn < 20, "they take turns");
    }
    host.policy.set_share(MIXED, Share::new(9).expect("more than none"), host.now);
    (0..2).for_each(|_| host.account());
    assert_eq!(
        [HOG, MIXED].map(|client| host.policy.priority(ClientId::new(client))),
        [Priority::Over, Priority::Under]
    );
    host.pick(MIXED);
    (0..12).for_each(|_| host.account());
    assert_eq!([HOG, MIXED].map(|client| host.policy.priority(ClientId::new(client))), [Priority::Under; 2]);

    assert_eq!(host.policy.wake(DRIVER, host.now), Some(0));
    host.ran(MIXED, MS, Stop::Preempted);
    host.pick(DRIVER);
    let _ = host.pending(Event::Other);
    host.ran(DRIVER, 10 * US, Stop::Blocked);
    assert_eq!(host.pick(MIXED).1, Grant::PartialBoost);
    host.switch(IO);
    assert_eq!(host.switch(CPU), Some(0));
    host.ran(MIXED, 100 * US, Stop::Preempted);
    assert_eq!(host.pick(MIXED), (29 * MS, Grant::Share), "the rest of its slice");
}
