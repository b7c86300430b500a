//! What the manager knows of each processor that the policy names clients for.

use mete_policy::{ClientId, Nanoseconds};

use crate::step_back::StepBack;

/// A processor as the policy sees it, with the client that the policy has named for it. The kernel may run
/// that one elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Whether any client may run on this processor.
    pub is_used: bool,
    pub chosen: Option<Chosen>,
    /// The client that stands in front for it until another one does.
    pub held: Option<ClientId>,
    /// A thread that the client has started is awaited: which, and until when.
    pub birth: Option<(u32, Nanoseconds)>,
    /// While the client stands among ordinary threads.
    pub pause: Option<Pause>,
    /// The last step back that is over.
    pub returns: Option<Return>,
}

/// A client that comes to the front again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Return {
    pub client: ClientId,
    /// Where it had stepped back.
    pub place: usize,
    /// What its account said when that was over.
    pub account: u64,
}

impl Return {
    /// Where the client comes back, if it is this one, and has not run since. One that ran then was where the programs say.
    pub fn place_of(&self, client: ClientId, account: u64) -> Option<usize> {
        let waits = account & 1 == 0;
        (self.client == client && self.account == account && waits).then_some(self.place)
    }
}

/// A processor as the kernel sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub step_back: StepBack,
    /// The slot whose client is here, as it was found last.
    pub slot: Option<usize>,
    /// What tasks that are no clients have had here, as far as it is counted; `None` before the first step.
    pub had: Option<Nanoseconds>,
}

/// A client's step back for tasks that are no clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub client: ClientId,
    /// When it is over, or is looked at.
    pub until: Nanoseconds,
    /// Where they run meanwhile; and where the client was, which is another one's then if it is another processor.
    pub place: usize,
    pub left: usize,
    pub why: Why,
    /// What they have had there before, and are to have in it.
    pub had: Nanoseconds,
    pub length: Nanoseconds,
    /// When it is over, whatever they have had.
    pub latest: Nanoseconds,
    /// After how long it is looked at next, as long as they have had nothing.
    pub interval: Nanoseconds,
}

/// Why a client steps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// None waits: the kernel asks for it, or tasks are to come from elsewhere.
    NoneWaits,
    /// Tasks wait: how many of them have not been served.
    Wanted(u32),
}

/// The client that the policy has named for the processor, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub client: ClientId,
    pub slice: Nanoseconds,
    /// What it had used when it was chosen.
    pub before: Nanoseconds,
    /// When its slice ends if it runs all the time.
    pub ends: Nanoseconds,
    /// When it is over in any case.
    pub last: Nanoseconds,
}

impl Slot {
    /// Without a client.
    pub fn new() -> Slot {
        Slot { is_used: true, chosen: None, held: None, birth: None, pause: None, returns: None }
    }

    /// Whether the client has stepped back for tasks on this processor.
    pub fn steps_back_at(&self, place: usize) -> bool {
        self.pause.is_some_and(|pause| pause.place == place)
    }
}
