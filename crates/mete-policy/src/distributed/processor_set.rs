//! Sets of processors, a bit for each of the first 64. Of further ones a policy knows nothing by itself.

use crate::ProcessorId;

/// The bit of a processor; none if it is not among the first 64.
pub(super) fn bit(processor: ProcessorId) -> u64 {
    1_u64.checked_shl(processor.get().into()).unwrap_or(0)
}

/// Whether a client with this set may run there. Beyond the first 64 processors one may that is bound to none
/// of these.
pub(super) fn may_run(allowed: u64, processor: ProcessorId) -> bool {
    match bit(processor) {
        0 => allowed == u64::MAX,
        bit => allowed & bit != 0,
    }
}
