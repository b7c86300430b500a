//! Guests with several virtual processors: where tasks run, how the share is divided, what preempted lock
//! holders cost.

use mete_policy::{CATALOG, ClientId, Event, Grant, Nanoseconds, Observation, Policy, ProcessorId, Stop};
use mete_sim::scenario::Scenario;
use mete_sim::{Host, Note, Recorder, Report, Scene, report};

const MS: Nanoseconds = Nanoseconds::new(1_000_000);
const KERNELS: [&str; 2] =
    ["{ priority = { slice_ms = 10 } }", "{ fair = { latency_ms = 20, least_ms = 4 } }"];

fn scenario(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn failure(text: &str) -> String {
    Scenario::parse("x.toml", text, &[]).expect_err("it is wrong").to_string()
}

/// A host with this number of processors, and what runs on it.
fn head(duration_ms: u64, processors: u32, rest: &str) -> String {
    format!("about = \"\"\nduration_ms = {duration_ms}\nhost = {{ processors = {processors} }}\n{rest}")
}

/// A guest with these tasks, each as `(name, rest of its table)`.
fn guest(name: &str, vcpus: u32, kernel: &str, tasks: &[(&str, &str)]) -> String {
    let tasks = tasks
        .iter()
        .map(|(name, rest)| format!("[[guest.task]]\nname = \"{name}\"\n{rest}\n"))
        .collect::<String>();
    format!("[[guest]]\nname = \"{name}\"\nvcpus = {vcpus}\nscheduler = {kernel}\n{tasks}")
}

const HOG: (&str, &str) = ("hog", "program = [{ compute_ms = 7 }, \"done\"]");
const TWO_HOGS: (&str, &str) = ("hog", "count = 2\nprogram = [{ compute_ms = 7 }, \"done\"]");

fn run(text: &str, policy: &str) -> Report {
    let run = report::run(&scenario(text), policy, 1, ()).expect("it is in the catalog");
    run.expect("time goes on").0
}

/// Everything that was observed and noted, with its time.
#[derive(Default)]
struct Seen {
    observed: Vec<(Observation, Nanoseconds)>,
    woke: Vec<(ClientId, u16, Nanoseconds)>,
    exited: Vec<(ClientId, Nanoseconds)>,
}

impl Recorder for Seen {
    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        self.observed.push((observation, now_ns));
    }

    fn exited(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.exited.push((client, now_ns));
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        if let Note::TaskWoke { client, task, .. } = note {
            self.woke.push((client, task, now_ns));
        }
    }
}

fn host(text: &str, policy: &str) -> Host<Box<dyn Policy + Send>, Scene, Seen> {
    let scenario = scenario(text);
    let policy = scenario.policy(policy, 1).expect("it is in the catalog");
    scenario.host(policy, Seen::default(), 1)
}

/// The processor time of the first guest's tasks.
fn ran_ns(host: &Host<Box<dyn Policy + Send>, Scene, Seen>, tasks: u16) -> Vec<Nanoseconds> {
    let guest = host.model().guest(ClientId::new(0)).expect("the first client is a guest");
    (0..tasks).map(|task| guest.ran_ns(task)).collect()
}

/// Tasks that compute, sleep, and wait for locks of both kinds, so that they wake and move.
const MIXED: [(&str, &str); 4] = [
    ("hog", "times = 90\nprogram = [{ compute_us = { exponential = 900 } }, \"yield\"]"),
    (
        "sleeper",
        "times = 40\ncount = 3\nprogram = [{ sleep_us = { exponential = 3000 } }, { compute_us = { exponential = 500 } }]",
    ),
    (
        "locker",
        "times = 90\ncount = 2\nprogram = [{ lock = \"m\" }, { compute_us = 300 }, { unlock = \"m\" }, { compute_us = { exponential = 200 } }]",
    ),
    (
        "spinner",
        "times = 90\ncount = 2\nprogram = [{ spin_lock = \"s\" }, { compute_us = 50 }, { unlock = \"s\" }, { sleep_us = { exponential = 400 } }]",
    ),
];

