//! Probe sites: the places in the code where an event is logged while a scheduler reads it (LOG-2).
//!
//! On x86-64 a site is one five-byte no-op within one aligned 8-byte word, and a record in the section
//! `mete_sites`. Patching turns the no-op into a jump to the logging code and back. That code, which also
//! evaluates the probe's arguments, is out of line. On other machines a site tests the event's flag.

use mete_log::DomainId;

use crate::event::{Access, Event, Phase, RawEvent, Sample};
use crate::handler;

/// One record of the section `mete_sites`: `struct mete_site` of `mete.h`.
#[derive(Debug)]
#[repr(C)]
pub struct Site {
    /// Address of the no-op.
    pub(crate) code: usize,
    /// Address of the logging code.
    pub(crate) target: usize,
    /// The event.
    pub(crate) event: *const RawEvent,
}

// SAFETY: these are addresses of code and of a static event, the same for all threads.
unsafe impl Sync for Site {}

impl Site {
    /// The empty record, of no site.
    pub(crate) const NONE: Site = Site { code: 0, target: 0, event: core::ptr::null() };
}

/// The state of a phase between [`enter!`](crate::enter!) and [`exit!`](crate::exit!).
#[derive(Clone, Copy, Debug)]
#[must_use = "the phase's delta is charged by `exit!`"]
pub struct Entered(Option<u64>);

impl Entered {
    /// The event was off at the entry, or the threshold was not reached. The exit does nothing.
    pub const UNLOGGED: Entered = Entered(None);

    pub(crate) const fn at(value: u64) -> Entered {
        Entered(Some(value))
    }

    /// The value at the entry, if the exit is to log.
    #[inline(always)]
    pub fn value(self) -> Option<u64> {
        self.0
    }
}

/// Logs an access: `probe!(EVENT)`, `probe!(EVENT, correspondent)` or
/// `probe!(EVENT, correspondent, counter)`.
///
/// The correspondent is the [`DomainId`](mete_log::DomainId) at the other end; without it, it is
/// [`NO_DOMAIN`](mete_log::NO_DOMAIN). Without a counter, the counter is 1. The arguments are evaluated only
/// while the event is on, so they must not do the program's work.
///
/// ```
/// mete_probe::event! { static REQUEST: access "request"; }
/// let client = mete_probe::DomainId::new(3);
/// mete_probe::probe!(REQUEST, client);
/// ```
#[macro_export]
macro_rules! probe {
    ($event:path) => {
        $crate::probe!($event, $crate::NO_DOMAIN, 1)
    };
    ($event:path, $correspondent:expr) => {
        $crate::probe!($event, $correspondent, 1)
    };
    ($event:path, $correspondent:expr, $counter:expr $(,)?) => {
        $crate::__site!($event, { $crate::site::access(&$event, $correspondent, $counter) })
    };
}

/// Logs the present value of something: `sample!(EVENT, value)`, at a place that unrelated code passes
/// (thesis §3.3.1, asynchronous events).
///
/// ```
/// mete_probe::event! { static QUEUE: sample "queue length"; }
/// let queue = std::collections::VecDeque::<u32>::new();
/// mete_probe::sample!(QUEUE, queue.len() as u64);
/// ```
#[macro_export]
macro_rules! sample {
    ($event:path, $value:expr) => {
        $crate::sample!($event, $value, $crate::NO_DOMAIN)
    };
    ($event:path, $value:expr, $correspondent:expr $(,)?) => {
        $crate::__site!($event, { $crate::site::sample(&$event, $correspondent, $value) })
    };
}

