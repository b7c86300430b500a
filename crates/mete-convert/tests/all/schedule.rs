//! A trace of the scheduler's schema as a recorded schedule.

use mete_convert::recorded_schedule;
use mete_sim::replay::{Action, Nanoseconds, Recording, Step};

use crate::common::Scratch;
use crate::written::Written;

/// 7 computes, wakes 8 and blocks; 8 computes and ends.
fn two(scratch: &Scratch) -> Written {
    let mut written = Written::begin(&scratch.path().join("trace"), "scheduler", 1);
    let out = |pid, state| [("pid", pid), ("state", state)];
    written.event(0, 100, "SCHEDOUT", &out(0, 0));
    written.event(0, 100, "SCHEDIN", &[("pid", 7)]);
    written.event(0, 400, "TRY_TO_WAKEUP", &[("pid", 8), ("waker", 7)]);
    written.event(0, 410, "ADD_TO_RUNQ", &[("pid", 8)]);
    written.event(0, 500, "SCHEDOUT", &out(7, 1));
    written.event(0, 500, "SCHEDIN", &[("pid", 8)]);
    written.event(0, 700, "SCHEDOUT", &out(8, 0x20));
    written.event(0, 700, "SCHEDIN", &[("pid", 0)]);
    written
}

fn read(written: Written, scratch: &Scratch) -> Recording {
    written.finish();
    recorded_schedule(&scratch.path().join("trace")).unwrap()
}

#[test]
fn klog_8_a_trace_tells_what_each_process_computed_and_whom_it_woke() {
    let scratch = Scratch::new("schedule-of-two");
    let recording = read(two(&scratch), &scratch);
    let steps = |pid| recording.scripts.iter().find(|script| script.pid == pid).map(|of| of.steps.clone());
    let step = |compute_ns, action| Step { compute_ns: Nanoseconds::new(compute_ns), action };
    let place = recording.scripts.iter().position(|script| script.pid == 8).expect("it is woken");
    assert_eq!(steps(7), Some(vec![step(300, Action::Wake(place)), step(100, Action::End)]));
    assert_eq!(steps(8), Some(vec![step(0, Action::Await), step(200, Action::End)]));
    assert_eq!((recording.gaps, recording.uncertain_ns.get(), recording.work_ns().get()), (0, 0, 600));
}

#[test]
fn klog_8_lost_events_are_a_gap_and_no_work_of_any_process() {
    let scratch = Scratch::new("schedule-with-loss");
    let mut written = two(&scratch);
    written.lose(0, 3);
    written.event(0, 900, "SCHEDOUT", &[("pid", 7), ("state", 1)]);
    written.event(0, 900, "SCHEDIN", &[("pid", 0)]);
    let recording = read(written, &scratch);
    assert!(recording.gaps >= 1, "{recording:?}");
    assert_eq!(recording.work_ns().get(), 600);
}

#[test]
fn a_directory_without_a_trace_is_refused_by_its_name() {
    let said = recorded_schedule(std::path::Path::new("/no/such/trace")).expect_err("there is none");
    assert!(said.to_string().contains("/no/such/trace"), "{said}");
}
