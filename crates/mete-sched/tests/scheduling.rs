//! The whole way with real processes: two drivers with probes on a processor each, and a client that talks to
//! one of them (LOG-16).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::process::Command;

use common::{Running, SUBJECT, eventually, skip};
use mete_sched::actuator::Mask;
use serde_json::Value;
use tempfile::TempDir;

/// The program of `test-programs/driver.rs`.
const DRIVER: &str = env!("CARGO_BIN_EXE_mete-sched-driver");

/// A directory for sockets that is removed at the end of the test.
struct SocketDirectory(TempDir);

impl SocketDirectory {
    fn new() -> SocketDirectory {
        SocketDirectory(tempfile::tempdir().unwrap())
    }

    fn socket(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A program whose components are found in this directory only.
    fn start(&self, program: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(program);
        let mut running =
            Running::start(command.args(arguments).env("METE_RUNTIME_DIR", self.0.path().join("run")));
        assert_eq!(running.hear(), "here");
        running
    }

    fn driver(&self, name: &str) -> Running {
        self.start(DRIVER, &[&self.socket(name)])
    }
}

/// Two drivers and a client of the second one.
struct Workload {
    place: SocketDirectory,
    drivers: [Running; 2],
    client: Running,
    processors: [usize; 2],
    own: Mask,
}

impl Workload {
    fn start() -> Option<Workload> {
        let own = Mask::of_thread(std::process::id()).unwrap();
        let [first, second] = own.processors().take(2).collect::<Vec<_>>()[..] else {
            skip("placement needs two processors");
            return None;
        };
        let processors = [first, second];
        let place = SocketDirectory::new();
        let drivers = ["a", "b"].map(|name| place.driver(name));
        for (driver, processor) in drivers.iter().zip(processors) {
            pin(driver, processor);
        }
        let client = place.start(SUBJECT, &["ask", &place.socket("b")]);
        Some(Workload { place, drivers, client, processors, own })
    }

    fn scheduler(&self, kernel: &str) -> Running {
        let [a, b] = self.drivers.each_ref().map(Running::pid);
        let domains =
            [format!("a=pid:{a}"), format!("b=pid:{b}"), format!("client=pid:{}", self.client.pid())];
        let [a, b, client] = domains.each_ref().map(String::as_str);
        self.place.start(SUBJECT, &["schedule", kernel, a, b, client])
    }

    fn is_placed(&self) -> bool {
        Mask::of_thread(self.client.pid()) == Ok(Mask::single(self.processors[1]).unwrap())
    }

    fn is_free(&self) -> bool {
        Mask::of_thread(self.client.pid()) == Ok(self.own)
    }
}

/// Moves all threads of a process to a processor. The thread that waits for the end of the input is there
/// already.
fn pin(process: &Running, processor: usize) {
    for thread in mete_sched::domains::process::threads(process.pid()) {
        Mask::single(processor).unwrap().give_to(thread).unwrap();
    }
}

fn report(scheduler: &mut Running) -> Value {
    scheduler.tell("report");
    serde_json::from_str(&scheduler.hear()).unwrap()
}

fn entry<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap()
}

fn is_read(report: &Value, pid: u32) -> bool {
    let label = format!("mete-sched-driver ({pid})");
    report["sources"].as_array().unwrap().iter().any(|source| *source == *label)
}

fn has_kernel() -> bool {
    common::kernel().is_some()
}

