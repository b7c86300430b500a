//! The sites and events of this process's modules, and which events are on.
//!
//! A *module* is the program or a shared object. Each module has its own two sections, whose bounds the
//! linker knows. Events of the same name and kind are one characteristic and share one number, wherever they
//! are declared (thesis §3.4: identifiers denote the characteristic, not the point in the code).

use core::ops::Range;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mete_log::EventId;

use crate::event::{ProbeKind, RawEvent};
use crate::patch::{self, PatchError};
use crate::site::Site;

/// The most events of a process: the number that a log area has room for.
pub const MAX_EVENTS: usize = crate::handler::SHAPE.events();

/// The sections of one module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeModule {
    pub sites: &'static [Site],
    pub events: &'static [Option<&'static RawEvent>],
}

/// One characteristic, as schedulers know it.
#[derive(Debug)]
pub(crate) struct PublishedEvent {
    pub name: CString,
    pub kind: ProbeKind,
    is_on: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Registry {
    modules: Vec<ProbeModule>,
    published: Vec<PublishedEvent>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { modules: Vec::new(), published: Vec::new() });

/// The registry, for this thread alone.
pub(crate) fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProbeModule {
    /// A module from its sections' bounds.
    ///
    /// # Safety
    ///
    /// The bounds must be those of the sections `mete_sites` and `mete_events` of a module that stays loaded
    /// until it is removed from the registry.
    pub unsafe fn new(
        sites: Range<*const Site>,
        events: Range<*const Option<&'static RawEvent>>,
    ) -> ProbeModule {
        // SAFETY: passed on from the caller.
        unsafe { ProbeModule { sites: section(sites), events: section(events) } }
    }

    /// All events that the module declares or uses.
    fn all_events(&self) -> impl Iterator<Item = &'static RawEvent> + use<> {
        // SAFETY: a site's event is a static of the program, or null in the empty record.
        let used = self.sites.iter().filter_map(|site| unsafe { site.event.as_ref() });
        self.events.iter().copied().flatten().chain(used)
    }

    fn sites_of(&self, id: EventId) -> impl Iterator<Item = &'static Site> + use<> {
        self.sites.iter().filter(move |site| {
            // SAFETY: as above.
            unsafe { site.event.as_ref() }.is_some_and(|event| event.id() == id)
        })
    }
}

impl Registry {
    /// Adds a module, publishes its events, and switches on those that are already on elsewhere.
    pub fn add(&mut self, module: ProbeModule) -> Result<(), PatchError> {
        // Each translation unit of a C module registers the module once.
        if self.modules.iter().any(|known| known.events.as_ptr() == module.events.as_ptr()) {
            return Ok(());
        }
        let mut events: Vec<_> = module.all_events().filter(|event| !event.is_published()).collect();
        // By name, so that the numbers do not depend on the order in which the linker put the events.
        events.sort_by_key(|event| event.name());
        events.into_iter().for_each(|event| self.publish(event));
        self.modules.push(module);
        self.ids_on().into_iter().map(|id| self.switch(id, true)).fold(Ok(()), Result::and)
    }

    /// Forgets the module whose events begin at this address, because it is being unloaded.
    pub fn remove(&mut self, events: *const Option<&'static RawEvent>) {
        self.modules.retain(|module| module.events.as_ptr() != events);
    }

    /// The characteristics, in the order of their numbers.
    pub fn published(&self) -> &[PublishedEvent] {
        &self.published
    }

    /// Switches an event at all its sites. If one of them cannot be switched on, none is.
    pub fn switch(&mut self, id: EventId, on: bool) -> Result<(), PatchError> {
        let switched = patch::switch(self.sites_of(id), on);
        if switched.is_err() && on {
            // Its error would only repeat the first one.
            let _ = patch::switch(self.sites_of(id), false);
            return switched;
        }
        for event in self.modules.iter().flat_map(ProbeModule::all_events).filter(|event| event.id() == id) {
            event.set_enabled(on);
        }
        if let Some(published) = self.published.get_mut(id.index()) {
            published.is_on = on;
        }
        switched
    }

    /// Switches all events off, because no scheduler reads any more. If an event cannot be switched, the
    /// others are switched all the same.
    pub fn switch_all_off(&mut self) -> Result<(), PatchError> {
        self.ids_on().into_iter().map(|id| self.switch(id, false)).fold(Ok(()), Result::and)
    }

    fn ids_on(&self) -> Vec<EventId> {
        let numbered = self.published.iter().enumerate();
        numbered.filter(|(_, event)| event.is_on).map(|(id, _)| EventId::from_index(id)).collect()
    }

    fn sites_of(&self, id: EventId) -> Vec<&'static Site> {
        self.modules.iter().flat_map(|module| module.sites_of(id)).collect()
    }

    fn publish(&mut self, event: &'static RawEvent) {
        let (name, kind) = (event.name(), event.kind());
        let known =
            self.published.iter().position(|known| known.name.as_c_str() == name && known.kind == kind);
        // Events that a log area has no room for stay unpublished: their probes are never on.
        let id = known.unwrap_or(self.published.len());
        if id < MAX_EVENTS {
            event.publish(EventId::from_index(id));
        }
        if known.is_none() && id < MAX_EVENTS {
            self.published.push(PublishedEvent { name: name.to_owned(), kind, is_on: false });
        }
    }
}

/// # Safety
///
/// The bounds must be those of an array of `T` that lives as long as the slice is used.
unsafe fn section<T>(bounds: Range<*const T>) -> &'static [T] {
    let bytes = (bounds.end as usize).saturating_sub(bounds.start as usize);
    if bounds.start.is_null() || bytes == 0 {
        return &[];
    }
    // SAFETY: passed on from the caller.
    unsafe { core::slice::from_raw_parts(bounds.start, bytes / size_of::<T>()) }
}
