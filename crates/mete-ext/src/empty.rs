//! The floor under all schedulers of sched_ext.

use libbpf_rs::Link;
use mete_kernel::load_skeleton;

use crate::ExtError;
use crate::check::check;
use crate::skeleton::empty::{EmptySkel, EmptySkelBuilder};

/// A scheduler that decides nothing, which rules all ordinary tasks while this lives: they run in the order of their arrival. It has
/// an operation wherever [`GroupScheduler`](crate::GroupScheduler) has one for each switch, so what it costs is the least that such a
/// scheduler can cost. For measurements only.
pub struct EmptyScheduler {
    // Fields are dropped in this order: first the kernel takes its tasks back.
    _link: Link,
    _skeleton: EmptySkel<'static>,
}

impl EmptyScheduler {
    /// Loads it and switches all ordinary tasks to it.
    ///
    /// # Errors
    ///
    /// As [`GroupScheduler::start`](crate::GroupScheduler::start).
    pub fn start() -> Result<EmptyScheduler, ExtError> {
        // It keeps nothing for any processor.
        check(usize::MAX)?;
        let mut skeleton = load_skeleton::<EmptySkelBuilder>(|_| Ok(()))?;
        let link = skeleton.maps.mete.attach_struct_ops().map_err(ExtError::Refused)?;
        Ok(EmptyScheduler { _link: link, _skeleton: skeleton })
    }
}
