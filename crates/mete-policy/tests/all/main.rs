//! The tests of all policies: one program, which is built once and runs them beside each other.

mod common;
mod ideal;
mod reference;

mod affinity;
mod allocation;
mod bounds;
mod bvt;
mod contract;
mod credit;
mod drr;
mod eevdf;
mod fair_edges;
mod fair_processors;
mod fair_share;
mod goodness;
mod group_ratio;
mod lottery;
mod round_robin;
mod sleepers;
mod stride;
mod tavs_boosting;
mod tavs_driver;
mod tavs_inference;
mod vtrr;
mod vtrr_boosting;
mod vtrr_distributed;
mod vtrr_dynamics;
mod vtrr_group;
mod vtrr_kernel;
mod vtrr_processors;
mod wf2q;
mod wfq;
mod wrr;
