//! TAVS-7: the driver's processor time is charged to those it worked for (§4.2, future work there).
//!
//! The owner says for whom the driver worked how long; that much credit goes from the client to the
//! driver, which in sum pays only for what belongs to nobody.

use super::account::Accounts;
use crate::{ClientId, Nanoseconds};

/// Moves the cost of `used_ns` of the driver's time to the client.
pub(super) fn charge(accounts: &mut Accounts, driver: ClientId, client: ClientId, used_ns: Nanoseconds) {
    accounts.debit(client, used_ns);
    accounts.credit(driver, used_ns);
}
