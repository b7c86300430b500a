//! The shipped schemata's programs, compiled when this was built.
//!
//! Their texts in `bpf/schemas` are what mete-schema makes of the schemata for a current kernel. For one whose
//! tracepoints have other arguments it makes another text, which is compiled like a user's.

use crate::load::object;

/// The object of exactly this source.
pub(super) fn object(source: &str) -> Option<&'static [u8]> {
    let shipped: [(&str, &[u8]); 3] = [
        (include_str!("../../bpf/schemas/scheduler.bpf.c"), object!("scheduler")),
        (include_str!("../../bpf/schemas/locking.bpf.c"), object!("locking")),
        (include_str!("../../bpf/schemas/interrupt.bpf.c"), object!("interrupt")),
    ];
    shipped.into_iter().find(|(text, _)| *text == source).map(|(_, object)| object)
}
