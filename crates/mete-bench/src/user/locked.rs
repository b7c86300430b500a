//! The handler for systems without restartable sequences: one locked instruction for each row. The group
//! *user* measures it beside the other handler.

use mete_log::clock::UserClock;
use mete_log::{EventId, Plan, Record, Region, Shape, handler};
use mete_measure::reason::Reason;

use super::loops::CORRESPONDENT;
use super::scheduler::{DOMAIN, Logging, ROWS};

const EVENT: EventId = EventId::new(0);

/// A log of its own, written by the portable handler.
pub struct LockedLog {
    region: Region,
}

impl LockedLog {
    /// A log on one processor.
    ///
    /// # Errors
    ///
    /// If there is no memory for it.
    pub fn new() -> Result<LockedLog, Reason> {
        let region = Region::create(Shape::COMPONENT, 1)?;
        let mut plan = Plan::new(Shape::COMPONENT);
        let file = plan.file(Logging::Five.file(ROWS))?;
        plan.route_event(EVENT, file)?;
        plan.apply(region.area(0));
        Ok(LockedLog { region })
    }

    /// Logs `times` rows.
    #[inline(never)]
    pub fn rows(&self, times: u64) {
        let area = self.region.area(0);
        for counter in 0..times {
            let record = Record { event: EVENT, domain: DOMAIN, correspondent: CORRESPONDENT, counter };
            handler::log(area, &UserClock, record);
        }
    }
}
