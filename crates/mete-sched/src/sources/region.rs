//! A region that somebody else fills: a test, a replay, a component reached by other means.

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
    /// A source of what is logged into `region`.
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
        publish(&self.region, change)
            .map_err(|source| SourceError::Bindings { label: self.label.clone(), source })
    }
}

/// Publishes where a process belongs in the region's table, for the component to look up.
pub(super) fn publish(region: &Region, change: Change) -> Result<(), mete_log::bindings::BindingsFull> {
    let bindings = region.bindings();
    if change.is_alive && change.to != OTHER {
        return bindings.bind(change.pid, change.to);
    }
    bindings.unbind(change.pid);
    Ok(())
}