/// Begins a phase of use. `let phase = enter!(EVENT)` reads the processor's counter; `enter!(EVENT, value)`
/// takes the caller's value (a count of references, for example).
///
/// ```
/// use mete_probe::{DomainId, enter, event, exit};
/// event! { static SERVICE: phase "service"; }
/// let phase = enter!(SERVICE);
/// // … serve the client of domain 3 …
/// exit!(SERVICE, phase, DomainId::new(3));
/// ```
#[macro_export]
macro_rules! enter {
    ($event:path) => {
        $crate::enter!($event, $crate::site::now())
    };
    ($event:path, $value:expr $(,)?) => {{
        let mut entered = $crate::site::Entered::UNLOGGED;
        $crate::__site!($event, { entered = $crate::site::enter(&$event, || $value) });
        entered
    }};
}

/// Ends a phase of use and charges the delta: `exit!(EVENT, phase)`, `exit!(EVENT, phase, correspondent)` or
/// `exit!(EVENT, phase, correspondent, value)`. The `value` is of the same kind as the one that [`enter!`]
/// was given. Does nothing if the event was off at the entry.
#[macro_export]
macro_rules! exit {
    ($event:path, $entered:expr) => {
        $crate::exit!($event, $entered, $crate::NO_DOMAIN)
    };
    ($event:path, $entered:expr, $correspondent:expr) => {
        $crate::exit!($event, $entered, $correspondent, $crate::site::now())
    };
    ($event:path, $entered:expr, $correspondent:expr, $value:expr $(,)?) => {{
        let entered: $crate::site::Entered = $entered;
        $crate::__site!($event, { $crate::site::exit(&$event, entered, || ($correspondent, $value)) })
    }};
}

/// One site: the no-op, its record, and `$log` out of line.
///
/// At most four bytes of padding bring the no-op into one aligned word. It can begin at the offsets 0 to 3 of
/// a word, so only the offsets 4 to 7 need padding.
#[cfg(all(target_arch = "x86_64", not(feature = "flag-check")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($event:path, $log:block) => {
        // SAFETY: the assembly is a no-op, or once patched a jump to the label. The compiler expects that it
        // can jump there. It touches no memory, register or flag.
        unsafe {
            ::core::arch::asm!(
                ".p2align 3, , 4",
                "2:",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".pushsection mete_sites, \"awR?\", @progbits",
                ".balign 8",
                ".quad 2b, {log}, {event}",
                ".popsection",
                log = label { $log },
                event = sym $event,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// One site: a test of the event's flag.
#[cfg(not(all(target_arch = "x86_64", not(feature = "flag-check"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($event:path, $log:block) => {
        if $event.is_enabled() $log
    };
}

/// What [`probe!`](crate::probe!) calls.
#[doc(hidden)]
#[inline(always)]
pub fn access(event: &'static Event<Access>, correspondent: DomainId, counter: u64) {
    handler::log(event, correspondent, counter);
}

/// What [`sample!`](crate::sample!) calls.
#[doc(hidden)]
#[inline(always)]
pub fn sample(event: &'static Event<Sample>, correspondent: DomainId, value: u64) {
    handler::log(event, correspondent, value);
}

/// What [`enter!`](crate::enter!) calls. The value is read only if the exit will log it.
#[doc(hidden)]
#[inline(always)]
pub fn enter(event: &'static Event<Phase>, value: impl FnOnce() -> u64) -> Entered {
    if handler::enter(event) { Entered::at(value()) } else { Entered::UNLOGGED }
}

/// What [`exit!`](crate::exit!) calls.
#[doc(hidden)]
#[inline(always)]
pub fn exit(event: &'static Event<Phase>, entered: Entered, arguments: impl FnOnce() -> (DomainId, u64)) {
    if let Some(before) = entered.value() {
        let (correspondent, now) = arguments();
        // Modulo 2^64: a value that went down gives a delta that is negative in two's complement.
        handler::exit(event, correspondent, now.wrapping_sub(before));
    }
}

/// The finest clock of the machine, as a bare number: a phase measures with the program's own values just as
/// well.
#[doc(hidden)]
#[inline(always)]
pub fn now() -> u64 {
    mete_log::clock::ticks().get()
}
