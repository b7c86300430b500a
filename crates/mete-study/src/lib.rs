//! wip
mod bench;
mod child;
mod context;
mod interleave;
mod kernel;
pub mod machine;
mod processor;
mod progress;
mod reason;
pub mod report;
mod scratch;
pub mod statistics;
mod traffic;
mod user;

pub use bench::{Options, bench, groups};
pub use progress::Progress;
pub use reason::Reason;
pub use report::{Bar, Report, Row};
