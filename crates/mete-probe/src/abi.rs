//! The C interface: the functions that `include/mete.h` calls.
//!
//! An event is a [`RawEvent`], a site record is a [`Site`]. The header declares both with the same layout;
//! the assertions below make sure of that.

use core::mem::offset_of;

use mete_log::DomainId;

use crate::event::RawEvent;
use crate::registry::ProbeModule;
use crate::site::Site;
use crate::{domain, handler, memory, publish};

const _: () = {
    assert!(
        size_of::<RawEvent>() == 16 && offset_of!(RawEvent, name) == 0 && offset_of!(RawEvent, kind) == 8
    );
    assert!(offset_of!(RawEvent, id) == 10 && offset_of!(RawEvent, enabled) == 12);
    assert!(size_of::<Site>() == 24 && offset_of!(Site, target) == 8 && offset_of!(Site, event) == 16);
};

/// Registers the sections of one module. `mete.h` does so from a constructor, once in each translation unit.
/// Repetitions have no effect.
///
/// # Safety
///
/// The bounds must be those of the module's sections `mete_sites` and `mete_events`, or null; the
/// module must call [`mete_unregister`] before it is unloaded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mete_register(
    sites: *const Site,
    sites_end: *const Site,
    events: *const Option<&'static RawEvent>,
    events_end: *const Option<&'static RawEvent>,
) {
    // SAFETY: passed on from the caller.
    publish::register(unsafe { ProbeModule::new(sites..sites_end, events..events_end) });
}

/// Forgets the module whose events begin at this address.
#[unsafe(no_mangle)]
pub extern "C" fn mete_unregister(events: *const Option<&'static RawEvent>) {
    publish::unregister(events);
}

/// Logs one occurrence.
#[unsafe(no_mangle)]
pub extern "C" fn mete_note_event(event: &'static RawEvent, correspondent: DomainId, counter: u64) {
    handler::log(event, correspondent, counter);
}

/// The entry into a phase. Answers whether the exit is to log.
#[unsafe(no_mangle)]
pub extern "C" fn mete_enter_event(event: &'static RawEvent) -> bool {
    handler::enter(event)
}

/// The exit from a phase whose entry answered yes.
#[unsafe(no_mangle)]
pub extern "C" fn mete_exit_event(event: &'static RawEvent, correspondent: DomainId, delta: u64) {
    handler::exit(event, correspondent, delta);
}

/// The finest clock of the machine. It measures the phases for which the program gives no values of its own.
#[unsafe(no_mangle)]
pub extern "C" fn mete_now() -> u64 {
    mete_log::clock::ticks().get()
}

/// Sets the calling thread's domain.
#[unsafe(no_mangle)]
pub extern "C" fn mete_set_domain(domain: DomainId) {
    domain::set_domain(domain);
}

/// Sets the domain of the threads that have none of their own.
#[unsafe(no_mangle)]
pub extern "C" fn mete_set_process_domain(domain: DomainId) {
    domain::set_process_domain(domain);
}

/// The domain of a process as the scheduler publishes it. [`NO_DOMAIN`](crate::NO_DOMAIN) if the process is
/// bound to none.
#[unsafe(no_mangle)]
pub extern "C" fn mete_domain_of_process(pid: u32) -> DomainId {
    memory::domain_of_process(pid).unwrap_or(crate::NO_DOMAIN)
}
