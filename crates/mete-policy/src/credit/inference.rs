//! TAVS-3: which tasks are I/O-bound, by evidence (§3.3, algorithm 1).
//!
//! A task that runs briefly because an event was pending gives evidence for itself. A task that runs long
//! gives evidence against itself. All else says nothing:
//!
//! | the task that leaves ran | | evidence |
//! |---|---|---|
//! | longer than IOthreshold | | negative |
//! | briefly | first in its virtual processor's slice: perhaps it was interrupted | ambiguous |
//! | briefly | in a slice that began without a pending event | ambiguous |
//! | briefly | after a task that ran long: the event may be handled by then | ambiguous |
//! | briefly | otherwise | positive |
//!
//! The printed algorithm keeps `after_event` with each task and passes it on only with positive evidence. By
//! that rule, T2 of the paper's figure 2 would never get it from T1, which is ambiguous. Here the mark
//! belongs to the slice: it is set when the slice begins with an event pending, and lost when a task runs
//! long. All six tasks of figure 2 then come out as the figure has them.
//!
//! The printed algorithm also begins anew whenever the virtual processor is scheduled. But a server that
//! answers wakes the driver, which preempts the server in the middle of its short run. The second half would
//! be the first run of a slice each time, always ambiguous, and no server would ever be inferred. So a
//! virtual processor that was preempted and is resumed goes on with its slice, and its task with its run; the
//! time between is not the task's. Only a block or a packet that came in between begins anew (§3.5 considers
//! only those). The driver's notice that it has sent the server's answer ([`Event::Other`]) says nothing
//! about which task runs next.

use alloc::vec;
use alloc::vec::Vec;

use super::settings::TavsSettings;
use super::tracking::TaskRun;
use crate::{ClientId, Event, Nanoseconds, TaskId};

/// The evidence that a task's run gives about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    Positive,
    Negative,
    Ambiguous,
}

/// What came since a virtual processor last ran. The larger counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum PendingEvent {
    #[default]
    Nothing,
    Other,
    /// A block or a packet.
    Input,
}

#[derive(Clone, Copy, Default)]
struct InferredGuest {
    pending: PendingEvent,
    /// This slice began with an event pending, and no task has run long in it.
    after_event: bool,
    /// `pending` and `after_event` before the virtual processor was dispatched.
    before: (PendingEvent, bool),
    /// The number of its tasks that are I/O-bound.
    io_bound: u16,
}

/// The beliefs in all tasks of all tracked virtual processors.
pub(super) struct Inference {
    guests: Vec<InferredGuest>,
    beliefs: Vec<i16>,
    tasks: usize,
    positive: i16,
    negative: i16,
    threshold: i16,
    range: (i16, i16),
}

impl Inference {
    pub(super) fn new(clients: u32, settings: &TavsSettings) -> Inference {
        let tasks = usize::from(settings.tasks_per_client);
        Inference {
            guests: vec![InferredGuest::default(); clients as usize],
            beliefs: vec![0; clients as usize * tasks],
            tasks,
            positive: settings.positive_evidence.max(0),
            negative: settings.negative_evidence.max(0),
            threshold: settings.belief_threshold,
            range: (settings.belief_min.min(0), settings.belief_max.max(0)),
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            *guest = InferredGuest::default();
            let begin = client.index() * self.tasks;
            self.beliefs[begin..begin + self.tasks].fill(0);
        }
    }

    /// The belief in a task; `None` for one that is not tracked.
    pub(super) fn belief(&self, client: ClientId, task: TaskId) -> Option<i16> {
        self.place(client, task).map(|place| self.beliefs[place])
    }

    pub(super) fn is_io_bound(&self, client: ClientId, task: TaskId) -> bool {
        self.belief(client, task).is_some_and(|belief| belief > self.threshold)
    }

    pub(super) fn has_io_bound(&self, client: ClientId) -> bool {
        self.guests.get(client.index()).is_some_and(|guest| guest.io_bound > 0)
    }

    /// An event is pending for a virtual processor that does not run.
    pub(super) fn event(&mut self, client: ClientId, event: Event) {
        let came = if event == Event::Other { PendingEvent::Other } else { PendingEvent::Input };
        if let Some(guest) = self.guests.get_mut(client.index()) {
            // A block or a packet is not forgotten for a later event of another kind.
            guest.pending = guest.pending.max(came);
        }
    }

    /// Whether a block or a packet is pending: the task that runs next may run for that.
    pub(super) fn is_input_pending(&self, client: ClientId) -> bool {
        self.guests.get(client.index()).is_some_and(|guest| guest.pending == PendingEvent::Input)
    }

    pub(super) fn dispatched(&mut self, client: ClientId, resumes: bool) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            guest.before = (guest.pending, guest.after_event);
            let came = core::mem::take(&mut guest.pending) != PendingEvent::Nothing;
            guest.after_event = came || (resumes && guest.after_event);
        }
    }

    /// The virtual processor was dispatched, but did not run: what was pending is pending still.
    pub(super) fn given_back(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            (guest.pending, guest.after_event) = guest.before;
        }
    }

    /// A task has given way to another; the belief in it changes accordingly.
    pub(super) fn judge(
        &mut self,
        client: ClientId,
        run: TaskRun,
        io_threshold_ns: Nanoseconds,
    ) -> Option<Evidence> {
        let guest = self.guests.get_mut(client.index())?;
        let evidence = classify(run, io_threshold_ns, guest.after_event);
        // Only after the verdict: this run itself was still after the event.
        guest.after_event &= evidence != Evidence::Negative;
        match evidence {
            Evidence::Positive => self.believe(client, run.task, self.positive),
            Evidence::Negative => self.believe(client, run.task, -self.negative),
            Evidence::Ambiguous => {}
        }
        Some(evidence)
    }

    /// A task has ended; its number starts from no belief either way.
    pub(super) fn exited(&mut self, client: ClientId, task: TaskId) {
        self.set(client, task, |_| 0);
    }

    fn believe(&mut self, client: ClientId, task: TaskId, step: i16) {
        let (least, most) = self.range;
        self.set(client, task, |belief| belief.saturating_add(step).clamp(least, most));
    }

    fn set(&mut self, client: ClientId, task: TaskId, change: impl FnOnce(i16) -> i16) {
        let Some(place) = self.place(client, task) else { return };
        // The count follows the crossing of the threshold, so that `has_io_bound` needs no search.
        let before = self.beliefs[place] > self.threshold;
        self.beliefs[place] = change(self.beliefs[place]);
        let after = self.beliefs[place] > self.threshold;
        let io_bound = &mut self.guests[client.index()].io_bound;
        *io_bound = io_bound.saturating_add(u16::from(after)).saturating_sub(u16::from(before));
    }

    fn place(&self, client: ClientId, task: TaskId) -> Option<usize> {
        let tracked = client.index() < self.guests.len() && task.index() < self.tasks;
        tracked.then(|| client.index() * self.tasks + task.index())
    }
}

fn classify(run: TaskRun, io_threshold_ns: Nanoseconds, after_event: bool) -> Evidence {
    if run.ran_ns > io_threshold_ns {
        Evidence::Negative
    } else if run.first || !after_event {
        Evidence::Ambiguous
    } else {
        Evidence::Positive
    }
}
