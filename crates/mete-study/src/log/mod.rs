//! The studies of the thesis on event logging (LOG-17): what a log operation costs, and what it costs to read
//! a log.

pub(crate) mod cost;
pub(crate) mod readers;
pub(crate) mod restart;
