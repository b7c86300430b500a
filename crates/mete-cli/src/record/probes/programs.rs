//! Programs that have the probes: taken, told what to log, let go.

use std::collections::BTreeSet;
use std::sync::Arc;

use mete_log::{Region, Shape};
use mete_probe::attach::{AttachError, Component};
use mete_sched::domains::{Change, OTHER};
use mete_sched::sources::{ComponentSource, Source, SourceError};

use super::log::Log;
use super::news::News;
use super::points::Points;

/// The recorder's side of programs.
pub struct Programs {
    processors: usize,
    taken: Vec<Taken>,
    /// How many were taken so far.
    count: u64,
    /// Whoever belongs to a domain.
    present: Vec<Change>,
    /// What is recorded: places in the schema.
    events: Vec<usize>,
    /// Probes that were wanted at any time.
    wanted: BTreeSet<usize>,
    /// Probes that programs had.
    seen: BTreeSet<usize>,
    news: Arc<News>,
}

/// A program, and the number of its log.
struct Taken {
    number: u64,
    source: ComponentSource,
}

/// Why a program that was found is not taken.
pub enum NotTaken {
    /// It has none of the probes.
    HasNone,
    /// It may be another time.
    Refused,
}

impl Programs {
    /// None, on a machine of so many processors, where these belong to domains.
    pub fn new(processors: usize, present: Vec<Change>, news: Arc<News>) -> Programs {
        let (taken, events, wanted, seen) = Default::default();
        Programs { processors, taken, count: 0, present, events, wanted, seen, news }
    }

    /// Takes a program that was found, and switches its probes on.
    pub fn take(&mut self, found: Result<Component, AttachError>, points: &Points) -> Result<Log, NotTaken> {
        let refused = |error: &SourceError| {
            say(&self.news, error);
            NotTaken::Refused
        };
        let component = found.map_err(|error| refused(&error.into()))?;
        let probes: Vec<_> =
            component.events().iter().filter_map(|event| points.probe(&event.name)).collect();
        if probes.is_empty() {
            return Err(NotTaken::HasNone);
        }
        self.seen.extend(probes);
        let (log, source) = self.start(component, points).map_err(|error| refused(&error))?;
        self.taken.push(Taken { number: self.count, source });
        self.count += 1;
        Ok(log)
    }

    /// Its log is laid out and it is in its domain before it logs anything.
    fn start(&self, component: Component, points: &Points) -> Result<(Log, ComponentSource), SourceError> {
        let region = Arc::new(Region::create(Shape::COMPONENT, self.processors)?);
        let log = Log::new(self.count, &component, Arc::clone(&region), points)?;
        let mut source = ComponentSource::new(component, region)?;
        self.present.iter().try_for_each(|change| source.bind(*change))?;
        let names: BTreeSet<_> = points.names(&self.events).collect();
        source.switch(|name| names.contains(name))?;
        Ok((log, source))
    }

    /// Has these events logged, and no others.
    pub fn switch(&mut self, points: &Points, events: &[usize]) {
        self.events = events.to_vec();
        let names: BTreeSet<_> = points.names(events).collect();
        self.wanted.extend(names.iter().filter_map(|name| points.probe(name)));
        for Taken { source, .. } in &mut self.taken {
            let switched = source.switch(|name| names.contains(name));
            switched.unwrap_or_else(|error| say(&self.news, &error));
        }
    }

    /// Tells all programs who belongs where now.
    pub fn bind(&mut self, changes: &[Change]) {
        for change in changes {
            self.present.retain(|present| present.pid != change.pid);
            if change.is_alive && change.to != OTHER {
                self.present.push(*change);
            }
            for Taken { source, .. } in &mut self.taken {
                source.bind(*change).unwrap_or_else(|error| say(&self.news, &error));
            }
        }
    }

    /// Lets go who has ended; the numbers of their logs.
    pub fn ended(&mut self) -> Vec<u64> {
        let ended = self.taken.extract_if(.., |taken| !taken.source.is_alive());
        ended.map(|taken| taken.number).collect()
    }

    /// Lets all go.
    pub fn let_go(&mut self) {
        self.taken.clear();
    }

    /// Probes that were wanted, and that no program had.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.wanted.difference(&self.seen).copied()
    }
}

/// One that has ended before it could be taken, or told something, is not worth a word.
fn say(news: &News, error: &SourceError) {
    if !matches!(error, SourceError::Component(AttachError::Gone { .. })) {
        news.tell(error.to_string());
    }
}
