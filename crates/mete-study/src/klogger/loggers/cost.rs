//! What an event costs with each logger, and how many times as much as with ours.

use mete_measure::interleave::{Samples, quotients};
use mete_measure::{Reason, Row};

use super::setup::Logger::{
    self, Bpftrace, Call, Ftrace, Kernel, Loop, Lttng, LttngLoop, Perf, Printk, Program, SlowCall,
};
use crate::study::is_noisy;

/// The name of the logger that the kernel's loggers are compared with.
pub(super) const OURS: &str = "mete, kernel";

/// The loggers that are shown, each with the variant that it is measured against.
const SHOWN: [(Logger, Logger, &str); 7] = [
    (Kernel, SlowCall, OURS),
    (Ftrace, SlowCall, "ftrace"),
    (Perf, SlowCall, "perf"),
    (Bpftrace, SlowCall, "bpftrace"),
    (Printk, Call, "printk"),
    (Program, Loop, "mete, program"),
    (Lttng, LttngLoop, "LTTng-UST"),
];

/// What an event costs with one logger.
pub(crate) struct LoggerCost {
    pub name: &'static str,
    /// Nanoseconds for an event.
    pub event: Row,
    /// The same as a multiple of what our logger needs in the same place. `None` for ours.
    pub times: Option<Row>,
    /// Whether the times, with or without the event, are too noisy for a verdict.
    pub is_noisy: bool,
}

impl LoggerCost {
    /// The median, the first and the third quartile.
    pub(super) fn quartiles(&self) -> Option<[f64; 3]> {
        let Row { median, q1, q3, .. } = self.event;
        Some([median?, q1?, q3?])
    }
}

/// The names of the loggers that are shown.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SHOWN.into_iter().map(|(_, _, name)| name)
}

/// The costs of all loggers that are shown.
pub(super) fn of(samples: &Samples<Logger>) -> Vec<LoggerCost> {
    let costs = SHOWN.map(|(logger, base, name)| LoggerCost {
        name,
        event: event(samples, (logger, base), name),
        times: ours(logger).map(|ours| {
            Row::new(format!("{name}: times ours"), "ratio", times(samples, (logger, base), ours))
        }),
        is_noisy: [logger, base].into_iter().any(|of| samples.of(of).is_ok_and(|times| is_noisy(&times))),
    });
    costs.into()
}

/// The name of the row of an event's cost.
pub(super) fn event_name(logger: &str) -> String {
    format!("{logger}: an event")
}

fn event(samples: &Samples<Logger>, (logger, base): (Logger, Logger), name: &str) -> Row {
    let row = Row::new(event_name(name), "ns", samples.net(logger, base));
    // The note of a row without samples says why there are none.
    if row.median.is_some() { row.note(about(logger)) } else { row }
}

/// Our logger in the same place, and the variant that it is measured against. `None` for our own loggers and
/// for what is measured without a logger.
fn ours(logger: Logger) -> Option<(Logger, Logger)> {
    match logger {
        Ftrace | Perf | Bpftrace | Printk => Some((Kernel, SlowCall)),
        Lttng => Some((Program, Loop)),
        Kernel | Program | Call | SlowCall | Loop | LttngLoop => None,
    }
}

/// The quotients of a logger's cost and the cost of ours, from the same rounds.
fn times(
    samples: &Samples<Logger>,
    (logger, base): (Logger, Logger),
    (ours, our_base): (Logger, Logger),
) -> Result<Vec<f64>, Reason> {
    quotients(&samples.net(logger, base)?, &samples.net(ours, our_base)?)
}

fn about(logger: Logger) -> &'static str {
    match logger {
        Kernel => "a program generated from a schema, at raw_syscalls:sys_enter, into a trace on disk",
        Ftrace => "raw_syscalls:sys_enter in an instance of its own, overwriting",
        Perf => "raw_syscalls:sys_enter by perf_event_open, overwriting",
        Bpftrace => "printf of two numbers at raw_syscalls:sys_enter, its output thrown away",
        Printk => {
            "a line with two numbers to /dev/kmsg, formatted by the program, without the bare system call"
        }
        Program => "two numbers into a recording buffer, time-stamp counter",
        Lttng => "four numbers, overwriting",
        Call | SlowCall | Loop | LttngLoop => "",
    }
}
