//! TAVS-6: the driver domain inherits the priority of a client that asks it for something (§4.2, algorithm 2).
//!
//! The highest of several requesters counts. The driver has its own priority again when it is
//! descheduled, whether or not it has finished, as the algorithm has it.

use super::priority::{Priority, Standing};

/// A client of that priority sent its driver a request. `true`: the driver's priority has risen.
pub(super) fn inherit(requester: Priority, driver: &mut Standing) -> bool {
    let rises = requester > driver.priority();
    if rises {
        driver.inherited = Some(requester);
    }
    rises
}