#[test]
fn the_service_of_virtual_processors_is_that_of_their_tasks_under_every_policy() {
    for kernel in KERNELS {
        let text = head(4_000, 2, &(guest("a", 3, kernel, &MIXED) + &guest("b", 2, kernel, &[TWO_HOGS])));
        for entry in CATALOG {
            let mut host = host(&text, entry.name);
            host.run_until(4_000 * MS).expect("time goes on");
            let over = host.recorder().exited.len();
            assert_eq!(over, 3, "{} with {kernel}: the first guest is over", entry.name);
            let of_tasks: Nanoseconds = ran_ns(&host, 8).into_iter().sum();
            let of_vcpus: Nanoseconds = (0..3).map(|vcpu| host.ran_ns(ClientId::new(vcpu))).sum();
            assert_eq!(of_tasks, of_vcpus, "{} with {kernel}", entry.name);
            let all_ns: Nanoseconds = host.times().map(|times| times.total_ns()).sum();
            assert_eq!(all_ns, 2 * 4_000 * MS);
            let run_ns: Nanoseconds = host.times().map(|times| times.run_ns).sum();
            assert_eq!(
                run_ns,
                (0..5).map(|client| host.ran_ns(ClientId::new(client))).sum(),
                "{}",
                entry.name
            );
        }
    }
}

/// Where each task of the first guest is: on a virtual processor that runs, or on one that the host has
/// preempted.
#[derive(Default)]
struct Whereabouts {
    now_ns: Nanoseconds,
    is_dispatched: [bool; VCPUS],
    /// The task whose address space is loaded.
    loaded: [Option<u16>; VCPUS],
    /// It has run that task since it was last idle.
    is_in_use: [bool; VCPUS],
    /// How often a task was on another virtual processor than before.
    moves: usize,
    last: [usize; 8],
}

const VCPUS: usize = 3;

impl Whereabouts {
    fn pass(&mut self, now_ns: Nanoseconds) {
        if std::mem::replace(&mut self.now_ns, now_ns) == now_ns {
            return;
        }
        for at in 0..VCPUS {
            self.is_in_use[at] |= self.is_dispatched[at];
            let task = self.loaded[at].filter(|_| self.is_in_use[at]);
            let others = (0..at).filter(|other| self.is_in_use[*other]);
            let is_elsewhere = others.filter(|other| task.is_some() && self.loaded[*other] == task).count();
            assert_eq!(is_elsewhere, 0, "{task:?} at {now_ns}");
            if let Some(task) = task.map(usize::from) {
                self.moves += usize::from(std::mem::replace(&mut self.last[task], at) != at);
            }
        }
    }
}

impl Recorder for Whereabouts {
    fn dispatched(&mut self, _: ProcessorId, client: ClientId, _: Grant, now_ns: Nanoseconds) {
        self.pass(now_ns);
        if let Some(is_dispatched) = self.is_dispatched.get_mut(client.index()) {
            *is_dispatched = true;
        }
    }

    fn stopped(&mut self, _: ProcessorId, client: ClientId, _: Nanoseconds, stop: Stop, now_ns: Nanoseconds) {
        self.pass(now_ns);
        if let Some(is_dispatched) = self.is_dispatched.get_mut(client.index()) {
            *is_dispatched = false;
            self.is_in_use[client.index()] &= stop != Stop::Blocked;
        }
    }

    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        self.pass(now_ns);
        if let Observation::TaskSwitch { client, task } = observation
            && let Some(loaded) = self.loaded.get_mut(client.index())
        {
            *loaded = Some(task.get());
        }
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        self.pass(now_ns);
        // A task that wakes was on no virtual processor, even if the one where it ran has not been told
        // since.
        if let Note::TaskWoke { client, task, .. } = note
            && client.get() < 3
        {
            (0..VCPUS).filter(|at| self.loaded[*at] == Some(task)).for_each(|at| self.is_in_use[at] = false);
        }
    }
}

#[test]
fn no_task_is_on_two_virtual_processors_at_once() {
    for kernel in KERNELS {
        for processors in [2, 3] {
            let guests = guest("a", 3, kernel, &MIXED) + &guest("b", 1, kernel, &[HOG]);
            let scenario = scenario(&head(2_000, processors, &guests));
            for entry in CATALOG {
                let run = report::run(&scenario, entry.name, 1, Whereabouts::default());
                let (_, found) = run.expect("it is in the catalog").expect("time goes on");
                assert!(found.moves > 5, "{} with {kernel}: {} moves", entry.name, found.moves);
            }
        }
    }
}

