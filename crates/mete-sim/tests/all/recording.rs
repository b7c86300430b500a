//! What a recorded schedule is turned into (NEW-1: replayed from a recorded log).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_sim::replay::{Action, Nanoseconds, Recording, RecordingError, Step};

fn read(text: &str) -> Recording {
    Recording::read(text.as_bytes()).unwrap()
}

/// Three threads on one processor: a asks, b answers, c computes when it can.
const CONVERSATION: &str = "\
a-1 [000] d..2. 0.000100: sched_waking: comm=b pid=2 prio=120 target_cpu=000
a-1 [000] d..2. 0.000150: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
b-2 [000] d..2. 0.000200: sched_waking: comm=a pid=1 prio=120 target_cpu=000
b-2 [000] d..2. 0.000210: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=R ==> next_comm=c next_pid=3 next_prio=120
c-3 [000] d..2. 0.000310: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
a-1 [000] d..2. 0.000320: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
b-2 [000] d..2. 0.000350: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
<idle>-0 [000] dNh2. 0.001320: sched_waking: comm=a pid=1 prio=120 target_cpu=000
<idle>-0 [000] d..2. 0.001330: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
a-1 [000] d..2. 0.001340: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=X ==> next_comm=c next_pid=3 next_prio=120
";

fn step(compute_us: u64, action: Action) -> Step {
    Step { compute_ns: Nanoseconds::from_micros(compute_us), action }
}

#[test]
fn new_1_a_thread_s_script_is_its_own_progress_and_not_the_policy_s_doing() {
    let recording = read(CONVERSATION);
    let scripts: Vec<_> = recording.scripts.iter().map(|script| (script.name.as_str(), script.pid)).collect();
    assert_eq!(scripts, [("a", 1), ("b", 2), ("c", 3)], "in the order in which they are first seen");
    assert_eq!((recording.processors, recording.duration_ns.get(), recording.gaps), (1, 1_240_000, 0));
    let (asks, computes) = (step(0, Action::Wake(1)), step(50, Action::Await));
    assert_eq!(
        recording.scripts[0].steps,
        [asks, computes, step(10, Action::Sleep { ns: Nanoseconds::from_millis(1) }), step(10, Action::End)]
    );
    assert_eq!(
        recording.scripts[1].steps,
        [step(0, Action::Await), step(50, Action::Wake(0)), step(40, Action::End)]
    );
    assert_eq!(recording.scripts[2].steps, [step(100, Action::End)], "preemption is not in it");
    assert_eq!(recording.scripts[0].waits_ns, [110, 10].map(Nanoseconds::from_micros));
}

#[test]
fn new_1_a_real_recording_of_perf_becomes_scripts_and_its_missing_events_are_counted() {
    let text = include_str!("data/perf-sched-ping-pong.txt");
    let recording = read(text);
    assert_eq!(recording.gaps, 2, "a wake-up of perf itself and its leaving a processor are not in it");
    let named: Vec<_> = recording.scripts.iter().filter(|script| script.name == "pingpong").collect();
    assert_eq!(named.len(), 3, "asks, answers, computes");
    let is_talk = |line: &&str| {
        line.trim_start().starts_with("pingpong")
            && line.contains("sched_wak")
            && line.contains(": comm=pingpong")
    };
    let wakes = named.iter().flat_map(|script| &script.steps);
    let wakes = wakes.filter(
        |step| matches!(step.action, Action::Wake(woken) if recording.scripts[woken].name == "pingpong"),
    );
    assert_eq!(wakes.count(), text.lines().filter(is_talk).count(), "each wake-up among them is in a script");
    let hog = named[2].service_ns().get();
    assert!((15_000_000..17_000_000).contains(&hog), "15 ms of work: {hog} ns");
    assert!(recording.work_ns() <= recording.capacity_ns(), "no processor is used twice");
}

#[test]
fn new_1_missing_events_are_counted_and_never_silent() {
    let lines: Vec<_> = CONVERSATION.lines().collect();
    let without = |left_out: usize| {
        let rest: Vec<_> =
            lines.iter().enumerate().filter(|&(at, _)| at != left_out).map(|(_, line)| *line).collect();
        read(&rest.join("\n"))
    };
    assert!(without(3).gaps > 0, "a switch");
    assert!(without(7).gaps > 0, "a wake-up");
    assert!(read(&format!("CPU:0 [LOST 12 EVENTS]\n{CONVERSATION}")).gaps > 0, "the recorder's own word");
}

#[test]
fn new_1_an_unreadable_line_is_named_by_its_number() {
    let broken = CONVERSATION.replace("prev_state=X", "prev_stat");
    let error = Recording::read(broken.as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("line 10: "), "{error}");
    let error = Recording::read("a text\nof something else\n".as_bytes()).unwrap_err();
    assert!(
        matches!(error, RecordingError::Empty) && error.to_string().contains("perf sched record"),
        "{error}"
    );
}
