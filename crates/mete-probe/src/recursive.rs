//! Recursive logging (LOG-15; thesis §3.4): a component completes rows that another component could log only
//! in part, and passes them on in its own log.
//!
//! The thesis's example: the kernel logs the use of pages, and the memory subsystem knows which domains share
//! them. For this *preliminary* log the memory subsystem is the kernel's scheduler: it provides the memory,
//! reads the rows and fills in the correspondent. It logs the result with a probe of its own, which runs only
//! if a scheduler reads it.

use std::sync::Arc;

use mete_log::reader::Cursor;
use mete_log::{
    Control, Entries, EventId, FileSpec, Plan, PlanError, Poll, ReadError, Region, RegionError, Row, Shape,
    Stamp,
};

use crate::attach::{AttachError, Component};
use crate::processors::configured_processors;

/// Why a preliminary log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum PreliminaryError {
    /// The component has no event of that name.
    #[error("component {component} has no event \"{event}\"")]
    NoSuchEvent {
        /// The component.
        component: String,
        /// The name that was looked for.
        event: String,
    },
    /// No memory for the log.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The log could not be laid out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The component could not be asked.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// Another component's log of some events, read by this component.
///
/// ```no_run
/// # use mete_probe::{attach::Component, event, probe, recursive::Preliminary};
/// event! { static SHARED_PAGE: access "shared page"; }
/// # fn sharer_of(page: u64) -> mete_probe::DomainId { mete_probe::DomainId::new(page as u16) }
/// # fn pass_on(component: Component) -> Result<(), Box<dyn std::error::Error>> {
/// let mut pages = Preliminary::new(component, &["page used"], 4096)?;
/// loop {
///     let passed = pages.poll(|row| {
///         let page = row.counter.unwrap_or(0);
///         probe!(SHARED_PAGE, sharer_of(page), page);
///     })?;
///     if passed.overwritten > 0 {
///         eprintln!("{} preliminary rows were lost", passed.overwritten);
///     }
///     std::thread::sleep(std::time::Duration::from_millis(20));
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Preliminary {
    component: Component,
    region: Arc<Region>,
    cursors: Vec<Cursor>,
}

impl Preliminary {
    /// Has a component log the named events in full, with `rows` rows (a power of two) on each processor.
    ///
    /// # Errors
    ///
    /// [`PreliminaryError`]; the component is released then.
    pub fn new(
        mut component: Component,
        events: &[&str],
        rows: u32,
    ) -> Result<Preliminary, PreliminaryError> {
        let processors = configured_processors();
        let region = Arc::new(Region::create(Shape::COMPONENT, processors)?);
        let events = events.iter().map(|name| find(&component, name)).collect::<Result<Vec<_>, _>>()?;
        let cursors = lay_out(&region, &events, rows)?;
        component.provide(region.clone())?;
        events.into_iter().try_for_each(|event| component.enable(event))?;
        Ok(Preliminary { component, region, cursors })
    }

    /// The component whose log it is.
    pub fn component(&mut self) -> &mut Component {
        &mut self.component
    }

    /// Hands the new rows to the caller, who logs them again with a probe of their own.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the other component has garbled its log. The next call continues after it.
    pub fn poll(&mut self, mut each: impl FnMut(Row)) -> Result<Poll, ReadError> {
        let mut sum = Poll::default();
        for (area, cursor) in self.region.areas().zip(&mut self.cursors) {
            sum += cursor.poll(area, &mut each)?;
        }
        Ok(sum)
    }
}

fn find(component: &Component, name: &str) -> Result<EventId, PreliminaryError> {
    component.event(name).map(|event| event.id).ok_or_else(|| PreliminaryError::NoSuchEvent {
        component: format!("{} ({})", component.name(), component.pid()),
        event: name.to_owned(),
    })
}

/// One file for all the events, and a cursor in it on each processor.
fn lay_out(region: &Region, events: &[EventId], rows: u32) -> Result<Vec<Cursor>, PlanError> {
    let mut plan = Plan::new(region.shape());
    let file = plan.file(FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows })?;
    for &event in events {
        plan.route_event(event, file)?;
    }
    let control: Control = plan.control(file);
    Ok(region
        .areas()
        .map(|area| {
            plan.apply(area);
            Cursor::new(area, file, control)
        })
        .collect())
}
