//! How measurements are made, and what comes out of them.
//!
//! ```text
//!   variants:   none · disabled · ours · peer   none · disabled · ours · peer   none · …
//!               └────────── a round ─────────┘
//!                 differences within rounds ──▶ medians and quartiles ──▶ rows ──▶ verdicts
//! ```
//!
//! | module | for |
//! |---|---|
//! | [`mod@interleave`] | variants in turn, round by round |
//! | [`pairs`] | two or more settings in short pieces, in an order that a coin decides, until the quotient is known |
//! | [`processor`] | which processor to measure on, and staying there |
//! | [`statistics`] | medians, quartiles, intervals of confidence |
//! | [`report`] | rows with their bars, as JSON and CSV |
//! | [`verdict`] | bars; whether one is met, or a paper's claim holds here |
//! | [`reason`] | why something could not be measured |
//! | [`machine`] | where and when it was measured |

#![cfg(target_os = "linux")]

pub mod interleave;
pub mod machine;
pub mod pairs;
pub mod processor;
pub mod reason;
pub mod report;
pub mod statistics;
pub mod verdict;

pub use interleave::interleave;
pub use machine::Machine;
pub use reason::Reason;
pub use report::{Report, Row};
pub use verdict::{Bar, Verdict};
