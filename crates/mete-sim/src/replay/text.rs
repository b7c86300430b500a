//! One line of text from `perf sched script`, `perf script` or an ftrace `trace` file.
//!
//! ```text
//!   comm  pid [cpu]       seconds: sched:sched_switch: prev_comm=a prev_pid=1 … ==> next_comm=b next_pid=2 …
//!   comm-pid  [cpu] d..2. seconds: sched_waking: comm=a pid=1 prio=120 target_cpu=001
//!   comm-pid (tgid) [cpu] …                                              ftrace with record-tgid
//!   …                     sched:sched_switch: a:1 [120] S ==> b:2 [120]  perf with its plug-ins
//! ```

use mete_policy::Nanoseconds;
use thiserror::Error;

/// A thread's number in the recording; 0 is the idle task of every processor.
pub type Pid = u32;

/// The thread that ran on a processor when something happened there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningThread {
    /// The processor.
    pub processor: u32,
    /// The thread. It is also named if an interrupt came in between.
    pub pid: Pid,
    /// Its name.
    pub name: String,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One thread left a processor and another took it.
    Switch {
        /// When, by the recording's clock.
        at_ns: Nanoseconds,
        /// The processor.
        processor: u32,
        /// The thread that left.
        previous: Pid,
        /// Its name.
        previous_name: String,
        /// Whether the thread that left could have gone on (state `R`).
        runnable: bool,
        /// Whether the thread that left has ended (states `X` and `Z`).
        ended: bool,
        /// The thread that runs now.
        next: Pid,
        /// Its name.
        next_name: String,
        /// Its priority as the kernel counts it: 120 is nice 0, below 100 is real time.
        next_priority: Option<i32>,
    },
    /// A thread was woken.
    Wake {
        /// When, by the recording's clock.
        at_ns: Nanoseconds,
        /// The thread that ran where the wake-up came from; `None` if the line does not say it.
        seen: Option<RunningThread>,
        /// The thread that woke it; `None` for an interrupt, if the line says so.
        waker: Option<Pid>,
        /// The thread that was woken.
        pid: Pid,
        /// Its name.
        name: String,
        /// Its priority, as in [`Event::Switch`].
        priority: Option<i32>,
        /// Whether it is the first wake-up of a new thread.
        new: bool,
        /// Whether the event is from where the wake-up was caused (`sched_waking`) or from where it took
        /// effect (`sched_wakeup`).
        at_cause: bool,
    },
    /// The recorder says that events are missing.
    Lost,
}

impl Event {
    /// When it happened, by the recording's clock.
    pub fn at_ns(&self) -> Option<Nanoseconds> {
        match self {
            Event::Switch { at_ns, .. } | Event::Wake { at_ns, .. } => Some(*at_ns),
            Event::Lost => None,
        }
    }
}

/// Why a line that looks like an event of the scheduler could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LineError {
    /// No time stamp, thread or processor in front of the event's name.
    #[error("there is no \"NAME PID [CPU] SECONDS:\" in front of the event; record with these fields")]
    Head,
    /// The event's own fields are not as expected.
    #[error("the fields of {0} are not as perf or ftrace print them")]
    Fields(&'static str),
}

/// Reads a line. `Ok(None)`: a comment, an empty line, or an event that a replay does not need.
///
/// # Errors
///
/// The line is a `sched_switch`, `sched_waking`, `sched_wakeup` or `sched_wakeup_new` event that cannot be
/// understood.
pub fn parse_line(line: &str) -> Result<Option<Event>, LineError> {
    if line.starts_with("CPU:") && line.contains("[LOST ") || line.contains("PERF_RECORD_LOST") {
        return Ok(Some(Event::Lost));
    }
    let Some((head, name, fields)) = split_at_event(line) else { return Ok(None) };
    let head = parse_head(head).ok_or(LineError::Head)?;
    let event = match name {
        "sched_switch" => switch(&head, fields),
        _ => wake(&head, fields, name == "sched_wakeup_new", name != "sched_wakeup"),
    };
    event.ok_or(LineError::Fields(name)).map(Some)
}

const EVENTS: [&str; 4] = ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"];

/// The text before the event's name, the name, and the text behind it.
fn split_at_event(line: &str) -> Option<(&str, &'static str, &str)> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    // A thread may have an event's name: the first name with a colon behind it is the event's.
    let (start, name) = EVENTS.iter().filter_map(|&name| place_of(line, name)).min()?;
    let head = line[..start].trim_end().trim_end_matches("sched:").trim_end();
    Some((head, name, line[start + name.len() + 1..].trim()))
}

fn place_of(line: &str, name: &'static str) -> Option<(usize, &'static str)> {
    let mut places = line.match_indices(name).map(|(at, _)| at);
    places.find(|&at| line[at + name.len()..].starts_with(": ")).map(|at| (at, name))
}

