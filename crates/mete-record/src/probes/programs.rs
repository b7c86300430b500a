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
use super::points::ProbePoints;

/// How often the claims that a program has lost get older. A claim that is two periods old does not count in
/// rows that are read from then on.
const AGE_EVERY: Duration = Duration::from_secs(1);

/// The recorder's side of programs.
pub struct Programs {
    processors: usize,
    taken: Vec<Taken>,
    /// How many programs were taken so far.
    count: u64,
    trust: Arc<Trust>,
    aged: Instant,
    /// The processes that are in a domain.
    present: Vec<Change>,
    /// The events that are recorded, by their places in the schema.
    events: Vec<usize>,
    /// The probes that were wanted at some time.
    wanted: BTreeSet<usize>,
    /// The probes that a program has had.
    seen: BTreeSet<usize>,
    news: Arc<News>,
}

/// A program, and the number of its log.
struct Taken {
    number: u64,
    source: ComponentSource,
    claims: SharedClaims,
    /// Whether it has not answered in time, and not since then either.
    is_late: bool,
}

impl Taken {
    /// Changes which domains its rows may name. Its rows are not read meanwhile, so that a row that follows
    /// from the change is not judged by what was allowed before it.
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
    /// It may be taken another time.
    Refused,
}

impl Programs {
    /// No programs yet, on a machine with this number of processors. `present` are the processes that are in
    /// a domain.
    pub fn new(processors: usize, present: Vec<Change>, news: Arc<News>) -> Programs {
        let (taken, events, wanted, seen) = Default::default();
        let (trust, aged) = (Arc::default(), Instant::now());
        Programs { processors, taken, count: 0, trust, aged, present, events, wanted, seen, news }
    }

    /// Takes a program that was found, and switches its probes on.
    pub fn take(
        &mut self,
        found: Result<Component, SourceError>,
        points: &ProbePoints,
    ) -> Result<Log, NotTaken> {
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

    /// Hands its log to a program and switches its probes on.
    fn start(
        &self,
        component: Component,
        points: &ProbePoints,
        claims: SharedClaims,
    ) -> Result<(Log, ComponentSource), SourceError> {
        let region = Arc::new(Region::create(Shape::COMPONENT, self.processors)?);
        let log = Log::new(self.count, &component, Arc::clone(&region), points, Arc::clone(&claims))?;
        self.trust.look_anew();
        let mut source = ComponentSource::new(component, region, &self.trust)?;
        self.present.iter().try_for_each(|change| source.bind(*change))?;
        // Before its probes are on, so that its first row is judged by them.
        *lock(&claims) = source.claims().cloned();
        let names: BTreeSet<_> = points.names(&self.events).collect();
        source.switch(|name| names.contains(name))?;
        Ok((log, source))
    }

    /// Switches the probes of these events on, and all others off.
    pub fn switch(&mut self, points: &ProbePoints, events: &[usize]) {
        self.events = events.to_vec();
        let names: BTreeSet<_> = points.names(events).collect();
        self.wanted.extend(names.iter().filter_map(|name| points.probe(name)));
        for Taken { source, .. } in &mut self.taken {
            let switched = source.switch(|name| names.contains(name));
            switched.unwrap_or_else(|error| say(&self.news, &error));
        }
    }

    /// Waits until all programs have done what they were told, for at most this time for all together. A
    /// program that does not answer in time is not waited for again before it has answered.
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

    /// Takes programs' answers without waiting. Returns whether all have done what they were told, except for
    /// late ones.
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

    /// Tells all programs which processes have changed their domain.
    pub fn bind(&mut self, changes: &[Change]) {
        self.trust.look_anew();
        for change in changes {
            self.present.retain(|present| present.pid != change.pid);
            if change.is_alive && change.to != OTHER {
                self.present.push(*change);
            }
            for taken in &mut self.taken {
                let told = taken.change(|source| source.bind(*change));
                told.unwrap_or_else(|error| say(&self.news, &error));
            }
        }
    }

    /// Ages the claims that programs have lost, and lets programs go that have another user now.
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

    /// Lets programs go that have ended or have another user by now. Returns the numbers of their logs, and
    /// where they were found.
    pub fn ended(&mut self) -> (Vec<u64>, Vec<PathBuf>) {
        let ended = self.taken.extract_if(.., |taken| !taken.source.is_alive());
        ended.map(|taken| (taken.number, taken.source.path().to_owned())).unzip()
    }

    /// Lets all go.
    pub fn let_go(&mut self) {
        self.taken.clear();
    }

    /// The probes that were wanted and that no program has had.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.wanted.difference(&self.seen).copied()
    }
}

/// Reports an error, unless it says that a program ended before it could be taken or told something: that is
/// usual.
fn say(news: &News, error: &SourceError) {
    if !matches!(error, SourceError::Component(AttachError::Gone { .. })) {
        news.tell(error.to_string());
    }
}
