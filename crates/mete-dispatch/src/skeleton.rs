//! What `build.rs` generates from the object of `bpf/`: a map or a program is a field, and globals have
//! types.

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the generator keeps other rules than this workspace"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/dispatch.skel.rs"));
}

pub(crate) use generated::{DispatchSkel, DispatchSkelBuilder, types};