struct Head<'a> {
    /// `None` where perf prints -1: for a thread that is about to end.
    pid: Option<Pid>,
    name: &'a str,
    processor: u32,
    at_ns: Nanoseconds,
    interrupt: bool,
}

/// `NAME PID [CPU] FLAGS SECONDS:`, read from the right, because names may contain anything.
fn parse_head(head: &str) -> Option<Head<'_>> {
    let (rest, stamp) = head.rsplit_once(char::is_whitespace)?;
    let at_ns = nanoseconds(stamp.strip_suffix(':')?)?;
    let (before, after) = rest.rsplit_once('[')?;
    let (processor, flags) = after.split_once(']')?;
    let thread = before.trim_end();
    // ftrace puts the process's number behind the thread's, in parentheses.
    let thread =
        thread.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')).map_or(thread, |(rest, _)| rest);
    let (name, pid) = name_and_number(thread.trim_end())?;
    Some(Head {
        pid,
        name,
        processor: processor.trim().parse().ok()?,
        at_ns,
        interrupt: in_interrupt(flags.trim()),
    })
}

/// `NAME PID`, `NAME PID/TID`, `NAME-PID`.
fn name_and_number(thread: &str) -> Option<(&str, Option<Pid>)> {
    // Behind a blank or a slash, -1 is perf's mark; behind a name, it is ftrace's form of thread 1.
    if let Some(name) = thread.strip_suffix("-1").filter(|name| name.ends_with([' ', '/'])) {
        return Some((name.trim(), None));
    }
    // The number is behind the last blank, hyphen or slash: a name may contain all of them.
    let number = thread.rsplit(|c: char| c.is_whitespace() || c == '-' || c == '/').next()?;
    let name = match &thread[..thread.len() - number.len()] {
        process if process.ends_with('/') => process.rsplit_once(char::is_whitespace)?.0,
        name => name.strip_suffix('-').unwrap_or(name),
    };
    Some((name.trim(), Some(number.parse().ok()?)))
}

/// The third of ftrace's flags is `h` in a hard interrupt, `s` in a soft one, `H` in a hard one on top of a
/// soft one, `z` and `Z` in one that cannot be masked. perf prints no flags.
fn in_interrupt(flags: &str) -> bool {
    matches!(flags.as_bytes().get(2), Some(b'h' | b'H' | b's' | b'z' | b'Z'))
}

/// Seconds with a decimal fraction of up to nine digits.
fn nanoseconds(stamp: &str) -> Option<Nanoseconds> {
    let (seconds, fraction) = stamp.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let seconds: u64 = seconds.parse().ok()?;
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * scale)?;
    Some(Nanoseconds::new(ns))
}

fn switch(head: &Head<'_>, fields: &str) -> Option<Event> {
    let (previous, next) = fields.split_once(" ==> ")?;
    // From the right, because a thread's name may contain what separates the fields.
    let (previous_name, pid, state) = match previous.strip_prefix("prev_comm=") {
        Some(named) => {
            let (name, rest) = named.rsplit_once(" prev_pid=")?;
            (name, rest.split_whitespace().next()?, rest.rsplit_once("prev_state=")?.1)
        }
        None => {
            let (thread, rest) = previous.split_once(" [")?;
            let (name, pid) = thread.rsplit_once(':')?;
            (name, pid, rest.split_whitespace().nth(1)?)
        }
    };
    let next_priority = priority(next, " next_prio=");
    let (next_name, next) = named_thread(next, "next_comm=", " next_pid=")?;
    Some(Event::Switch {
        at_ns: head.at_ns,
        processor: head.processor,
        previous: pid.parse().ok()?,
        previous_name: previous_name.to_owned(),
        runnable: state.starts_with('R'),
        ended: state.starts_with(['X', 'Z']),
        next,
        next_name: next_name.to_owned(),
        next_priority,
    })
}

/// `comm=NAME pid=N …`, or `NAME:N [prio] …` as perf's plug-ins print it.
fn named_thread<'a>(fields: &'a str, name_key: &str, pid_key: &str) -> Option<(&'a str, Pid)> {
    let (name, pid) = match fields.strip_prefix(name_key) {
        Some(named) => {
            let (name, rest) = named.rsplit_once(pid_key)?;
            (name, rest.split_whitespace().next()?)
        }
        None => fields.split_once(" [")?.0.rsplit_once(':')?,
    };
    Some((name, pid.parse().ok()?))
}

/// `… prio=N …`, or the last `[N]` as perf's plug-ins print it.
fn priority(fields: &str, key: &str) -> Option<i32> {
    let (rest, end) = match fields.rsplit_once(key) {
        Some((_, rest)) => (rest, ' '),
        None => (fields.rsplit_once('[')?.1, ']'),
    };
    rest.split(end).next()?.trim().parse().ok()
}

