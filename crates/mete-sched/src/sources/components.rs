//! User-level components as sources: found in the runtime directories, taken, given memory, and
//! dropped when they end. They may start and stop at any time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mete_log::{Area, Region, Shape};
use mete_probe::attach::{AttachError, Component};
use mete_probe::directory;
use mete_probe::event::Kind;

use super::region::publish;
use super::{EventUse, Meaning, Source, SourceError};
use crate::domains::Change;

/// A component that does not answer within this time is stopped or broken; the poll loop waits for
/// it so long at most, and rarely.
const PATIENCE: Duration = Duration::from_millis(50);
/// Looks that are let pass before a component that could not be taken is tried again.
const RETRY_AFTER: u32 = 10;

/// A component that was taken and logs.
pub struct ComponentSource {
    component: Component,
    region: Arc<Region>,
    label: String,
    events: Vec<EventUse>,
}

impl ComponentSource {
    /// Takes the component at a socket, gives it memory and switches on those of its events that
    /// `wanted` says yes to.
    ///
    /// # Errors
    ///
    /// [`SourceError`]; the component is as it was then.
    pub fn take(
        path: &Path,
        processors: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<ComponentSource, SourceError> {
        let mut component = Component::connect(path, PATIENCE)?;
        let region = Arc::new(Region::create(Shape::COMPONENT, processors)?);
        component.provide(region.clone())?;
        let events: Vec<_> = component.events().iter().filter(|event| wanted(&event.name)).cloned().collect();
        for event in &events {
            component.enable(event.id)?;
        }
        let events = events.into_iter().map(|event| EventUse::new(event.id, event.name, meaning(event.kind)));
        let label = format!("{} ({})", component.name(), component.pid());
        Ok(ComponentSource { events: events.collect(), component, region, label })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.component.pid()
    }
}

fn meaning(kind: Kind) -> Meaning {
    match kind {
        Kind::Access => Meaning::Access,
        Kind::Phase => Meaning::Phase,
        Kind::Sample => Meaning::Sample,
    }
}

impl Source for ComponentSource {
    fn label(&self) -> &str {
        &self.label
    }

    fn shape(&self) -> Shape {
        Shape::COMPONENT
    }

    fn processors(&self) -> usize {
        self.region.processors()
    }

    fn area(&self, processor: usize) -> Area<'_> {
        self.region.area(processor)
    }

    fn events(&self) -> &[EventUse] {
        &self.events
    }

    fn bind(&mut self, change: Change) -> Result<(), SourceError> {
        publish(&self.region, change)
            .map_err(|source| SourceError::Bindings { label: self.label.clone(), source })?;
        if change.is_alive && change.pid == self.component.pid() {
            match self.component.bind(change.to) {
                Err(AttachError::Gone { .. }) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn is_alive(&self) -> bool {
        self.component.is_alive()
    }
}

/// What a look for components came to.
pub enum Found {
    /// A component that now logs.
    Taken(Box<ComponentSource>),
    /// A component that could not be taken; it is tried again later.
    Refused(SourceError),
}

/// Looks for components from time to time.
#[derive(Debug)]
pub struct Discovery {
    processors: usize,
    looks: u32,
    /// Sockets that were tried, and at which look they may be tried again.
    tried: BTreeMap<PathBuf, u32>,
}

impl Discovery {
    /// Components get areas for so many processors.
    pub fn new(processors: usize) -> Discovery {
        Discovery { processors, looks: 0, tried: BTreeMap::new() }
    }

    /// Takes every component that is not in `taken` yet. Costs a listing of one or a few small
    /// directories, and up to 50 ms for each component that does not answer.
    pub fn look(&mut self, taken: impl Fn(u32) -> bool) -> Vec<Found> {
        self.looks += 1;
        let sockets: Vec<_> =
            directory::all().iter().flat_map(|directory| directory::sockets(directory)).collect();
        self.tried.retain(|path, _| sockets.contains(path));
        let fresh = sockets.into_iter().filter(|path| !process_of(path).is_some_and(&taken));
        fresh.filter_map(|path| self.attempt(path)).collect()
    }

    fn attempt(&mut self, path: PathBuf) -> Option<Found> {
        if self.tried.get(&path).is_some_and(|&again| self.looks < again) {
            return None;
        }
        let found = match ComponentSource::take(&path, self.processors, |_| true) {
            Ok(source) => Found::Taken(Box::new(source)),
            // Its program has ended and left the socket behind.
            Err(SourceError::Component(AttachError::Gone { .. })) => return None,
            Err(error) => Found::Refused(error),
        };
        self.tried.insert(path, self.looks + RETRY_AFTER);
        Some(found)
    }
}

/// The process that a socket is named for.
fn process_of(socket: &Path) -> Option<u32> {
    socket.file_stem()?.to_str()?.parse().ok()
}
