//! Studies that simulate: scenarios of a host, run with several seeds.
//!
//! ```text
//!   studies/NAME/*.toml ──▶ Case (policy, settings) ──▶ Outcome a seed ──▶ Ran: Measures ──▶ table, CSV, pictures
//!                                                       (Report, Probe)              └─────▶ findings
//! ```
//!
//! A study of this kind is a [`Plan`]: its cases, what is measured of each, what it finds and what it draws.
//! [`Simulated`] makes a [`Study`](crate::study::Study) of a plan. The pages of these studies extend
//! `studies/simulated.md`, which lays out the cases and their commands.

mod case;
mod facts;
mod pictures;
mod plan;
mod probe;
mod ran;

pub(crate) use case::{Case, Outcome, average};
pub(crate) use pictures::{interval, mean_of};
pub(crate) use plan::{Plan, Simulated};
pub(crate) use ran::{Measure, Place, Ran};

#[cfg(test)]
pub(crate) use plan::run;

/// A scenario of a study: the file is shipped with the program.
macro_rules! scenario {
    ($study:literal, $name:literal) => {
        mete_sim::scenario::Shipped {
            name: concat!("studies/", $study, "/", $name, ".toml"),
            text: $crate::study::text!($study, concat!($name, ".toml")),
        }
    };
}
pub(crate) use scenario;
