//! User-level components as sources: found in the runtime directories, taken, given memory, and
//! dropped when they end. They may start and stop at any time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mete_log::{Area, Region, Shape};
use mete_probe::attach::{AttachError, Component, EventInfo};
use mete_probe::directory;
use mete_probe::event::Kind;
use mete_probe::finder::Finder;

use super::region::publish;
use super::{EventUse, Meaning, Source, SourceError};
use crate::domains::Change;

/// A component that does not introduce itself, or carry out a request, within this time is stopped
/// or broken and let go; the poll loop waits for it so long at most, and rarely. A second: on a full
/// machine the thread that answers was seen to wait several hundred milliseconds for its turn.
const PATIENCE: Duration = Duration::from_secs(1);
/// Every so many looks, all directories are looked at, whether something has come or not.
const FULL_LOOK_EVERY: u32 = 10;
/// So many looks after a failure try again, one a second: a program that starts may be slow to answer.
const RETRIES: u32 = 3;

/// A component that was taken and logs.
pub struct ComponentSource {
    component: Component,
    region: Arc<Region>,
    label: String,
    events: Vec<EventUse>,
}

impl ComponentSource {
    /// Gives a component memory and switches its events on.
    ///
    /// # Errors
    ///
    /// [`SourceError`]; the component is let go then.
    pub fn start(component: Component, processors: usize) -> Result<ComponentSource, SourceError> {
        let region = Arc::new(Region::create(Shape::COMPONENT, processors)?);
        let mut source = ComponentSource::new(component, region)?;
        source.switch(|_| true)?;
        Ok(source)
    }

    /// Gives a component memory, of which somebody has laid out the areas; none of its events is on.
    ///
    /// # Errors
    ///
    /// [`SourceError`]; the component is let go then.
    pub fn new(mut component: Component, region: Arc<Region>) -> Result<ComponentSource, SourceError> {
        component.provide(region.clone())?;
        let label = format!("{} ({})", component.name(), component.pid());
        Ok(ComponentSource { events: Vec::new(), component, region, label })
    }

    /// Has the events of these names logged, and no others.
    ///
    /// # Errors
    ///
    /// [`SourceError`] for the first one that is refused; those before it are switched.
    pub fn switch(&mut self, is_wanted: impl Fn(&str) -> bool) -> Result<(), SourceError> {
        for EventInfo { id, name, kind } in self.component.events().to_vec() {
            let is_on = self.events.iter().any(|event| event.event == id);
            match (is_on, is_wanted(&name)) {
                (false, true) => {
                    self.component.enable(id)?;
                    self.events.push(EventUse::new(id, name, meaning(kind)));
                }
                (true, false) => {
                    self.component.disable(id)?;
                    self.events.retain(|event| event.event != id);
                }
                _ => {}
            }
        }
        Ok(())
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

/// Looks for components from time to time.
#[derive(Debug)]
pub struct Discovery {
    processors: usize,
    finder: Finder,
    directories: Vec<PathBuf>,
    /// Whether directories that come or go are followed.
    follows: bool,
    looks: u32,
    /// How many looks to come try again whoever was busy or silent.
    retries: u32,
}

impl Discovery {
    /// Components get areas for so many processors. They are looked for in one directory, or
    /// wherever this user may look.
    ///
    /// # Errors
    ///
    /// If the directory, or else this user's own, cannot be made or watched.
    pub fn new(processors: usize, only: Option<&Path>) -> io::Result<Discovery> {
        let (directories, finder) = match only {
            Some(only) => (vec![only.to_owned()], Finder::in_directories(vec![only.to_owned()])?),
            None => (directory::all(), Finder::new()?),
        };
        Ok(Discovery { processors, finder, directories, follows: only.is_none(), looks: 0, retries: 0 })
    }

    /// Takes every component that is not taken yet and has it log. Costs one system call as long as
    /// none has come, and up to a second for each component that does not answer. (One that uses up
    /// nearly all of that for each request, of which there is one for each event, takes as often so long.)
    pub fn look(&mut self) -> Vec<Result<ComponentSource, SourceError>> {
        let processors = self.processors;
        let found = self.take().into_iter();
        let started: Vec<_> = found.map(|component| ComponentSource::start(component?, processors)).collect();
        if started.iter().any(Result::is_err) {
            self.try_again();
        }
        started
    }

    /// Takes every component that is not taken yet, and leaves it as it is.
    pub fn take(&mut self) -> Vec<Result<Component, AttachError>> {
        let is_full = self.retries > 0 || self.looks.is_multiple_of(FULL_LOOK_EVERY);
        self.looks = self.looks.wrapping_add(1);
        if !is_full && !self.wait(Duration::ZERO) {
            return Vec::new();
        }
        self.follow_directories();
        let found = self.finder.take_new(PATIENCE).into_iter().filter(|found| !is_meant_so(found));
        let found: Vec<_> = found.collect();
        self.retries = self.retries.saturating_sub(1);
        if found.iter().any(Result::is_err) {
            self.try_again();
        }
        found
    }

    /// Has components that were taken and let go since found again.
    pub fn try_again(&mut self) {
        self.retries = RETRIES;
        // The finder counts as taken what fell silent later, so the next look begins anew.
        self.directories.clear();
    }

    /// Waits until a component may have come, `timeout` at most.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.finder.wait(timeout)
    }

    /// Begins anew when directories have come or gone: a user's comes with the first component.
    fn follow_directories(&mut self) {
        let present = directory::all();
        if self.follows
            && present != self.directories
            && let Ok(finder) = Finder::new()
        {
            (self.finder, self.directories) = (finder, present);
        }
    }
}

/// A new finder does not know what the one before has taken, and a program that reads its own probes
/// does so on purpose.
fn is_meant_so(found: &Result<Component, AttachError>) -> bool {
    matches!(found, Err(AttachError::Busy { pid, scheduler, .. }) if [std::process::id(), *pid].contains(scheduler))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_another_scheduler_reads_is_worth_a_word() {
        let own = std::process::id();
        let busy = |pid, scheduler| Err(AttachError::Busy { component: "x".into(), pid, scheduler });
        assert!(is_meant_so(&busy(own + 1, own)), "read by us, through an earlier finder");
        assert!(is_meant_so(&busy(own + 1, own + 1)), "reads itself");
        assert!(!is_meant_so(&busy(own + 1, own + 2)), "read by somebody else");
    }
}
