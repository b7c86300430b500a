//! LOG-13: each characteristic, with real processes, compared with what the kernel counts in another place.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use mete_kernel::{Characteristic, Counter, KernelError, Principal, event};
use mete_log::DomainId;
use mete_log::layout::PAIR_KEEP_INTERNAL;
use rustix::time::ClockId;
use std::sync::atomic::Ordering;
use std::time::Duration;
use support::{
    Child, apply, between, clock_ns, count, follow, kernel, of_domain, pin, plan, rows, run, spin, sum,
    touch, touch_and_free, wait_until,
};

const A: DomainId = DomainId::new(1);
const B: DomainId = DomainId::new(2);

#[test]
fn log_13_service_time_is_the_processor_time_that_the_domain_used() {
    let Some(mut kernel) = kernel("log_13_service_time") else { return };
    let (plan, files) = plan(&[event::SERVICE_TIME]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        spin(300_000_000);
        gate.tell(clock_ns(ClockId::ProcessCPUTime));
        gate.wait();
    });
    kernel.bind(&Principal::Process(child.pid), A).unwrap();
    assert_eq!(kernel.enable(&Characteristic::ServiceTime).unwrap(), event::SERVICE_TIME);
    child.release();
    let used_ns = child.report();
    child.wait_until_blocked();
    // When /proc says that it sleeps, its processor may not have switched yet.
    let logged_ns = |kernel: &_| sum(&of_domain(&rows(kernel, &plan, files[0]), A));
    wait_until("the exit is logged", || logged_ns(&kernel) * 10 >= used_ns * 9);
    let logged_ns = logged_ns(&kernel);
    assert!(logged_ns * 9 <= used_ns * 10, "logged {logged_ns} ns, used {used_ns} ns");
    assert_eq!(between(&rows(&kernel, &plan, files[0]), A, A), 0, "switches inside a domain are no exits");
    println!("{} switches were not reported", kernel.missed_switches().unwrap());
}

#[test]
fn log_13_a_task_that_does_not_leave_the_processor_is_charged_at_the_tick() {
    let Some(mut kernel) = kernel("log_13_tick") else { return };
    let (plan, files) = plan(&[event::SERVICE_TIME, event::RUN_QUEUE]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        spin(400_000_000);
        gate.tell(clock_ns(ClockId::ProcessCPUTime));
        gate.wait();
    });
    kernel.bind(&Principal::Process(child.pid), A).unwrap();
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    kernel.enable(&Characteristic::RunQueue { hertz: 100 }).unwrap();
    child.release();
    let used_ns = child.report();
    child.wait_until_blocked();
    let charged = |kernel: &_| of_domain(&rows(kernel, &plan, files[0]), A);
    wait_until("all is charged", || sum(&charged(&kernel)) * 10 >= used_ns * 9);
    let rows = charged(&kernel);
    assert!(sum(&rows) * 9 <= used_ns * 10, "logged {} ns, used {used_ns} ns", sum(&rows));
    assert!(between(&rows, A, mete_log::NO_DOMAIN) > 0, "no phase was charged before its end");
}

#[test]
fn log_13_software_counters_are_charged_to_the_domain_that_caused_them() {
    let Some(mut kernel) = kernel("log_13_software_counters") else { return };
    let (plan, files) = plan(&[event::COUNTERS, event::counter(1)]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        touch(500 * 4096);
        gate.tell(0);
        gate.wait();
    });
    child.wait_until_blocked();
    kernel.bind(&Principal::Process(child.pid), A).unwrap();
    let faults: Counter = "minor-faults".parse().unwrap();
    assert_eq!(kernel.enable(&Characteristic::Counter(faults.clone())).unwrap(), event::COUNTERS);
    let all: Counter = "page-faults".parse().unwrap();
    assert_eq!(kernel.enable(&Characteristic::Counter(all)).unwrap(), event::counter(1));
    assert_eq!(kernel.event_of(&faults), Some(event::COUNTERS));
    let before = child.minor_faults();
    child.release();
    child.report();
    child.wait_until_blocked();
    let caused = child.minor_faults() - before;
    assert!(caused >= 500);
    wait_until("the exit is logged", || sum(&of_domain(&rows(&kernel, &plan, files[0]), A)) >= caused);
    if kernel.missed_switches().unwrap() == 0 {
        assert_eq!(sum(&of_domain(&rows(&kernel, &plan, files[0]), A)), caused);
    }
    // A row of each: this one may come behind the other one.
    wait_until("two counters at a time", || sum(&of_domain(&rows(&kernel, &plan, files[1]), A)) >= caused);
}

