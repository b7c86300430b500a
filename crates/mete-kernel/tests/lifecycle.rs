//! LOG-2: programs are attached only while enabled, and nothing outlives the process. The tests look at what
//! the kernel holds for this process. So they share a lock, and run one at a time.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mete_kernel::bench::{Bench, BenchPoint, BenchProgram};
use mete_kernel::{Characteristic, Kernel, KernelError, Principal, event};
use mete_log::{DomainId, Entries, FileSpec, Plan, Shape, Stamp};
use support::{Child, apply, count, kernel, plan, run, touch, wait_until};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values of `key` in what the kernel reports of the descriptors of a process.
fn descriptors(pid: u32, key: &str) -> Vec<String> {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().filter_map(Result::ok);
    let texts = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    let values = |text: String| {
        let value =
            |line: &str| line.strip_prefix(key)?.strip_prefix(':').map(|value| value.trim().to_owned());
        text.lines().filter_map(value).collect::<Vec<_>>()
    };
    texts.flat_map(values).collect()
}

fn links() -> usize {
    descriptors(std::process::id(), "link_type").len()
}

fn all() -> [Characteristic; 5] {
    let counter = "page-faults".parse().unwrap();
    [
        Characteristic::ServiceTime,
        Characteristic::Counter(counter),
        Characteristic::Ipc,
        Characteristic::Memory,
        Characteristic::RunQueue { hertz: 100 },
    ]
}

fn enable_all(kernel: &mut Kernel) {
    for what in all() {
        kernel.enable(&what).unwrap();
    }
}

#[test]
fn log_2_a_characteristic_is_attached_while_it_is_enabled_and_at_no_other_time() {
    let _alone = alone();
    let Some(mut kernel) = kernel("log_2_attached") else { return };
    assert_eq!((links(), kernel.attached().len()), (0, 0), "loading attaches nothing");
    for what in all() {
        kernel.enable(&what).unwrap();
        let attached = links();
        assert!(attached >= 1, "{what:?}");
        kernel.enable(&what).unwrap();
        assert_eq!(links(), attached, "enabling twice is enabling once");
        kernel.disable(&what).unwrap();
        assert_eq!((links(), kernel.attached().len()), (0, 0), "{what:?}");
        kernel.disable(&what).unwrap();
    }
    enable_all(&mut kernel);
    assert!(links() >= 4);
    drop(kernel);
    let own = std::process::id();
    for key in ["link_type", "prog_type", "map_type"] {
        assert_eq!(descriptors(own, key), [""; 0], "nothing is left");
    }
}

#[test]
fn log_2_nothing_is_logged_before_enabling_and_after_disabling() {
    let _alone = alone();
    let Some(mut kernel) = kernel("log_2_silent") else { return };
    let events = [event::SERVICE_TIME, event::IPC_SEND, event::IPC_RECEIVE, event::MEMORY, event::RUN_QUEUE];
    let (plan, files) = plan(&events);
    apply(&plan, &kernel);
    let written = |kernel: &Kernel| files.iter().map(|&file| count(kernel, file)).collect::<Vec<_>>();
    let traffic = |kernel: &mut Kernel| {
        let [first, second] = support::ping_pong(50, [0, 0]);
        // The other two may have all their pages before they are bound.
        let grows = Child::start(|gate| {
            touch(1 << 20);
            gate.tell(0);
            gate.wait();
        });
        let mut children = [first, second, grows];
        for (child, domain) in children.iter().zip([1, 2, 1]) {
            kernel.bind(&Principal::Process(child.pid), DomainId::new(domain)).unwrap();
        }
        run(&mut children);
        wait_until("a tick", || kernel.attached().len() < 3 || count(kernel, files[4]) > 0);
        children.iter_mut().for_each(Child::kill);
    };
    traffic(&mut kernel);
    assert_eq!(written(&kernel), [0; 5]);
    enable_all(&mut kernel);
    traffic(&mut kernel);
    all().iter().for_each(|what| kernel.disable(what).unwrap());
    let after = written(&kernel);
    assert!(after.iter().all(|&rows| rows > 0), "{after:?}");
    traffic(&mut kernel);
    assert_eq!(written(&kernel), after);
}

#[test]
fn log_13_runs_that_the_kernel_left_out_are_those_of_its_own_books() {
    let _alone = alone();
    let Some(mut kernel) = kernel("log_13_missed_runs") else { return };
    enable_all(&mut kernel);
    run(&mut support::ping_pong(200, [0, 0]));
    all().iter().for_each(|what| kernel.disable(what).unwrap());
    let booked = descriptors(std::process::id(), "recursion_misses");
    assert!(booked.len() >= 6, "one count for each program: {booked:?}");
    let booked: u64 = booked.iter().map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(kernel.missed_runs().unwrap(), booked);
}

