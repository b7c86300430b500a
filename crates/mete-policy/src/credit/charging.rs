//! TAVS-7: the driver's processor time is charged to the clients that it worked for (§4.2, future work there).
//!
//! The owner reports for which client the driver worked, and how long. That much credit goes from the client to
//! the driver. In sum the driver pays only for work that belongs to no client.

use super::account::Accounts;
use crate::{ClientId, Nanoseconds};

/// Moves the cost of `used_ns` of the driver's time to the client.
pub(super) fn charge(accounts: &mut Accounts, driver: ClientId, client: ClientId, used_ns: Nanoseconds) {
    accounts.debit(client, used_ns);
    accounts.credit(driver, used_ns);
}
