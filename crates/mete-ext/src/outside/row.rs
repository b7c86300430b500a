//! What the kernel's side tells (`bpf/rows.bpf.h`).

use mete_policy::{Event, Nanoseconds, RequestId};

use crate::skeleton::outside::types::{dvtrr_event, row_kind};

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub time: Nanoseconds,
    /// What the client has used since it joined; of [`RowKind::Taken`], the number of the processor.
    pub used: Nanoseconds,
    /// The client, or the domain.
    pub number: u32,
    /// How often the client has begun to wait; of a decision that was missed, the last bits of that for which it was made.
    pub generation: u32,
    pub kind: RowKind,
    /// What has woken the client, if it was none of the others.
    pub event: Option<Event>,
}

/// The event of that number. Which request of a block it was is not told.
pub(crate) fn event_of(number: u8, port: u16) -> Option<Event> {
    match dvtrr_event(number) {
        dvtrr_event::DVTRR_INTERRUPT => Some(Event::Other),
        dvtrr_event::DVTRR_BLOCK => Some(Event::Block(RequestId::new(0))),
        dvtrr_event::DVTRR_PACKET => Some(Event::Packet { port }),
        _ => None,
    }
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The task is a client from now on.
    Joined,
    /// It is none any more.
    Left,
    /// The client has another weight, another domain, or may run on other processors.
    Changed,
    /// It waits for a processor, after it was away.
    Woke,
    /// It waits again, after its slice.
    Expired,
    /// It waits again, after a part of its slice.
    Preempted,
    /// The same, because it gave way by itself.
    Yielded,
    /// It waits for something else than a processor.
    Blocked,
    /// It runs without a decision.
    Taken,
    /// A decision about the client could not be carried out.
    Missed,
    /// A domain has come, gone, or has another weight.
    Domain,
    /// What no program writes.
    Unknown,
}

impl RowKind {
    /// Whether such a row says what the client has used.
    pub fn has_used(self) -> bool {
        matches!(
            self,
            RowKind::Woke | RowKind::Expired | RowKind::Preempted | RowKind::Yielded | RowKind::Blocked
        )
    }

    pub fn of(number: u8) -> RowKind {
        match row_kind(number) {
            row_kind::ROW_JOINED => RowKind::Joined,
            row_kind::ROW_LEFT => RowKind::Left,
            row_kind::ROW_CHANGED => RowKind::Changed,
            row_kind::ROW_WOKE => RowKind::Woke,
            row_kind::ROW_EXPIRED => RowKind::Expired,
            row_kind::ROW_PREEMPTED => RowKind::Preempted,
            row_kind::ROW_YIELDED => RowKind::Yielded,
            row_kind::ROW_BLOCKED => RowKind::Blocked,
            row_kind::ROW_TAKEN => RowKind::Taken,
            row_kind::ROW_MISSED => RowKind::Missed,
            row_kind::ROW_DOMAIN => RowKind::Domain,
            _ => RowKind::Unknown,
        }
    }
}
