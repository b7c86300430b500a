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

/// Receives what happens on a host, in order. All methods do nothing by default.
pub trait Recorder {
    /// A client became runnable.
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        let _ = (client, now_ns);
    }

    /// A client got a processor. If switches cost time, the switch begins now.
    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, grant: Grant, now_ns: Nanoseconds) {
        let _ = (processor, client, grant, now_ns);
    }

    /// A client left its processor. `ran_ns` is the time that the policy is told.
    fn stopped(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        let _ = (processor, client, ran_ns, stop, now_ns);
    }

    /// A client has exited.
    fn exited(&mut self, client: ClientId, now_ns: Nanoseconds) {
        let _ = (client, now_ns);
    }

    /// A client's share has changed.
    fn share_set(&mut self, client: ClientId, share: Share, now_ns: Nanoseconds) {
        let _ = (client, share, now_ns);
    }

    /// A domain's share has changed.
    fn domain_share_set(&mut self, domain: DomainIndex, share: Share, now_ns: Nanoseconds) {
        let _ = (domain, share, now_ns);
    }

    /// The policy was shown something.
    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        let _ = (observation, now_ns);
    }

    /// The model reported something.
    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        let _ = (note, now_ns);
    }
}

/// No watcher.
impl Recorder for () {}

/// Two watchers.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.0.woke(client, now_ns);
        self.1.woke(client, now_ns);
    }

    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, grant: Grant, now_ns: Nanoseconds) {
        self.0.dispatched(processor, client, grant, now_ns);
        self.1.dispatched(processor, client, grant, now_ns);
    }

    fn stopped(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        self.0.stopped(processor, client, ran_ns, stop, now_ns);
        self.1.stopped(processor, client, ran_ns, stop, now_ns);
    }

    fn exited(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.0.exited(client, now_ns);
        self.1.exited(client, now_ns);
    }

    fn share_set(&mut self, client: ClientId, share: Share, now_ns: Nanoseconds) {
        self.0.share_set(client, share, now_ns);
        self.1.share_set(client, share, now_ns);
    }

    fn domain_share_set(&mut self, domain: DomainIndex, share: Share, now_ns: Nanoseconds) {
        self.0.domain_share_set(domain, share, now_ns);
        self.1.domain_share_set(domain, share, now_ns);
    }

    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        self.0.observed(observation, now_ns);
        self.1.observed(observation, now_ns);
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        self.0.noted(note, now_ns);
        self.1.noted(note, now_ns);
    }
}

/// A watcher that is present or not, decided at run time.
impl<R: Recorder> Recorder for Option<R> {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.woke(client, now_ns);
        }
    }

    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, grant: Grant, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.dispatched(processor, client, grant, now_ns);
        }
    }

    fn stopped(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        if let Some(recorder) = self {
            recorder.stopped(processor, client, ran_ns, stop, now_ns);
        }
    }

    fn exited(&mut self, client: ClientId, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.exited(client, now_ns);
        }
    }

    fn share_set(&mut self, client: ClientId, share: Share, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.share_set(client, share, now_ns);
        }
    }

    fn domain_share_set(&mut self, domain: DomainIndex, share: Share, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.domain_share_set(domain, share, now_ns);
        }
    }

    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.observed(observation, now_ns);
        }
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        if let Some(recorder) = self {
            recorder.noted(note, now_ns);
        }
    }
}
