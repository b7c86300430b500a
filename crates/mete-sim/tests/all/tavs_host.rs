//! The paper's host (TAVS paper, §5): a driver domain, a domain that echoes and computes, and five domains
//! that compute, under the credit scheduler with and without the parts of TAVS.

use std::sync::Arc;

use mete_policy::{
    ClientId, Credit, CreditSettings, DomainIndex, Nanoseconds, Permille, Policy, Setup, Share, TaskId,
    TavsSettings,
};
use mete_sim::random::{Distribution, LONGEST_NS, Stream};
use mete_sim::scene::guest::{Guest, Kernel, KernelCosts, Priority};
use mete_sim::scene::{Disk, DriverCosts, Io, Network, Op, Program, Remote};
use mete_sim::{Hardware, Host, Note, Recorder, Scenario, Scene, report};

const US: Nanoseconds = Nanoseconds::new(1_000);
const MS: Nanoseconds = Nanoseconds::new(1_000_000);
const S: Nanoseconds = Nanoseconds::from_secs(1);

const DRIVER: ClientId = ClientId::new(0);
const MIXED: ClientId = ClientId::new(1);
const HOG: ClientId = ClientId::new(2);
/// The mixed guest's tasks: the I/O-bound one, and the one that computes.
const IO: u16 = 0;
const CPU: u16 = 1;
const PORT: u16 = 7;

#[derive(Default)]
struct Seen {
    responses_ns: Vec<Nanoseconds>,
    pending_ns: Vec<Nanoseconds>,
    done: u64,
}

impl Recorder for Seen {
    fn noted(&mut self, note: Note, _now_ns: Nanoseconds) {
        match note {
            Note::Response { took_ns, .. } => self.responses_ns.push(took_ns),
            Note::TaskWoke { client: MIXED, task: IO, pending_ns } => self.pending_ns.push(pending_ns),
            Note::Done { client: MIXED, task: IO } => self.done += 1,
            _ => {}
        }
    }
}

fn program(ops: &[Op]) -> Arc<Program> {
    let mut program = Program::new(None);
    ops.iter().for_each(|op| program.push(op.clone()));
    Arc::new(program)
}

fn hog() -> Arc<Program> {
    program(&[Op::Compute(Distribution::Fixed((10 * MS).get()))])
}

fn guest(tasks: &[Arc<Program>], name: &str) -> Guest {
    let mut guest = Guest::new(
        1,
        Kernel::Priority(Priority::new(100 * MS)),
        KernelCosts { switch_ns: 2 * US, interrupt_ns: 5 * US, ..KernelCosts::default() },
    );
    for (number, task) in tasks.iter().enumerate() {
        guest.add_task(Arc::clone(task), 0, Stream::new(1, &format!("{name} {number}")));
    }
    guest
}

/// 100 Mbit/s, 0.1 ms to the other side, and a disk with 7200 turns a minute.
fn io() -> Io {
    let network =
        Network { delay_ns: 100 * US, bytes_per_s: 12_500_000, header_bytes: 78, segment_bytes: 1460 };
    let disk = Disk { seek: Distribution::Uniform((4 * MS).get(), (12 * MS).get()), bytes_per_s: 60_000_000 };
    Io::new(vec![disk], network, 1)
}

type PaperHost = Host<Credit, Scene, Seen>;

fn host(settings: CreditSettings, remote: Option<Remote>, mixed: &[Arc<Program>], hogs: u32) -> PaperHost {
    let mut io = io();
    if let Some(remote) = remote {
        io.add_remote(remote);
    }
    let mut scene = Scene::new(io, 0);
    scene.add_driver(DriverCosts::default());
    scene.add_guest(guest(mixed, "mixed"));
    for number in 0..hogs {
        scene.add_guest(guest(&[hog()], &format!("hog {number}")));
    }
    let clients = hogs + 2;
    let setup = Setup { domains: clients as u16 + 1, ..Setup::for_clients(clients) };
    let hardware = Hardware { switch_ns: 5 * US, ..Hardware::default() };
    let mut policy = Credit::new(&setup, settings);
    let weight = Share::new(256).expect("in range");
    for client in 0..clients {
        policy.add_domain(DomainIndex::new(client as u16 + 1), DomainIndex::new(0), weight);
    }
    let mut host = Host::new(hardware, policy, scene, Seen::default());
    for client in 0..clients {
        host.add(ClientId::new(client), DomainIndex::new(client as u16 + 1), Share::ONE, Nanoseconds::ZERO);
    }
    host.prepare(|scene, context| scene.start(context));
    host
}

