//! Programs that have the probes: taken, told what to log, let go.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mete_log::{Region, Shape};
use mete_probe::attach::{AttachError, Component};
use mete_sched::domains::{Change, OTHER};
use mete_sched::sources::{ComponentSource, Source, SourceError, Trust};

use super::lock;
use super::log::{Log, SharedClaims};
use super::news::News;
use super::points::Points;

/// How often what a program may no longer say gets older; after two times, it does not count in rows that are read then.
const AGE_EVERY: Duration = Duration::from_secs(1);

/// The recorder's side of programs.
pub struct Programs {
    processors: usize,
    taken: Vec<Taken>,
    /// How many were taken so far.
    count: u64,
    trust: Arc<Trust>,
    aged: Instant,
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
    claims: SharedClaims,
    /// Whether it was waited for in vain, and has not answered since.
    is_late: bool,
}

impl Taken {
    /// Tells it who belongs where now.
    fn bind(&mut self, change: Change) -> Result<(), SourceError> {
        self.change(|source| source.bind(change))
    }

    /// Changes what its rows may name. They are not read meanwhile: none that follows from the change is judged by what
    /// was allowed before.
    fn change(
        &mut self,
        change: impl FnOnce(&mut ComponentSource) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let mut claims = lock(&self.claims);
        let changed = change(&mut self.source);
        *claims = self.source.claims().cloned();
        changed
    }
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
        let (trust, aged) = (Arc::default(), Instant::now());
        Programs { processors, taken, count: 0, trust, aged, present, events, wanted, seen, news }
    }

    /// Takes a program that was found, and switches its probes on.
    pub fn take(&mut self, found: Result<Component, SourceError>, points: &Points) -> Result<Log, NotTaken> {
        let refused = |error: &SourceError| {
            say(&self.news, error);
            NotTaken::Refused
        };
        let component = found.map_err(|error| refused(&error))?;
        let probes: Vec<_> =
            component.events().iter().filter_map(|event| points.probe(&event.name)).collect();
        if probes.is_empty() {
            return Err(NotTaken::HasNone);
        }
        self.seen.extend(probes);
        let claims = SharedClaims::default();
        let started = self.start(component, points, Arc::clone(&claims));
        let (log, source) = started.map_err(|error| refused(&error))?;
        self.taken.push(Taken { number: self.count, source, claims, is_late: false });
        self.count += 1;
        Ok(log)
    }

    /// Its log is laid out and it is in its domain before it logs anything.
    fn start(
        &self,
        component: Component,
        points: &Points,
        claims: SharedClaims,
    ) -> Result<(Log, ComponentSource), SourceError> {
        let region = Arc::new(Region::create(Shape::COMPONENT, self.processors)?);
        let log = Log::new(self.count, &component, Arc::clone(&region), points, Arc::clone(&claims))?;
        self.trust.look_anew();
        let mut source = ComponentSource::new(component, region, &self.trust)?;
        self.present.iter().try_for_each(|change| source.bind(*change))?;
        // Before it logs anything.
        *lock(&claims) = source.claims().cloned();
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

    /// Waits until all programs have done what they were told, this long for all together. One that was waited for in
    /// vain is not waited for again until it has answered.
    pub fn settle_within(&mut self, limit: Duration) {
        const LOOK_EVERY: Duration = Duration::from_micros(500);
        let end = Instant::now() + limit;
        while !self.attend() {
            if Instant::now() >= end {
                self.taken.iter_mut().for_each(|taken| taken.is_late = !taken.source.is_settled());
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Takes programs' answers without waiting; whether all have done what they were told, but for those that are late.
    pub fn attend(&mut self) -> bool {
        let mut are_settled = true;
        for Taken { source, is_late, .. } in &mut self.taken {
            match source.settle() {
                Ok(is_settled) => *is_late &= !is_settled,
                Err(error) => say(&self.news, &error),
            }
            are_settled &= source.is_settled() || *is_late || !source.is_alive();
        }
        are_settled
    }

    /// Tells all programs who belongs where now.
    pub fn bind(&mut self, changes: &[Change]) {
        self.trust.look_anew();
        for change in changes {
            self.present.retain(|present| present.pid != change.pid);
            if change.is_alive && change.to != OTHER {
                self.present.push(*change);
            }
            for taken in &mut self.taken {
                let told = taken.bind(*change);
                told.unwrap_or_else(|error| say(&self.news, &error));
            }
        }
    }

    /// Lets what programs may no longer say get older, and those go that have another user meanwhile.
    pub fn age(&mut self) {
        if self.aged.elapsed() < AGE_EVERY {
            return;
        }
        self.aged = Instant::now();
        for taken in &mut self.taken {
            let attended = taken.change(ComponentSource::attend);
            attended.unwrap_or_else(|error| say(&self.news, &error));
        }
    }

    /// Lets go who has ended, or has another user by now; the numbers of their logs, and where they were found.
    pub fn ended(&mut self) -> (Vec<u64>, Vec<PathBuf>) {
        let ended = self.taken.extract_if(.., |taken| !taken.source.is_alive());
        ended.map(|taken| (taken.number, taken.source.path().to_owned())).unzip()
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
