//! wip
pub mod actuator;
pub mod analysis;
pub mod configure;
pub mod domains;
pub mod sources;