/// Figure 10: 40 bytes, and a think time of 100 to 1000 ms.
fn echo_client() -> Remote {
    let (bytes, think) =
        (Distribution::Fixed(40), Distribution::Uniform((100 * MS).get(), (1000 * MS).get()));
    Remote::Asks { to: MIXED, port: PORT, bytes, think, acknowledge_ns: None }
}

fn echo_server() -> Arc<Program> {
    let compute = Op::Compute(Distribution::Fixed((100 * US).get()));
    program(&[Op::Receive { port: PORT }, compute, Op::Reply { bytes: Distribution::Fixed(40) }])
}

/// As iperf: a stream as long as the run, with as much under way as TCP allows without window scaling, 64
/// KiB.
fn endless_stream() -> Remote {
    Remote::Sends { to: MIXED, port: PORT, bytes: LONGEST_NS.get(), window: 44, patience_ns: 200 * MS }
}

fn stream_reader() -> Arc<Program> {
    program(&[Op::Receive { port: PORT }, Op::Compute(Distribution::Fixed((5 * US).get())), Op::Done])
}

/// Figure 10 leaves out the driver's inheritance, and keeps a preempted domain in its place, both for the
/// baseline and for TAVS.
fn figure_10(tavs: TavsSettings) -> CreditSettings {
    CreditSettings { tavs: TavsSettings { keep_on_run_queue: true, ..tavs }, ..CreditSettings::BASELINE }
}

fn counter(host: &PaperHost, wanted: &str) -> u64 {
    let mut found = 0;
    host.policy().counters(&mut |name, value| found += if name == wanted { value } else { 0 });
    found
}

fn mean(values: &[Nanoseconds]) -> Nanoseconds {
    values.iter().copied().sum::<Nanoseconds>() / (values.len() as u64).max(1)
}

#[test]
fn tavs_8_figure_10_the_baselines_latency_grows_to_150_ms_and_tavs_is_near_zero_after_inferring() {
    let latencies = |tavs| {
        let mut host = host(figure_10(tavs), Some(echo_client()), &[echo_server(), hog()], 5);
        host.run_until(10 * S).expect("time goes on");
        let inferring = host.recorder().pending_ns.len();
        host.run_until(120 * S).expect("time goes on");
        let mut pending_ns = host.recorder().pending_ns[inferring..].to_vec();
        pending_ns.sort();
        assert!(pending_ns.len() > 150, "a question each 0.6 s: {}", pending_ns.len());
        (pending_ns, host)
    };
    let (baseline_ns, _) = latencies(TavsSettings::OFF);
    // A turn of each of the five is 150 ms; a domain that has earned credit meanwhile may have another.
    let largest_ns = baseline_ns[baseline_ns.len() - 1];
    assert!((120 * MS..=180 * MS).contains(&largest_ns), "{largest_ns}");
    assert!((50 * MS..=90 * MS).contains(&mean(&baseline_ns)), "{}", mean(&baseline_ns));

    let (tavs_ns, host) = latencies(TavsSettings::TASK_AWARE);
    assert!(tavs_ns[tavs_ns.len() * 99 / 100] < MS, "{tavs_ns:?}");
    assert!(
        host.policy().belief(MIXED, TaskId::new(IO)) > Some(20)
            && host.policy().belief(MIXED, TaskId::new(CPU)) <= Some(20)
    );
}

#[test]
fn tavs_8_figure_10_boosting_takes_nothing_from_the_other_domains() {
    for tavs in [TavsSettings::OFF, TavsSettings::TASK_AWARE] {
        let mut host = host(figure_10(tavs), Some(echo_client()), &[echo_server(), hog()], 5);
        host.run_until(60 * S).expect("time goes on");
        for client in (1..7).map(ClientId::new) {
            let ran_ns = host.ran_ns(client);
            assert!(ran_ns.abs_diff(10 * S) <= S / 10, "{client}: {ran_ns} of a sixth, 10 s");
        }
    }
}

