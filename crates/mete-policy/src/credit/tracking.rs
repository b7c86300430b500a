//! TAVS-2: which task runs on a virtual processor, seen by its address-space switches (§3.2).

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, Nanoseconds, TaskId};

/// The longest inspection window, in tasks.
pub(super) const WINDOW_MAX: usize = 16;

/// A run of a task, which has ended: its virtual processor switched to another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskRun {
    pub(super) task: TaskId,
    pub(super) ran_ns: Nanoseconds,
    /// The task was the first in the virtual processor's slice.
    pub(super) first: bool,
}

#[derive(Clone, Copy, Default)]
struct TrackedGuest {
    current: Option<TaskId>,
    /// Since when the current task runs, within the virtual processor's slice.
    since_ns: Nanoseconds,
    /// How long the current task had run when the virtual processor was preempted, if it was.
    paused_ns: Option<Nanoseconds>,
    /// No task has been switched in since the virtual processor was dispatched.
    first: bool,
    /// The tasks of this slice, the newest first; the first `seen` entries are real.
    window: [TaskId; WINDOW_MAX],
    seen: u8,
}

impl TrackedGuest {
    fn see(&mut self, task: TaskId) {
        self.window.rotate_right(1);
        self.window[0] = task;
        self.seen = self.seen.saturating_add(1).min(WINDOW_MAX as u8);
    }
}

/// All tracked virtual processors.
pub(super) struct Tracking {
    guests: Vec<TrackedGuest>,
    /// The guests before they were dispatched; `None` once a task was seen to be switched in or to exit.
    before: Vec<Option<TrackedGuest>>,
}

impl Tracking {
    pub(super) fn new(clients: u32) -> Tracking {
        Tracking {
            guests: vec![TrackedGuest::default(); clients as usize],
            before: vec![None; clients as usize],
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            *guest = TrackedGuest::default();
        }
        self.carried_out(client);
    }

    /// The virtual processor was seen to run: its dispatch cannot be taken back any more.
    fn carried_out(&mut self, client: ClientId) {
        if let Some(before) = self.before.get_mut(client.index()) {
            *before = None;
        }
    }

    /// The virtual processor was dispatched, but did not run. `false`: it did run.
    pub(super) fn given_back(&mut self, client: ClientId) -> bool {
        let Some(before) = self.before.get_mut(client.index()).and_then(Option::take) else { return false };
        if let Some(guest) = self.guests.get_mut(client.index()) {
            *guest = before;
        }
        true
    }

    /// The virtual processor left its processor.
    pub(super) fn stopped(&mut self, client: ClientId, preempted: bool, now: Nanoseconds) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            // For a preemption the run is only paused: the time until it is resumed is not the task's.
            guest.paused_ns = preempted.then(|| now.saturating_sub(guest.since_ns));
        }
    }

    pub(super) fn was_preempted(&self, client: ClientId) -> bool {
        self.guests.get(client.index()).is_some_and(|guest| guest.paused_ns.is_some())
    }

    /// The virtual processor begins a slice with the task that it had, or resumes one. `keeps`: even if the
    /// run is judged anew, the slice is the one that its driver interrupted (KeepOnRunQ). So the inspection
    /// window, which is a slice's (§3.5.1), goes on.
    pub(super) fn dispatched(&mut self, client: ClientId, resumes: bool, keeps: bool, now: Nanoseconds) {
        let Some(guest) = self.guests.get_mut(client.index()) else { return };
        if let Some(before) = self.before.get_mut(client.index()) {
            *before = Some(*guest);
        }
        let paused_ns = guest.paused_ns.take();
        if let Some(ran_ns) = paused_ns.filter(|_| resumes) {
            // As if the task had run without a pause, so that its run's length needs no other sum.
            guest.since_ns = now.saturating_sub(ran_ns);
            return;
        }
        (guest.since_ns, guest.first) = (now, true);
        if keeps {
            return;
        }
        guest.seen = 0;
        if let Some(task) = guest.current {
            guest.see(task);
        }
    }

    /// Another task is switched in. Answers the run of the task before, if that task is known and is another
    /// one.
    pub(super) fn switch(&mut self, client: ClientId, task: TaskId, now: Nanoseconds) -> Option<TaskRun> {
        self.carried_out(client);
        let guest = self.guests.get_mut(client.index())?;
        if guest.current == Some(task) {
            return None;
        }
        let before = guest.current.map(|before| TaskRun {
            task: before,
            ran_ns: now.saturating_sub(guest.since_ns),
            first: guest.first,
        });
        (guest.current, guest.since_ns, guest.first) = (Some(task), now, false);
        guest.see(task);
        before
    }

    /// A task has ended; its number may come again for another task.
    pub(super) fn exited(&mut self, client: ClientId, task: TaskId) {
        self.carried_out(client);
        if let Some(guest) = self.guests.get_mut(client.index())
            && guest.current == Some(task)
        {
            guest.current = None;
        }
    }

    /// The last `window` tasks of this slice, the running one included.
    pub(super) fn window(&self, client: ClientId, window: u8) -> &[TaskId] {
        let Some(guest) = self.guests.get(client.index()) else { return &[] };
        // The slice may be younger than the window is long.
        let length = usize::from(guest.seen.min(window.max(1)));
        guest.window.get(..length).unwrap_or(&[])
    }
}
