//! LOG-13: IPC usage is logged on both sides, with the domain that causes it.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::time::Duration;

use mete_kernel::{Characteristic, Principal, event};
use mete_log::{DomainId, EventId};
use support::{Child, apply, between, kernel, pin, plan, rows, run, spin, voluntary_switches};

const A: DomainId = DomainId::new(1);
const B: DomainId = DomainId::new(2);
const EVENTS: [EventId; 2] = [event::IPC_SEND, event::IPC_RECEIVE];

/// Checks the rows of sends and receives between the two domains, in both directions. None is woken more
/// often than `most`.
fn ping_pong(test: &str, rounds: u64, most: u64, pair: impl FnOnce(u64) -> [Child; 2]) {
    let Some(mut kernel) = kernel(test) else { return };
    let (plan, files) = plan(&EVENTS);
    apply(&plan, &kernel);
    let mut pair = pair(rounds);
    kernel.bind(&Principal::Process(pair[0].pid), A).unwrap();
    kernel.bind(&Principal::Process(pair[1].pid), B).unwrap();
    kernel.enable(&Characteristic::Ipc).unwrap();
    let blocked = run(&mut pair);
    kernel.disable(&Characteristic::Ipc).unwrap();
    let (sent, received) = (rows(&kernel, &plan, files[0]), rows(&kernel, &plan, files[1]));
    for (from, to, blocked) in [(A, B, blocked[1]), (B, A, blocked[0])] {
        let wakeups = between(&sent, from, to);
        assert_eq!(wakeups, between(&received, to, from), "both sides say the same");
        // A player that blocked was woken by the other one, and neither is woken more than once a round. The
        // kernel counts the wake-ups that it leaves out: those in an interrupt that comes while another one
        // is logged.
        let (wakeups, missed) = (wakeups as u64, kernel.missed_runs().unwrap());
        assert!(
            blocked <= wakeups + missed && wakeups <= most,
            "{from} to {to}: {wakeups}, {missed} missed, blocked {blocked} times"
        );
    }
    // It may be that one of them always loses the processor to the other one before it comes to block.
    assert!(blocked[0] + blocked[1] > 0, "neither was woken");
}

#[test]
fn log_13_each_wake_up_is_logged_on_the_senders_and_on_the_receivers_side() {
    ping_pong("log_13_ipc_one_processor", 300, 300, |rounds| support::ping_pong(rounds, [0, 0]));
}

#[test]
fn log_13_wake_ups_across_processors_are_logged_too() {
    ping_pong("log_13_ipc_two_processors", 300, 300, |rounds| support::ping_pong(rounds, [0, 1]));
}

#[test]
fn log_13_wake_ups_by_packets_over_the_loopback_device_are_their_senders() {
    let pair = |rounds| support::ping_pong_over_tcp(rounds, [0, 0]);
    // The end of the connection wakes the other side once more, if that has not ended yet.
    ping_pong("log_13_ipc_tcp_one_processor", 300, 301, pair);
}

#[test]
fn log_13_packets_wake_across_processors_too() {
    let pair = |rounds| support::ping_pong_over_tcp(rounds, [0, 1]);
    ping_pong("log_13_ipc_tcp_two_processors", 300, 301, pair);
}

#[test]
fn log_13_nothing_follows_packets_unless_ipc_is_logged() {
    let Some(mut kernel) = kernel("log_13_ipc_network") else { return };
    kernel.follows_packets().unwrap();
    assert_eq!(kernel.attached(), [""; 0]);
    kernel.enable(&Characteristic::Ipc).unwrap();
    assert_eq!(kernel.attached(), ["on_waking", "on_send", "on_receive", "on_delivered"]);
    kernel.disable(&Characteristic::Ipc).unwrap();
    assert_eq!(kernel.attached(), [""; 0]);
}

/// The number of wake-ups of a sleeper that are logged as caused by `hog`, which runs on its processor.
fn wake_ups_by_timer(test: &str, hog: fn()) {
    const NAPS: u64 = 300;
    let Some(mut kernel) = kernel(test) else { return };
    let (plan, files) = plan(&EVENTS);
    apply(&plan, &kernel);
    let mut hog = Child::start(|gate| {
        pin(0);
        gate.tell(0);
        hog();
    });
    let mut sleeper = Child::start(|gate| {
        pin(0);
        // Beside other load, a timer may fire before the sleeper has left the processor: then it wakes
        // nothing.
        let enough = voluntary_switches() + NAPS;
        while voluntary_switches() < enough {
            std::thread::sleep(Duration::from_micros(200));
        }
        gate.tell(0);
        gate.wait();
    });
    kernel.bind(&Principal::Process(hog.pid), A).unwrap();
    kernel.bind(&Principal::Process(sleeper.pid), B).unwrap();
    kernel.enable(&Characteristic::Ipc).unwrap();
    hog.release();
    hog.report();
    sleeper.release();
    sleeper.report();
    kernel.disable(&Characteristic::Ipc).unwrap();
    let (sent, received) = (rows(&kernel, &plan, files[0]), rows(&kernel, &plan, files[1]));
    assert_eq!(between(&sent, A, B), 0, "the hog sent nothing");
    assert_eq!(between(&received, B, A), 0, "the sleeper received nothing from it");
}

#[test]
fn log_13_a_timer_that_interrupts_a_computing_task_is_not_its_ipc() {
    wake_ups_by_timer("log_13_ipc_user_mode", spin_in_user_mode);
}

#[test]
fn log_13_a_timer_that_interrupts_a_system_call_is_not_its_ipc() {
    wake_ups_by_timer("log_13_ipc_kernel_mode", || spin(u64::MAX / 2));
}

fn spin_in_user_mode() {
    loop {
        std::hint::spin_loop();
    }
}

#[test]
fn log_8_wake_ups_inside_a_domain_are_not_logged() {
    let Some(mut kernel) = kernel("log_8_ipc_internal") else { return };
    let (plan, files) = plan(&EVENTS);
    apply(&plan, &kernel);
    let mut pair = support::ping_pong(200, [0, 0]);
    pair.iter().for_each(|child| kernel.bind(&Principal::Process(child.pid), A).unwrap());
    kernel.enable(&Characteristic::Ipc).unwrap();
    run(&mut pair);
    assert_eq!(between(&rows(&kernel, &plan, files[0]), A, A), 0);
    assert_eq!(between(&rows(&kernel, &plan, files[1]), A, A), 0);
}