/// Figure 18: a task whose runs are longer than 0.1 ms and shorter than 0.5 ms.
#[test]
fn tavs_3_figure_18_a_task_is_told_from_a_hog_once_the_threshold_fits_and_within_seconds() {
    let server = program(&[
        Op::Receive { port: PORT },
        Op::Compute(Distribution::Fixed((300 * US).get())),
        Op::Reply { bytes: Distribution::Fixed(40) },
    ]);
    let mut host = host(figure_10(TavsSettings::TASK_AWARE), Some(echo_client()), &[server, hog()], 5);
    let domain = DomainIndex::at(MIXED.index() + 1);
    host.policy_mut().set_io_threshold(domain, 100 * US);
    host.run_until(20 * S).expect("time goes on");
    assert!(host.policy().belief(MIXED, TaskId::new(IO)) <= Some(0), "at 0.1 ms it looks like any other");
    host.policy_mut().set_io_threshold(domain, 500 * US);
    host.run_until(50 * S).expect("time goes on");
    assert!(
        host.policy().belief(MIXED, TaskId::new(IO)) > Some(20)
            && host.policy().belief(MIXED, TaskId::new(CPU)) <= Some(0)
    );
}

/// Table 1: three domains that answer and compute, three that answer, three that compute.
#[test]
fn tavs_8_table_1_mixed_domains_answer_as_fast_as_those_that_only_answer() {
    let scenario = Scenario::load("tavs-mixed", &["duration_ms=60000".parse().expect("key=value")])
        .expect("it is right");
    let mean_ms = |policy, prefix: &str| {
        let run = report::run(&scenario, policy, 1, ()).expect("it is in the catalog");
        let (report, ()) = run.expect("time goes on");
        let clients = report.clients.iter().filter(|client| client.name.starts_with(prefix));
        let means = clients.filter_map(|client| client.response.as_ref()?.mean_ns()).collect::<Vec<_>>();
        assert_eq!(means.len(), 3);
        means.iter().sum::<f64>() / 3e6
    };
    let (baseline, tavs) = (mean_ms("credit", "mixed"), mean_ms("credit-tavs", "mixed"));
    assert!(baseline > 50.0 && tavs < 6.0, "{baseline} ms against {tavs} ms; the paper has 73 and 5.5");
    assert!(mean_ms("credit", "echo") < 6.0, "who only answers is boosted when it wakes");
}

/// A stream from outside to one domain, with this number of hogs beside it. The result is the Mbit/s that its
/// task takes.
fn stream_mbit_per_s(tavs: TavsSettings, hogs: u32) -> u64 {
    let settings = CreditSettings { tavs, ..CreditSettings::BASELINE };
    let mut host = host(settings, Some(endless_stream()), &[stream_reader()], hogs);
    host.run_until(20 * S).expect("time goes on");
    host.recorder().done * 1460 * 8 / 20 / 1_000_000
}

const INHERITANCE: TavsSettings = TavsSettings { priority_inheritance: true, ..TavsSettings::OFF };

#[test]
fn tavs_6_figure_14_a_stream_starves_beside_many_hogs_unless_the_driver_inherits() {
    let (alone, crowded) = (stream_mbit_per_s(TavsSettings::OFF, 0), stream_mbit_per_s(TavsSettings::OFF, 5));
    assert_eq!(alone, 94, "what 100 Mbit/s of Ethernet carries of TCP's bytes");
    assert!(crowded * 5 < alone, "{crowded}");
    let inherited = stream_mbit_per_s(INHERITANCE, 5);
    assert!(inherited > 3 * crowded, "{inherited} and {crowded}");
}