#[test]
fn log_16_a_client_is_moved_to_its_driver_s_processor_by_kernel_and_driver_logs() {
    if !has_kernel() {
        return;
    }
    let Some(workload) = Workload::start() else { return };
    let mut scheduler = workload.scheduler("kernel");
    eventually("the client is placed", || workload.is_placed());
    let mut seen = Value::Null;
    eventually("everything was logged", || {
        seen = report(&mut scheduler);
        let client = entry(&seen["domains"], "client");
        let dealings = ["sent", "received"].map(|table| client[table].as_array().unwrap().len());
        let has_run = client["service_ns"][workload.processors[1]].as_u64() > Some(0);
        has_run
            && dealings.iter().all(|&count| count > 0)
            && seen["working_sets"].as_array().unwrap().len() == 1
    });
    let (client, driver) = (entry(&seen["domains"], "client"), entry(&seen["domains"], "b"));
    assert_eq!((&client["role"], &driver["role"]), (&"client".into(), &"driver".into()));
    assert_eq!(client["placed"], workload.processors[1]);
    assert!(driver["events"][0]["sum"].as_u64() > Some(0));
    let transactions = seen["transactions"].as_array().unwrap();
    let of_client: Vec<_> = transactions.iter().filter(|entry| entry["domain"] == "client").collect();
    assert_eq!(of_client.len(), 1, "{transactions:?}");
    assert_eq!(of_client[0]["correspondent"], "b");
    assert_eq!(seen["working_sets"], serde_json::json!([["b", "client"]]));
    let used = seen["processors"].as_array().unwrap();
    assert!(used.iter().all(|processor| !processor["queue_history"].as_array().unwrap().is_empty()));
    assert!(workload.is_placed());
    let last = scheduler.end();
    assert!(last.contains("left_alone: 0, failed: 0"), "{last}");
    assert!(workload.is_free());
}

#[test]
fn log_16_without_the_kernel_component_the_drivers_own_logs_do() {
    let Some(workload) = Workload::start() else { return };
    let mut scheduler = workload.scheduler("alone");
    eventually("the client is placed", || workload.is_placed());
    let mut seen = Value::Null;
    eventually("both drivers are read", || {
        seen = report(&mut scheduler);
        workload.drivers.iter().all(|driver| is_read(&seen, driver.pid()))
    });
    assert!(seen["transactions"][0]["count"].as_u64() > Some(0));
    assert_eq!(entry(&seen["domains"], "b")["processor"], workload.processors[1]);
    scheduler.end();
    assert!(workload.is_free());
}

#[test]
fn log_16_components_may_come_while_the_scheduler_runs_and_go() {
    let Some(workload) = Workload::start() else { return };
    let mut scheduler = workload.scheduler("alone");
    let third = workload.place.driver("c");
    let pid = third.pid();
    eventually("the third driver is read", || is_read(&report(&mut scheduler), pid));
    third.kill();
    eventually("the third driver is let go", || !is_read(&report(&mut scheduler), pid));
    eventually("the others stay", || is_read(&report(&mut scheduler), workload.drivers[0].pid()));
    scheduler.end();
}

#[test]
fn log_16_a_component_that_is_stopped_delays_nothing_and_is_read_once_it_goes_on() {
    let Some(workload) = Workload::start() else { return };
    workload.drivers[0].signal(libc::SIGSTOP);
    let mut scheduler = workload.scheduler("alone");
    eventually("the client is placed", || workload.is_placed());
    assert!(!is_read(&report(&mut scheduler), workload.drivers[0].pid()));
    workload.drivers[0].signal(libc::SIGCONT);
    eventually("it is read", || is_read(&report(&mut scheduler), workload.drivers[0].pid()));
    scheduler.end();
}

#[test]
fn log_16_after_kill_9_the_mask_is_put_back_and_a_second_scheduler_takes_over() {
    let Some(workload) = Workload::start() else { return };
    for _ in 0..3 {
        let mut scheduler = workload.scheduler("alone");
        eventually("the client is placed", || workload.is_placed());
        assert!(report(&mut scheduler)["transactions"][0]["count"].as_u64() > Some(0));
        scheduler.kill();
        eventually("the mask is put back", || workload.is_free());
    }
}

#[test]
fn log_6_domains_without_members_end_the_scheduler_with_a_sentence() {
    let place = SocketDirectory::new();
    let output = Command::new(SUBJECT)
        .args(["schedule", "alone", "none=comm:no-such-prog"])
        .env("METE_RUNTIME_DIR", place.0.path().join("run"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("NoMembers"), "{text}");
}
