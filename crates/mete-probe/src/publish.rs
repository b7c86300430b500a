//! Publication: a program with events listens for schedulers (design decision D7).
//!
//! A constructor registers the program's events and starts the [`listener`]. Whatever fails on the way, the
//! program runs as if it had no probes.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::event::RawEvent;
use crate::registry::{self, ProbeModule};
use crate::{debug, directory, endpoint, fork, listener, patch, residence, slot};

static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Registers a module's sections and starts to listen if it has events.
pub(crate) fn register(module: ProbeModule) {
    let added = registry::lock().add(module);
    debug::tell_error(added);
    if !residence::is_ensured() {
        return debug::tell(|| "not published: this library could be unloaded".into());
    }
    slot::prepare();
    if is_off_by_environment() {
        return debug::tell(|| "not published: METE_PROBES is off".into());
    }
    let has_events = !registry::lock().published().is_empty();
    // The swap has one of several modules start the thread. It guards no other memory, so that AcqRel is more
    // than enough.
    if has_events && !IS_STARTED.swap(true, Ordering::AcqRel) {
        read_surroundings();
        // Before the thread is there: a fork must never copy it halfway through a change.
        fork::install();
        // SAFETY: the function has the right type.
        unsafe { libc::atexit(at_exit) };
        listener::start();
    }
}

/// Forgets a module that is being unloaded.
pub(crate) fn unregister(events: *const Option<&'static RawEvent>) {
    registry::lock().remove(events);
}

/// The sections of the program or shared object that this crate is linked into.
mod own {
    use super::{ProbeModule, RawEvent};
    use crate::site::Site;

    // One empty record in each section, so that the linker defines the section's bounds even if nothing else
    // is in it.
    #[used]
    #[unsafe(link_section = "mete_sites")]
    static NO_SITE: Site = Site::NONE;
    #[used]
    #[unsafe(link_section = "mete_events")]
    static NO_EVENT: Option<&'static RawEvent> = None;

    unsafe extern "C" {
        #[link_name = "__start_mete_sites"]
        static SITES: Site;
        #[link_name = "__stop_mete_sites"]
        static SITES_END: Site;
        #[link_name = "__start_mete_events"]
        static EVENTS: Option<&'static RawEvent>;
        #[link_name = "__stop_mete_events"]
        static EVENTS_END: Option<&'static RawEvent>;
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONSTRUCTOR: extern "C" fn() = construct;

    extern "C" fn construct() {
        let (sites, events) =
            (&raw const SITES..&raw const SITES_END, &raw const EVENTS..&raw const EVENTS_END);
        // SAFETY: the linker sets the bounds. Only the macros of this crate and of mete.h put records in
        // between, all of one layout.
        super::register(unsafe { ProbeModule::new(sites, events) });
    }
}

/// Looks up early what is looked up only once: no other thread changes the environment yet.
fn read_surroundings() {
    debug::is_wanted();
    directory::own();
    patch::way();
}

/// Whether `METE_PROBES=off` is set: this run of the program is no component then.
fn is_off_by_environment() -> bool {
    directory::variable("METE_PROBES").is_some_and(|value| value == "off")
}

extern "C" fn at_exit() {
    endpoint::remove();
}
