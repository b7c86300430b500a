//! The tasks that have waited for others during the second half of a run: perhaps for ever, and perhaps for
//! each other. The report of a run (`report.rs`) lists them.

use std::fmt;

use mete_policy::{ClientId, Nanoseconds, Policy};

use crate::host::Host;
use crate::recorder::Recorder;
use crate::scenario::Scenario;
use crate::scene::{Awaited, Scene};

/// A task that waits at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The client's name, or `guest/task`.
    pub name: String,
    /// What it waits for.
    pub wait: Awaited,
    /// Since when it waits.
    pub since_ns: Nanoseconds,
}

impl fmt::Display for Waiting {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "{} waits for ", self.name)?;
        match self.wait {
            Awaited::Packet { port } => write!(text, "a packet to port {port}")?,
            Awaited::Room { port } => write!(text, "room at port {port}")?,
            Awaited::Lock => write!(text, "a lock")?,
        }
        write!(text, " since {:.3} ms", self.since_ns.as_millis_f64())
    }
}

/// The tasks that have waited since the first half of the measured time until now, the end.
pub(crate) fn waiting<P: Policy, R: Recorder>(scenario: &Scenario, host: &Host<P, Scene, R>) -> Vec<Waiting> {
    let half_ns = scenario.warm_up_ns + (scenario.duration_ns - scenario.warm_up_ns) / 2;
    let mut found = Vec::new();
    for number in (0..scenario.clients.len()).map(ClientId::at) {
        let client = scenario.called(number).unwrap_or_default();
        for (task, wait, since_ns) in host.model().awaited(number) {
            // Later waits may end soon after the run.
            if since_ns > half_ns {
                continue;
            }
            let inner = scenario.guest_tasks(number).nth(usize::from(task));
            let name = inner.map_or(client.to_owned(), |task| format!("{client}/{task}"));
            found.push(Waiting { name, wait, since_ns });
        }
    }
    found
}
