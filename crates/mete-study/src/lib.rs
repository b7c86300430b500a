//! The papers' figures measured or simulated again (LOG-17, VTRR-4 to VTRR-6, TAVS-8, KLOG-9), and how real
//! processes fare under the policies (VTRR-6, TAVS-9).
//!
//! All studies have one model, [`study`]: a study measures or simulates, states what came out beside what the
//! paper says, draws, and a page is made of it from a template. The studies themselves lie in one module for
//! each paper and `live` for real processes, and [`studies`] lists them. What they measure with is in
//! `mete-bench` and `mete-measure`, whose principles hold here, too: all variants in turn, results as they
//! are, and nothing stays switched on.
//!
//! ```text
//!   log  vtrr  tavs  klogger  live   the studies of each paper; processes that the dispatcher rules
//!     │     │   simulated  │     │    scenarios run with several seeds
//!     └─────┴───┬───┴─────┴─────┘
//!             study               the model: measure ─▶ findings, facts, pictures, data ─▶ page
//!             trace               what several studies make of a recorded trace
//! ```

#![cfg(target_os = "linux")]

mod catalog;
mod klogger;
mod live;
mod log;
mod simulated;
pub mod study;
mod tavs;
mod trace;
mod vtrr;

pub use catalog::{by_name, studies};
pub use log::restart::{Analysis, Restart};
