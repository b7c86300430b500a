//! Recorded threads as clients of a simulated host.

use mete_policy::{ClientId, Nanoseconds, Policy, Share};

use super::recording::{Action, Recording, Script, Step as Recorded};
use crate::host::{Hardware, Host};
use crate::model::{Context, Model, Reaction, Step};
use crate::recorder::Recorder;

/// What a recorded thread is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Another recorded thread wakes it.
    Woken,
    /// What it waited for outside has taken its time.
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
    /// Wake-ups that came before it waited for them: under another policy a waker may be earlier.
    early: u32,
}

/// The threads of a recording, each a client whose number is its script's index.
///
/// It ends: each wait for a thread is matched by one wake-up in another script, and what woke whom
/// cannot be a circle, because it once happened.
pub struct Replay<'a> {
    scripts: &'a [Script],
    progress: Vec<Progress>,
}

impl<'a> Replay<'a> {
    /// All threads at their beginning.
    #[must_use]
    pub fn new(recording: &'a Recording) -> Replay<'a> {
        let scripts = &recording.scripts;
        let first = |script: &Script| script.steps.first().map_or(0, |step| step.compute_ns);
        let start = |script| Progress { step: 0, left_ns: first(script), waiting: Waiting::No, early: 0 };
        Replay { scripts, progress: scripts.iter().map(start).collect() }
    }

    /// A host that is about to run the recording; the threads have equal shares.
    pub fn host<P: Policy, R: Recorder>(
        recording: &'a Recording,
        hardware: Hardware,
        policy: P,
        recorder: R,
    ) -> Host<P, Replay<'a>, R> {
        let mut host = Host::new(hardware, policy, Replay::new(recording), recorder);
        for client in (0..).take(recording.scripts.len()) {
            host.add(client, 0, Share::ONE, 0);
        }
        host
    }

    /// Whether a thread has done all that it did in the recording.
    #[must_use]
    pub fn is_done(&self, client: ClientId) -> bool {
        let index = client as usize;
        self.progress.get(index).is_none_or(|progress| progress.step >= self.scripts[index].steps.len())
    }

    fn recorded(&self, client: ClientId) -> Option<Recorded> {
        let index = client as usize;
        self.scripts.get(index)?.steps.get(self.progress[index].step).copied()
    }

    fn go_on(&mut self, client: ClientId) {
        let index = client as usize;
        self.progress[index].waiting = Waiting::No;
        self.progress[index].step += 1;
        self.progress[index].left_ns = self.recorded(client).map_or(0, |step| step.compute_ns);
    }

    /// What follows when the step's computing is done.
    fn act(&mut self, client: ClientId, action: Action, context: &mut Context<'_, Self>) -> Step {
        let progress = &mut self.progress[client as usize];
        match action {
            Action::Wake(woken) => context.notify(woken as ClientId, Signal::Woken),
            Action::Sleep { ns } => {
                progress.waiting = Waiting::ForOutside;
                context.notify_after(ns, client, Signal::WaitIsOver);
                return Step::Block;
            }
            Action::Await if progress.early == 0 => {
                progress.waiting = Waiting::ForThread;
                return Step::Block;
            }
            Action::Await => progress.early -= 1,
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

    fn next(&mut self, client: ClientId, context: &mut Context<'_, Self>) -> Step {
        match (self.progress[client as usize].left_ns, self.recorded(client)) {
            (0, Some(step)) => self.act(client, step.action, context),
            (0, None) => Step::Exit,
            (left_ns, _) => Step::Compute(left_ns),
        }
    }

    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let progress = &mut self.progress[client as usize];
        progress.left_ns = progress.left_ns.saturating_sub(ran_ns);
    }

    fn deliver(&mut self, client: ClientId, signal: Signal, _context: &mut Context<'_, Self>) -> Reaction {
        let progress = &mut self.progress[client as usize];
        match (progress.waiting, signal) {
            (Waiting::ForThread, Signal::Woken) | (Waiting::ForOutside, Signal::WaitIsOver) => {
                self.go_on(client);
                Reaction::Wake
            }
            _ => {
                progress.early += u32::from(signal == Signal::Woken);
                Reaction::Pending
            }
        }
    }

    fn event(&mut self, _event: (), _context: &mut Context<'_, Self>) {}
}
