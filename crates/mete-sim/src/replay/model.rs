//! Recorded threads as clients of a simulated host.

use std::cell::Cell;
use std::rc::Rc;

use mete_policy::{ClientId, Nanoseconds, Policy, Share};

use super::linux::Wakers;
use super::machine::{Machine, WakeSource};
use super::recording::{Action, Recording, Script, Step as Recorded};
use crate::host::{Hardware, Host};
use crate::metrics::Latencies;
use crate::model::{Context, Model, Reaction, Step};
use crate::random::Stream;
use crate::recorder::Recorder;

/// The signals that a recorded thread gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Another recorded thread wakes it.
    Woken,
    /// Its wait for something outside the recorded threads is over.
    WaitIsOver,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    No,
    ForThread,
    ForOutside,
}

/// How far a thread is.
struct Progress {
    step: usize,
    left_ns: Nanoseconds,
    waiting: Waiting,
    /// Wake-ups that came before it waited for them. Under another policy a waker may be earlier.
    early: u32,
    /// When it was woken, if it was and does not run yet.
    woken_ns: Option<Nanoseconds>,
    /// The times from each wake-up to running.
    waits: Latencies,
}

/// A thread at its beginning. A thread that begins with a wait does not run for that.
fn start(script: &Script) -> Progress {
    let first = script.steps.first().copied();
    let waiting = match first {
        Some(Recorded { compute_ns: Nanoseconds::ZERO, action: Action::Await }) => Waiting::ForThread,
        Some(Recorded { compute_ns: Nanoseconds::ZERO, action: Action::Sleep { .. } }) => Waiting::ForOutside,
        _ => Waiting::No,
    };
    Progress {
        step: 0,
        left_ns: first.map_or(Nanoseconds::ZERO, |step| step.compute_ns),
        waiting,
        early: 0,
        woken_ns: None,
        waits: Latencies::default(),
    }
}

/// The threads of a recording, each a client whose number is its script's index.
///
/// A replay ends: each wait for a thread is matched by one wake-up in another script, and threads cannot wake
/// each other in a circle, because it all happened once.
pub struct Replay<'a> {
    scripts: &'a [Script],
    progress: Vec<Progress>,
    machine: &'a Machine,
    starts: Stream,
    wakers: Wakers,
}

impl<'a> Replay<'a> {
    /// All threads at their beginning. The costs of wake-ups are drawn from the recording with this seed.
    pub fn new(recording: &'a Recording, seed: u64) -> Replay<'a> {
        Replay {
            scripts: &recording.scripts,
            progress: recording.scripts.iter().map(start).collect(),
            machine: &recording.machine,
            starts: Stream::new(seed, "what starts cost"),
            wakers: recording.scripts.iter().map(|_| Cell::new(None)).collect(),
        }
    }

    /// The thread that woke each thread last, also while that runs.
    pub(super) fn wakers(&self) -> Wakers {
        Rc::clone(&self.wakers)
    }

    /// A host that is about to run them, under a policy that knows their domains. The threads have equal shares of
    /// what their domains have.
    pub fn host<P: Policy, R: Recorder>(
        self,
        hardware: Hardware,
        policy: P,
        recorder: R,
    ) -> Host<P, Replay<'a>, R> {
        let scripts = self.scripts;
        let mut host = Host::new(hardware, policy, self, recorder);
        for (client, script) in (0..).map(ClientId::new).zip(scripts) {
            match script.steps.first() {
                Some(Recorded { compute_ns: Nanoseconds::ZERO, action: Action::Await }) => {
                    host.add_blocked(client, script.domain, Share::ONE);
                }
                Some(Recorded { compute_ns: Nanoseconds::ZERO, action: Action::Sleep { ns } }) => {
                    host.add_blocked(client, script.domain, Share::ONE);
                    host.prepare(|_, context| {
                        context.notify_after(*ns, client, Signal::WaitIsOver);
                    });
                }
                _ => host.add(client, script.domain, Share::ONE, Nanoseconds::ZERO),
            }
        }
        host
    }

    /// Forgets the waits until now. One that goes on counts as a whole.
    pub(super) fn forget_waits(&mut self) {
        self.progress.iter_mut().for_each(|progress| progress.waits = Latencies::default());
    }