#[test]
fn log_2_killing_the_process_leaves_nothing_in_the_kernel() {
    let _alone = alone();
    if kernel("log_2_kill").is_none() {
        return;
    }
    let mut child = Child::start(|gate| {
        let Ok(mut kernel) = Kernel::load() else { return };
        let enabled = all().iter().filter(|what| kernel.enable(what).is_ok()).count();
        let bound = kernel.bind(&Principal::Idle, DomainId::new(1)).is_ok();
        gate.tell(if bound { enabled as u64 } else { 0 });
        gate.wait();
    });
    child.release();
    assert_eq!(child.report(), all().len() as u64);
    let programs: Vec<u32> =
        descriptors(child.pid as u32, "prog_id").iter().map(|id| id.parse().unwrap()).collect();
    assert!(programs.len() >= 6 && programs.iter().all(|&id| is_loaded(id)), "{programs:?}");
    child.kill();
    wait_until("the programs are gone", || !programs.iter().any(|&id| is_loaded(id)));
}

fn is_loaded(program: u32) -> bool {
    let found: libbpf_rs::Result<OwnedFd> = libbpf_rs::Program::fd_from_id(program);
    found.is_ok()
}

#[test]
fn a_user_that_may_not_load_programs_learns_what_is_missing() {
    let _alone = alone();
    if kernel("a_user_that_may_not_load_programs").is_none() {
        return;
    }
    let mut child = Child::start(|gate| {
        // SAFETY: only this child gives up root.
        unsafe { libc::setresuid(65534, 65534, 65534) };
        let error = Kernel::load().err();
        let is_said = matches!(&error, Some(KernelError::Privilege { missing }) if missing == "CAP_PERFMON and CAP_BPF");
        let is_found = mete_kernel::capabilities()[0].finding.is_err();
        gate.tell(u64::from(is_said && is_found));
        gate.wait();
    });
    child.release();
    assert_eq!(child.report(), 1);
}

#[test]
fn every_capability_says_what_it_is_needed_for_and_how_to_get_it() {
    let _alone = alone();
    let before = descriptors(std::process::id(), "prog_type").len();
    let all = mete_kernel::capabilities();
    let names: Vec<_> = all.iter().map(|capability| capability.name).collect();
    for name in [
        "privilege",
        "first pid namespace",
        "BTF",
        "eBPF",
        "fentry",
        "software counters",
        "hardware counters",
        "kprobes",
        "sched_ext",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    let unneeded: Vec<_> = all.iter().filter(|found| !found.is_needed()).map(|found| found.name).collect();
    assert_eq!(unneeded, [""; 0]);
    for capability in &all {
        println!("{}: {:?}", capability.name, capability.finding);
        let texts = [capability.needed_for.to_string(), capability.remedy.to_owned()];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", capability.name);
        let finding = capability.finding.as_ref().unwrap_or_else(|why| why);
        assert!(!finding.is_empty() && !finding.contains('\n'), "{}: {finding:?}", capability.name);
    }
    assert_eq!(descriptors(std::process::id(), "prog_type").len(), before, "nothing is left");
}

#[test]
fn log_17_every_bench_program_runs_at_both_points_and_leaves_nothing() {
    let _alone = alone();
    if kernel("log_17_bench_programs").is_none() {
        return;
    }
    let bench = Bench::load().unwrap();
    let mut plan = Plan::new(Shape::KERNEL);
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: 1024 };
    let file = plan.file(spec).unwrap();
    plan.route_event(mete_kernel::bench::EVENT, file).unwrap();
    (0..bench.processors()).for_each(|processor| plan.apply(bench.area(processor)));
    let written = || {
        let areas = (0..bench.processors()).map(|processor| bench.area(processor));
        areas.map(|area| mete_log::ring::written(&area.register(file).index)).sum::<u64>()
    };
    use BenchProgram::{Clock, Empty, PerfOutput, RingBuffer, Row};
    for point in [BenchPoint::SystemCall, BenchPoint::Switch] {
        for program in [Empty, Clock, Row, RingBuffer, PerfOutput] {
            let before = written();
            let running = bench.attach(point, program).unwrap();
            run(&mut support::ping_pong(100, [0, 0]));
            assert_eq!(links(), 1);
            drop(running);
            assert_eq!(links(), 0, "{point:?} {program:?}");
            assert_eq!(written() > before + 100, program == Row, "{point:?} {program:?}");
        }
    }
}