#[test]
fn a_guest_alone_leaves_a_processor_idle_only_when_fewer_tasks_are_left_than_it_has() {
    // Two of every three tasks begin on virtual processors that are done sooner than the others.
    let lengths = [90, 10, 20, 80, 30, 5, 70, 1, 2];
    let tasks: Vec<_> = lengths
        .iter()
        .enumerate()
        .map(|(number, ms)| (format!("t{number}"), format!("times = 1\nprogram = [{{ compute_ms = {ms} }}]")))
        .collect();
    let tasks: Vec<_> = tasks.iter().map(|(name, rest)| (name.as_str(), rest.as_str())).collect();
    for kernel in KERNELS {
        let text = head(400, 3, &guest("g", 3, kernel, &tasks));
        let mut host = host(&text, "rr");
        host.run_until(400 * MS).expect("time goes on");
        let exits = host
            .recorder()
            .observed
            .iter()
            .filter_map(|(what, now_ns)| matches!(what, Observation::TaskExit { .. }).then_some(*now_ns));
        let exits: Vec<_> = exits.collect();
        assert_eq!(exits.len(), lengths.len());
        let [.., third, second, last] = exits[..] else { panic!("nine exits") };
        let busy_ns = 3 * third + 2 * (second - third) + (last - second);
        assert_eq!(busy_ns, lengths.iter().sum::<u64>() * MS, "no processor idled before with {kernel}");
        let all: Vec<_> = host.recorder().exited.iter().map(|(client, _)| *client).collect();
        assert_eq!(all.len(), 3, "the guest is over on all its virtual processors: {all:?}");
        assert!(host.recorder().exited.iter().all(|(_, now_ns)| *now_ns == last));
    }
}

#[test]
fn a_task_that_wakes_runs_at_once_if_a_virtual_processor_is_idle() {
    // The sleeper begins on the first virtual processor, where the hog is; the second is soon idle.
    let tasks = [
        HOG,
        ("once", "times = 1\nprogram = [{ compute_ms = 1 }]"),
        ("sleeper", "program = [{ sleep_ms = 9 }, { compute_ms = 1 }, \"done\"]"),
    ];
    for kernel in KERNELS {
        let mut host = host(&head(1_000, 2, &guest("g", 2, kernel, &tasks)), "rr");
        host.run_until(1_000 * MS).expect("time goes on");
        let ran = ran_ns(&host, 3);
        // A program is told of its progress at the end of its step. On one virtual processor the hog would
        // have 100 ms less.
        assert!(ran[0] >= 993 * MS, "with {kernel}, the hog never waits: {ran:?}");
        assert!(ran[2] >= 98 * MS, "{ran:?} with {kernel}");
    }
}

#[test]
fn a_packet_comes_to_the_first_virtual_processor_which_interrupts_the_one_where_its_task_runs() {
    let server =
        "program = [{ receive = { port = 7 } }, { compute_us = 100 }, { reply = { bytes = 1 } }, \"done\"]";
    let rest = "[network]\ndelay_us = 100\n[[remote]]\nname = \"r\"\n\
        asks = { to = \"g\", port = 7, bytes = 1, think_ms = 5 }\n";
    let text = head(100, 2, &(rest.to_owned() + &guest("g", 2, KERNELS[0], &[HOG, ("server", server)])));
    let mut host = host(&text, "rr");
    host.run_until(100 * MS).expect("time goes on");
    let seen = host.recorder();
    let packets = seen.observed.iter().filter_map(|(what, now_ns)| match what {
        Observation::EventPending { client, event: Event::Packet { port: 7 } } => Some((*client, *now_ns)),
        _ => None,
    });
    let packets: Vec<_> = packets.collect();
    assert!(
        packets.len() > 10 && packets.iter().all(|(client, _)| *client == ClientId::new(0)),
        "{packets:?}"
    );
    for &(_, came_ns) in &packets {
        assert!(seen.woke.contains(&(ClientId::new(0), 1, came_ns)), "the first one makes it ready");
        let interrupt = Observation::EventPending { client: ClientId::new(1), event: Event::Other };
        assert!(seen.observed.contains(&(interrupt, came_ns)), "and tells the second one");
    }
    // Its virtual processor keeps its address space when it idles, so only one switch is seen.
    let switches = seen
        .observed
        .iter()
        .filter(|(what, _)| matches!(what, Observation::TaskSwitch { client, .. } if client.get() == 1));
    assert_eq!(switches.count(), 1);
}

#[test]
fn busy_virtual_processors_share_what_there_is_to_do() {
    // Three of four begin on the first virtual processor, because every second task soon exits.
    let tasks = [
        ("a", "program = [{ compute_ms = 3 }]"),
        ("once-1", "times = 1\nprogram = [{ compute_ms = 1 }]"),
        ("b", "program = [{ compute_ms = 3 }]"),
        ("once-2", "times = 1\nprogram = [{ compute_ms = 1 }]"),
        ("c", "program = [{ compute_ms = 3 }]"),
        ("d", "program = [{ compute_ms = 3 }]"),
    ];
    for kernel in KERNELS {
        let mut host = host(&head(4_000, 2, &guest("g", 2, kernel, &tasks)), "rr");
        host.run_until(4_000 * MS).expect("time goes on");
        let ran = ran_ns(&host, 6);
        for task in [0, 2, 4, 5] {
            assert!(ran[task].abs_diff(2_000 * MS) <= 100 * MS, "{ran:?} with {kernel}");
        }
    }
}