#[test]
fn log_13_a_process_that_is_bound_anew_while_it_runs_brings_no_faults_of_its_neighbour() {
    let Some(mut kernel) = kernel("log_13_bound_anew") else { return };
    let (plan, files) = plan(&[event::SERVICE_TIME, event::RUN_QUEUE, event::COUNTERS]);
    apply(&plan, &kernel);
    // Both on one processor, and bound anew from another one where there is one.
    let neighbour = |_: &mut support::Gate| {
        pin(0);
        loop {
            touch_and_free(500 * 4096);
        }
    };
    let mut neighbour = Child::start(neighbour);
    let mut moved = Child::start(|gate| {
        pin(0);
        spin(300_000_000);
        gate.tell(0);
        gate.wait();
    });
    pin(1);
    for child in [&neighbour, &moved] {
        kernel.bind(&Principal::Process(child.pid), A).unwrap();
    }
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    kernel.enable(&Characteristic::RunQueue { hertz: 1000 }).unwrap();
    kernel.enable(&Characteristic::Counter("minor-faults".parse().unwrap())).unwrap();
    neighbour.release();
    moved.release();
    while moved.state() != "S" {
        for domain in [B, A] {
            kernel.bind(&Principal::Process(moved.pid), domain).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let own = moved.minor_faults();
    neighbour.kill();
    assert!(sum(&of_domain(&rows(&kernel, &plan, files[0]), B)) > 0, "it was never seen in the other domain");
    let charged = sum(&of_domain(&rows(&kernel, &plan, files[2]), B));
    assert!(charged <= own, "{charged} faults are charged, and it has had {own}");
}

#[test]
fn log_13_service_time_and_counters_share_one_program() {
    let Some(mut kernel) = kernel("log_13_one_program") else { return };
    let faults = Characteristic::Counter("faults".parse().unwrap());
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    assert_eq!(kernel.attached(), ["switch_service"]);
    kernel.enable(&faults).unwrap();
    assert_eq!(kernel.attached(), ["switch_both"]);
    kernel.disable(&Characteristic::ServiceTime).unwrap();
    assert_eq!(kernel.attached(), ["switch_counters"]);
    kernel.disable(&faults).unwrap();
    assert_eq!(kernel.attached(), [""; 0]);
}

#[test]
fn log_13_a_counter_that_the_machine_lacks_is_named_with_the_reason() {
    let Some(mut kernel) = kernel("log_13_absent_counter") else { return };
    let cycles: Counter = "cycles".parse().unwrap();
    match kernel.enable(&Characteristic::Counter(cycles.clone())) {
        Ok(event) => assert_eq!(event, event::COUNTERS),
        Err(error @ KernelError::CounterAbsent { .. }) => {
            println!("SKIPPED: hardware counters per domain: {error}");
            assert!(error.to_string().contains("cycles"));
            assert_eq!(kernel.event_of(&cycles), None);
            assert_eq!(kernel.attached(), [""; 0]);
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn log_13_a_closed_counters_place_is_used_again() {
    let Some(mut kernel) = kernel("log_13_counter_places") else { return };
    // By its second name, a counter is another counter: so there are enough of them.
    let names = "faults page-faults minor-faults major-faults cs context-switches migrations cpu-migrations \
                 cpu-clock task-clock alignment-faults emulation-faults cgroup-switches";
    let counter = |name: &str| Characteristic::Counter(name.parse().unwrap());
    for (nth, name) in names.split(' ').enumerate() {
        assert_eq!(kernel.enable(&counter(name)).unwrap(), event::counter(nth));
    }
    kernel.disable(&counter("cs")).unwrap();
    assert_eq!(kernel.enable(&counter("cs")).unwrap(), event::counter(4), "the place that became free");
}

#[test]
fn log_13_memory_rises_with_what_a_domain_touches_and_falls_to_nothing_at_its_end() {
    let Some(mut kernel) = kernel("log_13_memory") else { return };
    const BYTES: usize = 32 << 20;
    let (plan, files) = plan(&[event::MEMORY]);
    apply(&plan, &kernel);
    let mut children = [(); 2].map(|()| {
        Child::start(|gate| {
            touch(4096);
            gate.tell(0);
            gate.wait();
            touch(BYTES);
            gate.tell(0);
            gate.wait();
        })
    });
    for child in &mut children {
        child.wait_until_blocked();
        kernel.bind(&Principal::Process(child.pid), A).unwrap();
    }
    assert_eq!(kernel.enable(&Characteristic::Memory).unwrap(), event::MEMORY);
    let resident = |kernel: &_| {
        let rows = of_domain(&rows(kernel, &plan, files[0]), A);
        rows.last().and_then(|row| row.counter).unwrap_or(0) as i64
    };
    for child in &mut children {
        child.release();
        child.report();
        let before = resident(&kernel);
        child.release();
        child.report();
        let risen = resident(&kernel) - before;
        assert!((BYTES as i64..BYTES as i64 + (1 << 20)).contains(&risen), "rose by {risen}");
    }
    let both = resident(&kernel);
    children[0].release();
    children[0].wait();
    let one = resident(&kernel);
    assert!(one <= both - BYTES as i64 && one >= BYTES as i64, "fell from {both} to {one}");
    children[1].kill();
    wait_until("the last address space is gone", || resident(&kernel) == 0);
    assert_eq!(kernel.missed_spaces().unwrap(), 0);
}

/// The bytes that a process holds, as the kernel finds them in a walk over its pages.
fn resident(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

#[test]
fn log_13_memory_is_what_each_process_holds_whether_it_grows_or_does_nothing() {
    let Some(mut kernel) = kernel("log_13_memory_base") else { return };
    let (plan, files) = plan(&[event::MEMORY]);
    apply(&plan, &kernel);
    let mut children: Vec<_> = (1..=10)
        .map(|nth| {
            Child::start(move |gate| {
                touch(nth << 20);
                gate.tell(0);
                gate.wait();
                touch(5 << 20);
                gate.tell(0);
                gate.wait();
            })
        })
        .collect();
    for (child, domain) in children.iter_mut().zip(DomainId::all_below(11).skip(1)) {
        child.release();
        child.report();
        child.wait_until_blocked();
        kernel.bind(&Principal::Process(child.pid), domain).unwrap();
    }
    kernel.take_stock().unwrap();
    assert_eq!(count(&kernel, files[0]), 0, "nothing is logged where nothing is enabled");
    kernel.enable(&Characteristic::Memory).unwrap();
    kernel.take_stock().unwrap();
    let check = |kernel: &mete_kernel::Kernel, children: &[Child]| {
        let rows = rows(kernel, &plan, files[0]);
        for (child, domain) in children.iter().zip(DomainId::all_below(11).skip(1)) {
            let logged = of_domain(&rows, domain).last().and_then(|row| row.counter).unwrap();
            let truth = resident(child.pid);
            assert!(logged.abs_diff(truth) * 50 <= truth, "domain {domain}: {logged} of {truth} bytes");
        }
    };
    check(&kernel, &children);
    for child in children.iter_mut().step_by(2) {
        child.release();
        child.report();
        child.wait_until_blocked();
    }
    check(&kernel, &children);

    // A process that is bound anew and does nothing takes along what it has.
    kernel.bind(&Principal::Process(children[9].pid), A).unwrap();
    kernel.take_stock().unwrap();
    let rows = rows(&kernel, &plan, files[0]);
    let last = |domain| of_domain(&rows, domain).last().and_then(|row| row.counter).unwrap();
    let both = resident(children[0].pid) + resident(children[9].pid);
    assert_eq!(last(DomainId::new(10)), 0);
    assert!(last(A).abs_diff(both) * 50 <= both, "{} of {both} bytes", last(A));
}

#[test]
fn log_13_a_child_that_does_nothing_holds_what_it_was_born_with_until_it_ends() {
    let Some(mut kernel) = kernel("log_13_memory_fork") else { return };
    const BYTES: usize = 16 << 20;
    let (plan, files) = plan(&[event::MEMORY]);
    apply(&plan, &kernel);
    let mut parent = Child::start(|gate| {
        touch(BYTES);
        gate.tell(0);
        gate.wait();
        let mut idle = Child::start(|gate| gate.wait());
        gate.tell(0);
        gate.wait();
        idle.kill();
        gate.tell(0);
        gate.wait();
    });
    parent.release();
    parent.report();
    kernel.bind(&Principal::Process(parent.pid), A).unwrap();
    kernel.enable(&Characteristic::Memory).unwrap();
    kernel.take_stock().unwrap();
    let logged = |kernel: &_| {
        of_domain(&rows(kernel, &plan, files[0]), A).last().and_then(|row| row.counter).unwrap() as usize
    };
    let alone = logged(&kernel);
    assert!(alone >= BYTES, "{alone}");
    parent.release();
    parent.report();
    assert!(
        logged(&kernel) >= alone + BYTES,
        "{} after {alone}: the child's pages count, too",
        logged(&kernel)
    );
    parent.release();
    parent.report();
    wait_until("the child's pages are gone", || logged(&kernel) < alone + BYTES / 2);
}

#[test]
fn log_13_memory_moves_with_a_process_that_is_bound_anew() {
    let Some(mut kernel) = kernel("log_13_memory_moves") else { return };
    let (plan, files) = plan(&[event::MEMORY]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        for _ in 0..2 {
            touch(4 << 20);
            gate.tell(0);
            gate.wait();
        }
    });
    kernel.bind(&Principal::Process(child.pid), A).unwrap();
    kernel.enable(&Characteristic::Memory).unwrap();
    child.release();
    child.report();
    kernel.bind(&Principal::Process(child.pid), B).unwrap();
    child.release();
    child.report();
    let rows = rows(&kernel, &plan, files[0]);
    let last = |domain| of_domain(&rows, domain).last().and_then(|row| row.counter).unwrap();
    assert!(last(B) >= 8 << 20, "the anonymous pages of both rounds");
    let max = of_domain(&rows, A).iter().filter_map(|row| row.counter).max().unwrap();
    assert!(last(A) + (4 << 20) <= max, "the first domain gave them back: {} of {max}", last(A));
}

#[test]
fn log_13_run_queue_length_counts_every_runnable_task_at_the_tick() {
    let Some(mut kernel) = kernel("log_13_run_queue") else { return };
    const HOGS: u64 = 3;
    let (plan, files) = plan(&[event::RUN_QUEUE]);
    apply(&plan, &kernel);
    let mut hogs = [(); HOGS as usize].map(|()| {
        Child::start(|gate| {
            pin(0);
            gate.tell(0);
            loop {
                std::hint::spin_loop();
            }
        })
    });
    run(&mut hogs);
    let ticks = follow(&kernel, &plan, files[0], 0);
    assert_eq!(kernel.enable(&Characteristic::RunQueue { hertz: 250 }).unwrap(), event::RUN_QUEUE);
    wait_until("fifty ticks", || count(&kernel, files[0]) >= 50);
    kernel.disable(&Characteristic::RunQueue { hertz: 250 }).unwrap();
    let lengths: Vec<_> = ticks(&kernel).iter().filter_map(|row| row.counter).collect();
    assert!(lengths.len() >= 10, "{} ticks on the hogs' processor", lengths.len());
    assert!(lengths.iter().all(|&length| length >= HOGS), "{lengths:?}");
}

#[test]
fn log_13_the_tick_rate_is_the_schedulers_and_is_checked() {
    let Some(mut kernel) = kernel("log_13_tick_rate") else { return };
    for hertz in [0, 10_001, u32::MAX] {
        let error = kernel.enable(&Characteristic::RunQueue { hertz }).unwrap_err();
        assert!(matches!(error, KernelError::TickRate(said) if said == hertz));
    }
    let (plan, files) = plan(&[event::RUN_QUEUE]);
    apply(&plan, &kernel);
    let mut in_half_a_second = |hertz| {
        kernel.enable(&Characteristic::RunQueue { hertz }).unwrap();
        let before = count(&kernel, files[0]);
        std::thread::sleep(std::time::Duration::from_millis(500));
        count(&kernel, files[0]) - before
    };
    let (slow, fast) = (in_half_a_second(20), in_half_a_second(1000));
    assert!(slow > 0 && fast > 4 * slow, "20 Hz gave {slow} rows, 1000 Hz {fast}");
}

#[test]
fn log_8_service_time_is_sampled_by_the_threshold_over_entry_and_exit() {
    let Some(mut kernel) = kernel("log_8_threshold") else { return };
    const EVERY: u32 = 4;
    let (mut plan, files) = plan(&[event::SERVICE_TIME]);
    plan.threshold(event::SERVICE_TIME, B, EVERY).unwrap();
    apply(&plan, &kernel);
    // Domains 1 and 2 do the same. The phases of both begin and end when a player blocks.
    let mut pair = support::ping_pong(400, [0, 0]);
    kernel.bind(&Principal::Process(pair[0].pid), A).unwrap();
    kernel.bind(&Principal::Process(pair[1].pid), B).unwrap();
    pair.iter().for_each(Child::wait_until_blocked);
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    run(&mut pair);
    kernel.disable(&Characteristic::ServiceTime).unwrap();
    let rows = rows(&kernel, &plan, files[0]);
    let (every, sampled) = (of_domain(&rows, A).len(), of_domain(&rows, B).len());
    assert!(every >= 100, "{every} phases");
    // The two alternate, but other domains may come between them.
    let expected = every / EVERY as usize;
    assert!(sampled >= expected / 2 && sampled <= expected * 2, "{sampled} of {every}");
    let left: u32 =
        kernel.areas().map(|area| area.pair(B, event::SERVICE_TIME).count.load(Ordering::Relaxed)).sum();
    assert!(left <= EVERY * kernel.processors() as u32);
}

#[test]
fn log_8_switches_inside_a_domain_are_logged_only_on_demand() {
    let Some(mut kernel) = kernel("log_8_internal") else { return };
    let (mut plan, files) = plan(&[event::SERVICE_TIME]);
    let mut both_in_one_domain = |keep: bool| {
        plan.keep_internal(event::SERVICE_TIME, A, keep).unwrap();
        apply(&plan, &kernel);
        let flags = kernel.area(0).pair(A, event::SERVICE_TIME).flags.load(Ordering::Relaxed);
        assert_eq!(flags & PAIR_KEEP_INTERNAL != 0, keep);
        let mut pair = support::ping_pong(200, [0, 0]);
        pair.iter().for_each(|child| kernel.bind(&Principal::Process(child.pid), A).unwrap());
        kernel.enable(&Characteristic::ServiceTime).unwrap();
        let before = between(&rows(&kernel, &plan, files[0]), A, A);
        run(&mut pair);
        kernel.disable(&Characteristic::ServiceTime).unwrap();
        between(&rows(&kernel, &plan, files[0]), A, A) - before
    };
    assert_eq!(both_in_one_domain(false), 0);
    assert!(both_in_one_domain(true) >= 100);
}

#[test]
fn log_4_each_file_has_the_clock_that_it_asks_for() {
    use mete_log::{Entries, FileSpec, Plan, Shape, Stamp};
    let Some(mut kernel) = kernel("log_4_clocks") else { return };
    let mut stamps_of = |stamp| {
        let mut plan = Plan::new(Shape::KERNEL);
        let file = plan.file(FileSpec { entries: Entries::ALL, stamp, add: false, rows: 32768 }).unwrap();
        plan.route(event::IPC_SEND, A, file).unwrap();
        apply(&plan, &kernel);
        let sent = follow(&kernel, &plan, file, 0);
        let before = count(&kernel, file);
        let mut pair = support::ping_pong(u64::MAX, [0, 0]);
        kernel.bind(&Principal::Process(pair[0].pid), A).unwrap();
        kernel.bind(&Principal::Process(pair[1].pid), B).unwrap();
        kernel.enable(&Characteristic::Ipc).unwrap();
        pair.iter_mut().for_each(Child::release);
        wait_until("fifty rows", || count(&kernel, file) >= before + 50);
        pair.iter_mut().for_each(Child::kill);
        kernel.disable(&Characteristic::Ipc).unwrap();
        sent(&kernel).iter().map(|row| row.stamp.unwrap_or(0)).collect::<Vec<_>>()
    };
    let now_ns = clock_ns(ClockId::Monotonic);
    let hardware = stamps_of(Stamp::Hardware);
    assert!(hardware.is_sorted() && hardware[0] > now_ns);
    assert!(hardware.last().unwrap() < &clock_ns(ClockId::Monotonic));
    let ticks = stamps_of(Stamp::Tick);
    assert!(ticks.is_sorted() && ticks[0] > 0 && ticks.last().unwrap() - ticks[0] < 10_000);
    let run_queue = stamps_of(Stamp::RunQueue);
    assert!(run_queue.is_sorted() && run_queue[0] > 0);
    let order = stamps_of(Stamp::Virtual);
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(stamps_of(Stamp::None).into_iter().max(), Some(0));
}