/// Figures 8, 9 and 15: the driver preempts the domain that it works for.
#[test]
fn tavs_6_figure_15_a_domain_with_a_stream_gets_its_share_if_it_keeps_its_place() {
    let shares = |keep_on_run_queue| {
        let tavs = TavsSettings { keep_on_run_queue, ..TavsSettings::OFF };
        let settings = CreditSettings { tavs, ..CreditSettings::BASELINE };
        let mut host = host(settings, Some(endless_stream()), &[stream_reader(), hog()], 5);
        host.run_until(30 * S).expect("time goes on");
        (host.ran_ns(MIXED), host.ran_ns(HOG))
    };
    let (mixed_ns, hog_ns) = shares(false);
    assert!(mixed_ns < hog_ns * 9 / 10, "{mixed_ns} against {hog_ns}");
    let (mixed_ns, hog_ns) = shares(true);
    assert!(mixed_ns.abs_diff(hog_ns) < hog_ns / 20, "{mixed_ns} against {hog_ns}");
}

#[test]
fn tavs_7_all_of_the_drivers_time_is_charged_to_the_domain_that_it_worked_for() {
    let settings = CreditSettings { tavs: TavsSettings::ALL, ..CreditSettings::BASELINE };
    let mut host = host(settings, Some(endless_stream()), &[stream_reader()], 2);
    host.run_until(10 * S).expect("time goes on");
    let (ran_ns, charged_ns) = (host.ran_ns(DRIVER), counter(&host, "driver_charged_ns"));
    assert!(
        ran_ns > S / 10 && ran_ns.abs_diff(Nanoseconds::new(charged_ns)) <= 10 * US,
        "{ran_ns} and {charged_ns}"
    );
}

#[test]
fn tavs_8_the_same_host_runs_the_same_way_again() {
    let run = || {
        let mut host = host(CreditSettings::TAVS, Some(echo_client()), &[echo_server(), hog()], 5);
        host.run_until(20 * S).expect("time goes on");
        (host.decisions(), host.into_recorder().responses_ns)
    };
    assert_eq!(run(), run());
}

/// Figure 11: the more boosting is allowed, the more the stream carries, and the shares stay fair.
#[test]
fn tavs_4_figure_11_a_larger_pbratio_lets_more_through_and_takes_no_share() {
    let run = |boost_ratio| {
        let tavs = TavsSettings { boost_ratio, ..TavsSettings::TASK_AWARE };
        let mut host = host(figure_10(tavs), Some(endless_stream()), &[stream_reader(), hog()], 5);
        host.run_until(30 * S).expect("time goes on");
        let (mixed_ns, hog_ns) = (host.ran_ns(MIXED), host.ran_ns(HOG));
        // Without a bound on boosting it gets slightly more than the others.
        assert!(mixed_ns.abs_diff(hog_ns) < hog_ns / 5, "at {boost_ratio}: {mixed_ns} and {hog_ns}");
        (host.recorder().done, host.ran_ns(DRIVER))
    };
    let (little, more, all) = (run(Permille::new(125)), run(Permille::new(500)), run(Permille::new(1000)));
    assert!(little < more && more < all, "{little:?}, {more:?}, {all:?}");
    assert!(all.0 > 2 * little.0, "{little:?}, {all:?}");
}

/// Every policy keeps the interface's contract with drivers and several processors.
#[test]
fn new_1_every_policy_serves_the_papers_hosts_on_one_processor_and_on_three() {
    for shipped in mete_sim::scenario::SHIPPED.iter().filter(|shipped| shipped.name.starts_with("tavs-")) {
        for processors in [1, 3] {
            let processors = format!("host.processors={processors}");
            let settings = ["warm_up_ms=0", "duration_ms=3000", processors.as_str()];
            let settings = settings.map(|text| text.parse().expect("key=value"));
            let scenario = Scenario::load(shipped.name, &settings).expect("it is right");
            for entry in mete_policy::CATALOG {
                let run = report::run(&scenario, entry.name, 1, ()).expect("it is in the catalog");
                let (report, ()) = run.expect("time goes on");
                let idle = report.clients.iter().find(|client| client.name != "driver" && client.done == 0);
                let idle = idle.map(|client| client.name.as_str());
                assert_eq!(idle, None, "{} under {} on {processors}", shipped.name, entry.name);
            }
        }
    }
}
