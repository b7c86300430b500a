//! User-level components as sources. A component is taken, is given memory, is told which processes belong
//! where and what to log, and is dropped when it ends. Components may start and stop at any time, so nothing
//! here waits for one.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use mete_log::{Area, Region, Shape};
use mete_probe::attach::{AttachError, Component, EventInfo};
use mete_probe::event::ProbeKind;

use super::region::publish;
use super::standing::{Claims, Standing, Trust};
use super::{EventUse, Meaning, Source, SourceError};
use crate::domains::Change;

/// A component that was taken and has memory to log into.
pub struct ComponentSource {
    component: Component,
    region: Arc<Region>,
    label: String,
    /// What it logs, or will log after it begins.
    events: Vec<EventUse>,
    /// The names of events that are off during a pause.
    paused: Vec<String>,
    /// Whether its events are still to be enabled.
    begins_later: bool,
    /// Whether it no longer takes requests or does not keep to the protocol. Then it is let go.
    has_failed: bool,
    standing: Standing,
}

impl ComponentSource {
    /// Gives a component memory. All of its events are on after it [begins](Source::begin). The component
    /// takes both in its own time; [`ComponentSource::settle`] says when it has.
    ///
    /// # Errors
    ///
    /// [`SourceError`]. The component is let go then.
    pub fn start(
        component: Component,
        processors: usize,
        trust: &Arc<Trust>,
    ) -> Result<ComponentSource, SourceError> {
        let region = Arc::new(Region::create(Shape::COMPONENT, processors)?);
        let mut source = ComponentSource::new(component, region, trust)?;
        let events = source.component.events().iter();
        source.events =
            events.map(|event| EventUse::new(event.id, &event.name, meaning(event.kind))).collect();
        source.begins_later = true;
        Ok(source)
    }

    /// Gives a component memory whose areas the caller has laid out. None of its events is on.
    ///
    /// # Errors
    ///
    /// [`SourceError`]. The component is let go then.
    pub fn new(
        mut component: Component,
        region: Arc<Region>,
        trust: &Arc<Trust>,
    ) -> Result<ComponentSource, SourceError> {
        component.tell_to_log_into(region.clone())?;
        let label = format!("{} ({})", component.name(), component.pid());
        let standing = Standing::new(component.pid(), component.user(), Arc::clone(trust));
        let (events, paused) = (Vec::new(), Vec::new());
        let (begins_later, has_failed) = (false, false);
        Ok(ComponentSource { component, region, label, events, paused, begins_later, has_failed, standing })
    }

    /// Has the events of these names logged, and no others. Does not wait for the component;
    /// [`ComponentSource::settle`] says when it has switched them.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the component does not take requests. It must be let go then.
    pub fn switch(&mut self, is_wanted: impl Fn(&str) -> bool) -> Result<(), SourceError> {
        for EventInfo { id, name, kind } in self.component.events().to_vec() {
            let is_on = self.events.iter().any(|event| event.event == id);
            match (is_on, is_wanted(&name)) {
                (false, true) => {
                    let told = self.component.tell_to_enable(id);
                    self.check(told)?;
                    self.events.push(EventUse::new(id, name, meaning(kind)));
                }
                (true, false) => {
                    let told = self.component.tell_to_disable(id);
                    self.check(told)?;
                    self.events.retain(|event| event.event != id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the component's answers so far. Returns whether it has done everything that it was told.
    ///
    /// # Errors
    ///
    /// [`SourceError`] for what the component refused, or if it must be let go. A component that has ended is
    /// no error; [`Source::is_alive`] reports that.
    pub fn settle(&mut self) -> Result<bool, SourceError> {
        let settled = self.component.settle();
        match settled {
            Ok(refused) => refused.into_iter().next().map_or(Ok(()), Err)?,
            Err(error) => self.check(Err(error))?,
        }
        Ok(self.component.is_settled())
    }

    /// Whether the component had done everything that it was told, as of the last
    /// [`ComponentSource::settle`].
    pub fn is_settled(&self) -> bool {
        self.component.is_settled()
    }

    /// Notes whether the component still takes requests. One that has ended is no error: it is noticed as
    /// such.
    fn check(&mut self, told: Result<(), AttachError>) -> Result<(), SourceError> {
        // Never reset: a component that has failed once may have lost a request.
        self.has_failed |= told.is_err();
        match told {
            Err(AttachError::Gone { .. }) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Where the component was found.
    pub fn path(&self) -> &Path {
        self.component.path()
    }

    /// The component's process.
    pub fn pid(&self) -> u32 {
        self.component.pid()
    }
}

fn meaning(kind: ProbeKind) -> Meaning {
    match kind {
        ProbeKind::Access => Meaning::Access,
        ProbeKind::Phase => Meaning::Phase,
        ProbeKind::Sample => Meaning::Sample,
    }
}

impl AsFd for ComponentSource {
    /// Readable when the component has answered or has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.component.as_fd()
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

    /// Tells the component what it may know about the change.
    fn bind(&mut self, change: Change) -> Result<(), SourceError> {
        for told in self.standing.follow(change) {
            publish(&self.region, &self.label, told)?;
        }
        if change.is_alive && change.pid == self.component.pid() {
            let told = self.component.tell_to_bind(self.standing.own());
            self.check(told)?;
        }
        Ok(())
    }

    /// The component carries out what it is told in order, so that by then it knows to which domain its
    /// process belongs.
    fn begin(&mut self) -> Result<(), SourceError> {
        // Taken, so that a second call does not enable the events again.
        if std::mem::take(&mut self.begins_later) {
            for event in self.events.clone() {
                let told = self.component.tell_to_enable(event.event);
                self.check(told)?;
            }
        }
        Ok(())
    }

    fn claims(&self) -> Option<&Claims> {
        self.standing.claims()
    }

    fn pause(&mut self) -> Result<(), SourceError> {
        self.paused.extend(self.events.iter().map(|event| event.name.clone()));
        self.switch(|_| false)
    }

    fn resume(&mut self) -> Result<(), SourceError> {
        let paused = std::mem::take(&mut self.paused);
        self.switch(|name| paused.iter().any(|event| event == name))
    }

    fn attend(&mut self) -> Result<(), SourceError> {
        // It was taken as a component of a user who may say everything, and has another user now.
        if !self.standing.is_up_to_date() {
            self.has_failed = true;
            return Err(SourceError::Changed(self.label.clone()));
        }
        self.settle().map(drop)
    }

    fn found_at(&self) -> Option<&Path> {
        Some(self.path())
    }

    fn is_alive(&self) -> bool {
        !self.has_failed && self.component.is_alive()
    }
}