/// What these clients together had of all processor time.
fn part(report: &Report, clients: std::ops::Range<usize>) -> f64 {
    report.clients[clients].iter().map(|client| client.got).sum()
}

#[test]
fn a_guests_part_goes_by_its_share_and_not_by_its_number_of_virtual_processors() {
    let guests = guest("wide", 3, KERNELS[0], &[("hog", "count = 3\nprogram = [{ compute_ms = 7 }]")])
        + &guest("narrow", 1, KERNELS[0], &[HOG])
        + &guest("double", 2, KERNELS[1], &[TWO_HOGS]).replace("vcpus", "share = 2\nvcpus");
    for entry in CATALOG.iter().filter(|entry| !["rr", "goodness", "affinity"].contains(&entry.name)) {
        let report = run(&head(60_000, 1, &guests), entry.name);
        let parts = [part(&report, 0..3), part(&report, 3..4), part(&report, 4..6)];
        let wanted = [0.25, 0.25, 0.5];
        let wrong = parts.iter().zip(wanted).map(|(part, wanted)| (part - wanted).abs()).fold(0.0, f64::max);
        assert!(wrong < 0.02, "{}: {parts:?}", entry.name);
    }
}

#[test]
fn a_guests_share_may_change_and_its_virtual_processors_parts_change_with_it() {
    let guests = guest("wide", 2, KERNELS[0], &[TWO_HOGS]) + &guest("narrow", 1, KERNELS[0], &[HOG]);
    let change = "[[change]]\nat_ms = 1\nclient = \"wide\"\nshare = 3\n";
    for policy in ["vtrr", "stride", "group-vtrr", "credit"] {
        let report = run(&head(30_000, 1, &format!("{change}{guests}")), policy);
        let part = part(&report, 0..2);
        assert!((part - 0.75).abs() < 0.02, "{policy}: {part}");
    }
}

/// 22 ms of two tasks that hold a lock for 3 of every 4 ms, on two virtual processors.
fn lockers(step: &str, processors: u32) -> Report {
    let program = format!(
        "count = 2\nprogram = [{{ {step} = \"l\" }}, {{ compute_ms = 3 }}, {{ unlock = \"l\" }}, {{ compute_ms = 1 }}, \"done\"]"
    );
    let rest = "[policy]\nquantum_ms = 10\n".to_owned();
    run(&head(22, processors, &(rest + &guest("g", 2, KERNELS[0], &[("t", &program)]))), "rr")
}

fn ran_and_spun(report: &Report) -> Vec<(Nanoseconds, Nanoseconds)> {
    report.clients.iter().map(|client| (client.ran_ns, client.spun_ns)).collect()
}

#[test]
fn a_task_that_spins_for_a_lock_whose_holder_is_preempted_burns_its_whole_slice() {
    // On one processor the first is preempted after 10 ms, 2 ms into its third turn with the lock. The second
    // spins for all of its 10 ms.
    let one = lockers("spin_lock", 1);
    assert_eq!(ran_and_spun(&one), [(12 * MS, Nanoseconds::ZERO), (10 * MS, 10 * MS)]);
    assert_eq!(one.clients[0].done, 2);
    // A task that sleeps for the lock leaves its processor to the holder.
    let asleep = lockers("lock", 1);
    assert!(ran_and_spun(&asleep).iter().all(|(_, spun_ns)| spun_ns.is_zero()));
    assert_eq!(asleep.clients[0].done, 5);
    // With a processor each they take turns: each spins for 2 of 6 ms, and the second spins for the first 3
    // ms, too.
    let two = lockers("spin_lock", 2);
    assert_eq!(ran_and_spun(&two), [(22 * MS, 6 * MS), (22 * MS, 9 * MS)]);
}

#[test]
fn a_guests_kernel_takes_no_processor_from_the_holder_of_a_spin_lock() {
    // One virtual processor: even with slices shorter than the lock is held, no task ever has to spin.
    let program =
        "count = 3\nprogram = [{ spin_lock = \"l\" }, { compute_ms = 3 }, { unlock = \"l\" }, \"done\"]";
    for kernel in ["{ priority = { slice_ms = 1 } }", "{ fair = { latency_ms = 2, least_ms = 1 } }"] {
        let report = run(&head(300, 1, &guest("g", 1, kernel, &[("t", program)])), "rr");
        // Three tasks may have done their work and not reported it yet.
        let (spun_ns, done) = (report.clients[0].spun_ns, report.clients[0].done);
        assert!(spun_ns.is_zero() && (97..=99).contains(&done), "{spun_ns}, {done} with {kernel}");
    }
}

