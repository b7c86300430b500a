//! A recorded schedule run again under other policies (NEW-1).

use mete_policy::{CATALOG, Setup};
use mete_sim::replay::{Recording, Replay};
use mete_sim::{Hardware, Host};

fn recording() -> Recording {
    Recording::read(include_str!("data/perf-sched-ping-pong.txt").as_bytes()).unwrap()
}

fn setup(recording: &Recording, processors: u16) -> Setup {
    let clients = recording.scripts.len() as u32;
    Setup { processors, quantum_ns: 1_000_000, ..Setup::for_clients(clients) }
}

#[test]
fn new_1_every_policy_does_exactly_the_recorded_work() {
    let recording = recording();
    for entry in CATALOG {
        for processors in [1, 2, 4] {
            let policy = (entry.make)(&setup(&recording, processors));
            let hardware = Hardware { processors, ..Hardware::default() };
            let mut host = Replay::host(&recording, hardware, policy, ());
            host.run_until(100 * recording.duration_ns).unwrap();
            for (client, script) in (0..).zip(&recording.scripts) {
                let name = (entry.name, processors, &script.name);
                assert!(host.model().is_done(client), "{name:?}");
                assert_eq!(host.ran_ns(client), script.service_ns(), "{name:?}");
            }
        }
    }
}

#[test]
fn new_1_eight_processors_are_done_no_later_than_one() {
    let recording = recording();
    let end_on = |processors: u16| {
        let policy = (CATALOG[0].make)(&setup(&recording, processors));
        let hardware = Hardware { processors, ..Hardware::default() };
        let mut host = Replay::host(&recording, hardware, policy, ());
        while !all_done(&host, &recording) {
            host.run_until(host.now_ns() + 1_000_000).unwrap();
        }
        host.now_ns()
    };
    assert!(end_on(8) <= end_on(1), "{} and {}", end_on(8), end_on(1));
}

fn all_done<P: mete_policy::Policy>(host: &Host<P, Replay<'_>>, recording: &Recording) -> bool {
    (0..recording.scripts.len() as u32).all(|client| host.model().is_done(client))
}
