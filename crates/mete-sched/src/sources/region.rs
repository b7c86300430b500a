//! A region that another part of the program fills: a test, a replay, or the owner of a component reached by
//! other means.

use std::sync::Arc;

use mete_log::{Area, Region, Shape};

use super::{EventUse, Source, SourceError};
use crate::domains::{Change, OTHER};

/// See the [module](self).
pub struct RegionSource {
    label: String,
    region: Arc<Region>,
    events: Vec<EventUse>,
}

impl RegionSource {
    /// A source that reads what is logged into `region`.
    pub fn new(label: impl Into<String>, region: Arc<Region>, events: Vec<EventUse>) -> RegionSource {
        RegionSource { label: label.into(), region, events }
    }
}

impl Source for RegionSource {
    fn label(&self) -> &str {
        &self.label
    }

    fn shape(&self) -> Shape {
        self.region.shape()
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
        publish(&self.region, &self.label, change)
    }
}

/// Publishes in the region's table to which domain a process belongs, so that the component can look it up.
pub(super) fn publish(region: &Region, label: &str, change: Change) -> Result<(), SourceError> {
    let bindings = region.bindings();
    if change.is_alive && change.to != OTHER {
        let bound = bindings.bind(change.pid, change.to);
        return bound.map_err(|source| SourceError::Bindings { label: label.to_owned(), source });
    }
    bindings.unbind(change.pid);
    Ok(())
}
