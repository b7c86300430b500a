//! The papers' figures measured or simulated again (VTRR-4 to VTRR-6, TAVS-8, KLOG-9).
//!
//! The studies ([`study::STUDIES`]) measure or simulate what the papers show, and say where the results agree with the
//! papers. What they measure with is in `mete-bench`, whose principles hold here, too: all variants in turn, results as
//! they are, and nothing stays switched on.

#![cfg(target_os = "linux")]

pub mod figure;
pub mod study;
mod trace;

pub use figure::{Figure, Verdict};
use mete_base::progress;
use mete_bench::{busy, child, crew, kernel, load, policy, realtime, scratch, traffic, user, watch};
use mete_measure::{interleave, machine, processor, reason, report, statistics};
