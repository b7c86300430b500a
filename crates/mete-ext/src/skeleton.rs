//! What `build.rs` generates from the objects of `bpf/`: a map or a program is a field, and globals have
//! types.

/// Group VTRR inside the kernel.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the generator keeps other rules than this workspace"
)]
pub(crate) mod ext {
    include!(concat!(env!("OUT_DIR"), "/ext.skel.rs"));
}

/// The kernel's side of policies outside it.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the generator keeps other rules than this workspace"
)]
pub(crate) mod outside {
    include!(concat!(env!("OUT_DIR"), "/outside.skel.rs"));
}

/// A scheduler that decides nothing.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the generator keeps other rules than this workspace"
)]
pub(crate) mod empty {
    include!(concat!(env!("OUT_DIR"), "/empty.skel.rs"));
}