#[test]
fn mistakes_with_virtual_processors_and_spin_locks_are_reported() {
    let text = head(10, 1, &guest("g", 2, KERNELS[0], &[HOG]));
    assert_eq!(failure(&text.replace("vcpus = 2", "vcpus = 0")), "x.toml, line 6: vcpus: 1 to 32, not 0");
    assert_eq!(failure(&text.replace("vcpus = 2", "vcpus = 33")), "x.toml, line 6: vcpus: 1 to 32, not 33");
    let share = failure(&text.replace("vcpus = 2", "vcpus = 2\nshare = 524289"));
    assert!(
        share.contains("share: 1 to 524288, where guests have several virtual processors, not 524289"),
        "{share}"
    );
    let many: String =
        [32, 31, 29, 27, 25].map(|vcpus| guest(&format!("g{vcpus}"), vcpus, KERNELS[0], &[HOG])).concat();
    assert!(failure(&head(10, 1, &many)).contains("vcpus: no share can be divided"));
    let with =
        |steps: &str| failure(&text.replace("{ compute_ms = 7 }", &format!("{{ compute_ms = 7 }}, {steps}")));
    let (take, leave) = ("{ spin_lock = \"l\" }", "{ unlock = \"l\" }");
    for between in ["{ sleep_ms = 1 }", "\"yield\"", "{ spin_lock = \"m\" }, { unlock = \"m\" }"] {
        let wrong = with(&format!("{take}, {between}, {leave}"));
        assert!(wrong.contains("between spin_lock and its unlock"), "{between}: {wrong}");
    }
    assert!(with(&format!("{leave}, {take}")).contains("between spin_lock and its unlock"), "never unlocked");
    let mixed = with(&format!("{take}, {leave}, {{ lock = \"l\" }}, {leave}"));
    assert!(mixed.contains("lock: \"l\" is in a spin_lock, too"), "{mixed}");
}

#[test]
fn the_host_takes_its_time_for_what_it_tracks_from_the_guest() {
    let sleeper = ("t", "program = [{ compute_ms = 1 }, { sleep_ms = 9 }]");
    let text = head(40, 1, &guest("g", 1, KERNELS[0], &[sleeper]));
    let plain = run(&text, "rr");
    let tracked = run(&text.replace("processors = 1", "processors = 1, track_ns = 700"), "rr");
    // The first switch to the task, and a timer before each of three more turns.
    assert_eq!(
        (plain.clients[0].ran_ns, tracked.clients[0].ran_ns),
        (4 * MS, 4 * MS + Nanoseconds::new(4 * 700))
    );
}

#[test]
fn tavs_gains_nothing_for_a_task_that_has_a_virtual_processor_to_itself() {
    let load = |vcpus| {
        let vcpus = format!("guest.mixed.vcpus={vcpus}");
        let settings = [vcpus.as_str(), "duration_ms=30000", "warm_up_ms=5000"];
        let settings = settings.map(|text| text.parse().expect("key=value"));
        Scenario::load("tavs-host", &settings).expect("it is right")
    };
    let mean_ms = |vcpus, policy| {
        let run = report::run(&load(vcpus), policy, 1, ()).expect("it is in the catalog");
        let (report, ()) = run.expect("time goes on");
        let evidence = report.counters.iter().find(|(name, _)| *name == "positive_evidence");
        let mut clients = report.clients.iter().filter(|client| client.name.starts_with("mixed"));
        let response = clients.find_map(|client| client.response.as_ref()).expect("it answers");
        (response.mean_ns().expect("it answers") / 1e6, evidence.map_or(0, |(_, count)| *count))
    };
    // The server shares its virtual processor with a hog: the switches between the two give it away.
    let (shared_ms, evidence) = mean_ms(1, "credit-tavs");
    assert!(shared_ms < 1.0 && evidence > 0, "{shared_ms}, {evidence}");
    // The guest's kernel moves it to the idle virtual processor, where it is followed only by itself. Packets
    // come to the other one, which runs the hog.
    let (own_ms, evidence) = mean_ms(2, "credit-tavs");
    assert_eq!((own_ms, evidence), (mean_ms(2, "credit").0, 0));
    assert!(own_ms > 10.0, "{own_ms}");
}
