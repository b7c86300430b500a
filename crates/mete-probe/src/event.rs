//! Events: the predefined points where a characteristic accrues, known when the program is built
//! (LOG-1, LOG-2; thesis §3.3).

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use mete_log::EventId;

use crate::flag;

/// How an event's rows come about (thesis §3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ProbeKind {
    /// On a change or an access: each occurrence counts one, or the number that the probe gives.
    Access = 0,
    /// On entry and exit of a phase of use: the delta is charged at the exit.
    Phase = 1,
    /// Asynchronous: the present value of something, each time a thread passes the probe.
    Sample = 2,
}

impl ProbeKind {
    /// The kind from its number, which messages and C code use.
    pub const fn from_number(number: u16) -> Option<ProbeKind> {
        match number {
            0 => Some(ProbeKind::Access),
            1 => Some(ProbeKind::Phase),
            2 => Some(ProbeKind::Sample),
            _ => None,
        }
    }
}

/// [`ProbeKind`] as a type: a probe of the wrong kind for its event does not compile.
pub trait EventKind {
    /// The kind as a value.
    const KIND: ProbeKind;
}

/// See [`ProbeKind::Access`].
#[derive(Clone, Copy, Debug)]
pub enum Access {}
/// See [`ProbeKind::Phase`].
#[derive(Clone, Copy, Debug)]
pub enum Phase {}
/// See [`ProbeKind::Sample`].
#[derive(Clone, Copy, Debug)]
pub enum Sample {}

impl EventKind for Access {
    const KIND: ProbeKind = ProbeKind::Access;
}
impl EventKind for Phase {
    const KIND: ProbeKind = ProbeKind::Phase;
}
impl EventKind for Sample {
    const KIND: ProbeKind = ProbeKind::Sample;
}

/// The number of an event that is not published: no scheduler can know it.
const UNPUBLISHED: EventId = EventId::new(u16::MAX);

/// What all kinds of events have in common: `struct mete_event` of `mete.h`.
#[derive(Debug)]
#[repr(C)]
pub struct RawEvent {
    pub(crate) name: *const c_char,
    pub(crate) kind: u16,
    pub(crate) id: AtomicU16,
    pub(crate) enabled: AtomicBool,
}

// SAFETY: `name` points to a static string that is never written. The other fields are constant or atomic.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    /// The event's name.
    pub fn name(&self) -> &'static CStr {
        // SAFETY: `Event::new` made the pointer from a `&'static CStr`, or `mete.h` from a literal.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// The event's kind. A number that C code made up reads as [`ProbeKind::Access`].
    pub fn kind(&self) -> ProbeKind {
        ProbeKind::from_number(self.kind).unwrap_or(ProbeKind::Access)
    }

    /// The event's number in rows, from publication on.
    #[inline(always)]
    pub fn id(&self) -> EventId {
        EventId::new(flag::number(&self.id))
    }

    /// Whether the event is on. Where code is not patched, a probe tests this.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        flag::is_set(&self.enabled)
    }

    pub(crate) fn is_published(&self) -> bool {
        self.id() != UNPUBLISHED
    }

    pub(crate) fn publish(&self, id: EventId) {
        // Relaxed: stored once, before the event is switched on, which releases it.
        self.id.store(id.get(), Ordering::Relaxed);
    }

    pub(crate) fn set_enabled(&self, on: bool) {
        flag::set(&self.enabled, on);
    }
}

/// An event of one kind, declared by [`event!`](crate::event!).
#[derive(Debug)]
#[repr(transparent)]
pub struct Event<K> {
    raw: RawEvent,
    kind: PhantomData<fn() -> K>,
}

impl<K: EventKind> Event<K> {
    /// An event that no section lists: [`event!`](crate::event!) makes it and puts it into the section.
    #[doc(hidden)]
    pub const fn new(name: &'static CStr) -> Event<K> {
        let raw = RawEvent {
            name: name.as_ptr(),
            kind: K::KIND as u16,
            id: AtomicU16::new(UNPUBLISHED.get()),
            enabled: AtomicBool::new(false),
        };
        Event { raw, kind: PhantomData }
    }

    /// The event without its kind.
    pub const fn raw(&self) -> &RawEvent {
        &self.raw
    }
}

impl<K> core::ops::Deref for Event<K> {
    type Target = RawEvent;

    #[inline(always)]
    fn deref(&self) -> &RawEvent {
        &self.raw
    }
}

/// Declares events as statics and lists them for publication.
///
/// ```
/// mete_probe::event! {
///     /// A client's request was taken from the queue.
///     pub static REQUEST: access "request";
///     /// From taking a request to answering it.
///     pub static SERVICE: phase "service";
///     /// Length of the request queue.
///     static QUEUE: sample "queue length";
/// }
/// ```
#[macro_export]
macro_rules! event {
    ($($(#[$meta:meta])* $vis:vis static $ident:ident : $kind:ident $name:literal;)+) => {$(
        $(#[$meta])*
        $vis static $ident: $crate::event::Event<$crate::__event_kind!($kind)> =
            $crate::event::Event::new(match ::core::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("an event's name must not contain NUL"),
            });
        $crate::__list_event!($ident);
    )+};
}

/// The kinds' names in [`event!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __event_kind {
    (access) => {
        $crate::event::Access
    };
    (phase) => {
        $crate::event::Phase
    };
    (sample) => {
        $crate::event::Sample
    };
}

/// Puts an event's address into the section that the registry walks.
#[doc(hidden)]
#[macro_export]
macro_rules! __list_event {
    ($ident:ident) => {
        const _: () = {
            // A linker can drop this entry, because nothing refers to it. An event that has sites is then
            // found by them.
            #[used]
            #[unsafe(link_section = "mete_events")]
            static ENTRY: Option<&'static $crate::event::RawEvent> = Some($ident.raw());
        };
    };
}
