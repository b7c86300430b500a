//! wip
pub mod analysis;
pub mod configure;
pub mod domains;
pub mod sources;