    /// The times from each wake-up of each thread to its running.
    pub(super) fn waits(&self) -> impl Iterator<Item = &Latencies> {
        self.progress.iter().map(|progress| &progress.waits)
    }

    /// Whether a thread has done all that it did in the recording.
    pub fn is_done(&self, client: ClientId) -> bool {
        let index = client.index();
        self.progress.get(index).is_none_or(|progress| progress.step >= self.scripts[index].steps.len())
    }

    fn recorded(&self, client: ClientId) -> Option<Recorded> {
        let index = client.index();
        self.scripts.get(index)?.steps.get(self.progress[index].step).copied()
    }

    fn go_on(&mut self, client: ClientId) {
        let index = client.index();
        self.progress[index].waiting = Waiting::No;
        self.progress[index].step += 1;
        self.progress[index].left_ns =
            self.recorded(client).map_or(Nanoseconds::ZERO, |step| step.compute_ns);
    }

    /// Carries out what follows when the step's computing is done.
    fn act(&mut self, client: ClientId, action: Action, context: &mut Context<Self>) -> Step {
        let progress = &mut self.progress[client.index()];
        match action {
            Action::Wake(woken) => {
                self.wakers[woken].set(Some(client));
                context.notify(ClientId::at(woken), Signal::Woken);
            }
            Action::Sleep { ns } => {
                progress.waiting = Waiting::ForOutside;
                context.notify_after(ns, client, Signal::WaitIsOver);
                return Step::Block;
            }
            Action::Await if progress.early == 0 => {
                progress.waiting = Waiting::ForThread;
                return Step::Block;
            }
            // The wake-up has come already.
            Action::Await => progress.early -= 1,
            // The step is passed, so that the thread counts as done.
            Action::End => {
                self.go_on(client);
                return Step::Exit;
            }
        }
        self.go_on(client);
        Step::Continue
    }
}

impl Model for Replay<'_> {
    type Signal = Signal;
    type Event = ();

    fn next(&mut self, client: ClientId, context: &mut Context<Self>) -> Step {
        match (self.progress[client.index()].left_ns, self.recorded(client)) {
            (Nanoseconds::ZERO, Some(step)) => self.act(client, step.action, context),
            (Nanoseconds::ZERO, None) => Step::Exit,
            (left_ns, _) => Step::Compute(left_ns),
        }
    }

    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let progress = &mut self.progress[client.index()];
        progress.left_ns = progress.left_ns.saturating_sub(ran_ns);
    }

    fn deliver(&mut self, client: ClientId, signal: Signal, context: &mut Context<Self>) -> Reaction {
        let progress = &mut self.progress[client.index()];
        match (progress.waiting, signal) {
            (Waiting::ForThread, Signal::Woken) | (Waiting::ForOutside, Signal::WaitIsOver) => {
                progress.woken_ns = Some(context.now_ns);
                // A timer or a device has woken it, not a recorded thread.
                if signal == Signal::WaitIsOver {
                    self.wakers[client.index()].set(None);
                }
                self.go_on(client);
                Reaction::Wake
            }
            // The waker may be earlier than it was in the recording; the thread then finds the wake-up later.
            _ => {
                progress.early += u32::from(signal == Signal::Woken);
                Reaction::Pending
            }
        }
    }

    fn waker(&self, client: ClientId) -> Option<ClientId> {
        self.wakers[client.index()].get()
    }

    /// Only a woken thread finds a processor that has to leave its idle state first.
    fn start_ns(&mut self, client: ClientId, is_remote: bool) -> Nanoseconds {
        match self.progress[client.index()].woken_ns {
            Some(_) => self.machine.draw_idle_ns(WakeSource::remote(is_remote), &mut self.starts),
            None => Nanoseconds::ZERO,
        }
    }

    fn make_way_ns(&mut self, client: ClientId, is_remote: bool) -> Nanoseconds {
        let has_waker = self.waker(client).is_some();
        self.machine.draw_make_way_ns(WakeSource::remote(is_remote), has_waker, &mut self.starts)
    }

    fn dispatched(&mut self, client: ClientId, context: &mut Context<Self>) {
        let progress = &mut self.progress[client.index()];
        if let Some(woken_ns) = progress.woken_ns.take() {
            progress.waits.record(context.now_ns - woken_ns);
        }
    }

    fn event(&mut self, _event: (), _context: &mut Context<Self>) {}
}
