//! What several crates need and none of them owns: errors as one sentence, sizes as people write and read them.
//!
//! Nothing in here knows anything about logs, traces or schedulers.

mod causes;
pub mod size;

pub use causes::sentence;