fn wake(head: &Head<'_>, fields: &str, new: bool, at_cause: bool) -> Option<Event> {
    let (name, pid) = named_thread(fields, "comm=", " pid=")?;
    Some(Event::Wake {
        at_ns: head.at_ns,
        seen: head.pid.map(|pid| RunningThread {
            processor: head.processor,
            pid,
            name: head.name.to_owned(),
        }),
        waker: head.pid.filter(|_| !head.interrupt),
        pid,
        name: name.to_owned(),
        priority: priority(fields, " prio="),
        new,
        at_cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch_of(line: &str) -> (u64, u32, Pid, bool, Pid) {
        match parse_line(line) {
            Ok(Some(Event::Switch { at_ns, processor, previous, runnable, next, .. })) => {
                (at_ns.get(), processor, previous, runnable, next)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn new_1_the_same_switch_is_read_from_every_text_form() {
        let expected = (11_825_452_845_000, 1, 12235, false, 18);
        let fields = "prev_comm=perf x prev_pid=12235 prev_prio=120 prev_state=D ==> next_comm=m/0 next_pid=18 next_prio=0";
        for head in [
            "            perf x 12235 [001] 11825.452845:       sched:sched_switch: ",
            "  perf x 12235/12240 [001] 11825.452845000:       sched:sched_switch: ",
        ] {
            let line = format!("{head}{fields}").replace("12235/12240", "12235/12235");
            assert_eq!(switch_of(&line), expected, "{line}");
        }
        for head in [
            "perf x-12235   [001] d..2. 11825.452845: sched_switch: ",
            "perf x-12235 (12235) [001] d..2. 11825.452845: sched_switch: ",
        ] {
            assert_eq!(switch_of(&format!("{head}{fields}")), expected);
        }
        let plug_in =
            "perf x 12235 [001] 11825.452845: sched:sched_switch: perf x:12235 [120] D ==> m/0:18 [0]";
        assert_eq!(switch_of(plug_in), expected);
    }

    #[test]
    fn new_1_names_may_contain_what_separates_fields() {
        let line = "a prev_pid=3 [0]-7 [000] d..2. 1.000001: sched_switch: prev_comm=a prev_pid=3 [0] prev_pid=7 \
                    prev_prio=120 prev_state=R+ ==> next_comm=sched_switch: next_pid=9 next_prio=120";
        assert_eq!(switch_of(line), (1_000_001_000, 0, 7, true, 9));
    }

    #[test]
    fn new_1_a_wake_up_in_an_interrupt_has_no_waker() {
        let fields = "comm=echo pid=42 prio=120 target_cpu=000";
        for (flags, waker) in [("d..2.", Some(7)), ("dNh2.", None), ("d.s2.", None), ("d.H2.", None)] {
            let line = format!("hog-7 [000] {flags} 5.5: sched_waking: {fields}");
            let Ok(Some(Event::Wake { waker: found, pid, at_ns, .. })) = parse_line(&line) else {
                panic!("{line}")
            };
            assert_eq!((found, pid, at_ns.get()), (waker, 42, 5_500_000_000));
        }
    }

    #[test]
    fn new_1_the_thread_that_ran_where_a_wake_up_came_from_is_read_from_every_text_form() {
        let fields = "comm=echo pid=42 prio=120 target_cpu=000";
        let seen = |pid| Some(RunningThread { processor: 3, pid, name: "my hog".into() });
        for (head, expected) in [
            ("  my hog  7 [003] 5.5:", seen(7)),
            ("  my hog  6/7 [003] 5.5:", seen(7)),
            ("  my hog-1 [003] d..2. 5.5:", seen(1)),
            ("  my hog-7  (  6) [003] d..2. 5.5:", seen(7)),
            ("  :-1    -1 [003] 5.5:", None),
            ("  :-1 -1/-1 [003] 5.5:", None),
        ] {
            let Ok(Some(Event::Wake { seen, .. })) = parse_line(&format!("{head} sched_waking: {fields}"))
            else {
                panic!("{head}")
            };
            assert_eq!(seen, expected, "{head}");
        }
    }

    #[test]
    fn new_1_comments_other_events_and_losses_are_told_apart() {
        assert_eq!(parse_line("# tracer: nop"), Ok(None));
        assert_eq!(parse_line(""), Ok(None));
        assert_eq!(
            parse_line("perf 1 [000] 1.5: sched:sched_stat_runtime: comm=perf pid=1 runtime=3 [ns]"),
            Ok(None)
        );
        assert_eq!(parse_line("CPU:1 [LOST 123 EVENTS]"), Ok(Some(Event::Lost)));
        assert_eq!(parse_line("sched_switch: prev_comm=a"), Err(LineError::Head));
        let bad = "perf 1 [000] 1.5: sched:sched_switch: prev_comm=a";
        assert_eq!(parse_line(bad), Err(LineError::Fields("sched_switch")));
    }
}
