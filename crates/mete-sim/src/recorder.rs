//! The watchers of a run: metrics and traces attach here. A recorder that does nothing costs nothing.

use mete_policy::{ClientId, DomainIndex, Grant, Nanoseconds, Observation, ProcessorId, Share, Stop};

/// What only a model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A client's request was answered. The time is measured where it is felt: at the client or machine that
    /// asked.
    Response {
        /// The client that answered, or that asked a remote machine.
        client: ClientId,
        /// The client's port.
        port: u16,
        /// The time from the request to the answer.
        took_ns: Nanoseconds,
    },
    /// A task has completed its program, or a part of it that counts.
    Done {
        /// The task's client.
        client: ClientId,
        /// The task's number in its guest; 0 where the client is the task.
        task: u16,
    },
    /// A task inside a guest woke for an event.
    TaskWoke {
        /// The virtual processor.
        client: ClientId,
        /// The task's number in its guest.
        task: u16,
        /// The time from the event's arrival at the guest's domain until the task is runnable.
        pending_ns: Nanoseconds,
    },
}

/// Defines [`Recorder`], and recorders that pass everything on to others.
macro_rules! recorder {
    ($($(#[$about:meta])* fn $call:ident($($argument:ident: $kind:ty),*);)*) => {
        /// Receives what happens on a host, in order. All methods do nothing by default.
        pub trait Recorder {
            $($(#[$about])* fn $call(&mut self, $($argument: $kind),*) { let _ = ($($argument),*); })*
        }

        /// No watcher.
        impl Recorder for () {}

        /// Two watchers.
        impl<A: Recorder, B: Recorder> Recorder for (A, B) {
            $(fn $call(&mut self, $($argument: $kind),*) {
                self.0.$call($($argument),*);
                self.1.$call($($argument),*);
            })*
        }

        /// A watcher that is present or not, decided at run time.
        impl<R: Recorder> Recorder for Option<R> {
            $(fn $call(&mut self, $($argument: $kind),*) {
                self.iter_mut().for_each(|recorder| recorder.$call($($argument),*));
            })*
        }
    };
}

recorder! {
    /// A client became runnable.
    fn woke(client: ClientId, now_ns: Nanoseconds);

    /// A client got a processor. If switches cost time, the switch begins now.
    fn dispatched(processor: ProcessorId, client: ClientId, grant: Grant, now_ns: Nanoseconds);

    /// A client left its processor. `ran_ns` is the time that the policy is told.
    fn stopped(processor: ProcessorId, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now_ns: Nanoseconds);

    /// A client has exited.
    fn exited(client: ClientId, now_ns: Nanoseconds);

    /// A client's share has changed.
    fn share_set(client: ClientId, share: Share, now_ns: Nanoseconds);

    /// A domain's share has changed.
    fn domain_share_set(domain: DomainIndex, share: Share, now_ns: Nanoseconds);

    /// The policy was shown something.
    fn observed(observation: Observation, now_ns: Nanoseconds);

    /// The model reported something.
    fn noted(note: Note, now_ns: Nanoseconds);
}
