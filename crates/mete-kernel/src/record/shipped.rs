//! The programs of the shipped schemata, compiled when this crate was built.
//!
//! Their texts in `bpf/schemas` are those that mete-schema generates for a current kernel. For a kernel whose
//! tracepoints have other arguments, it generates other texts. Those are compiled like the programs of a user's schema.

/// An object file, aligned as its reader needs it.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}

/// The object of exactly this source, if it is one of theirs.
pub(super) fn object(source: &str) -> Option<&'static [u8]> {
    let shipped: [(&str, &[u8]); 3] = [
        (include_str!("../../bpf/schemas/scheduler.bpf.c"), object!("scheduler")),
        (include_str!("../../bpf/schemas/locking.bpf.c"), object!("locking")),
        (include_str!("../../bpf/schemas/interrupt.bpf.c"), object!("interrupt")),
    ];
    shipped.into_iter().find(|(text, _)| *text == source).map(|(_, object)| object)
}
