//! What a scheduler asks of the kernel, as far as this kernel knows it.

use libbpf_rs::btf::{Btf, types};

/// The flags of `struct sched_ext_ops` that some kernels do not know, and refuse a scheduler for.
///
/// - By the first one a scheduler says that it heeds the weights of control groups. Linux before 6.18 warns of one that does not say so;
///   later ones no longer know it.
/// - By the second one it has tasks queued that may not leave their processor at this moment. Linux since 6.14 would have them run where they
///   are, ahead of all others, and takes what is queued again in `cpu_release` for such a task: while that program runs, it is one. A task
///   that was preempted in real time would wait there for as long as that lasts, though other processors are free.
const OF_SOME_KERNELS: [(u64, &str); 2] =
    [(1 << 16, "SCX_OPS_HAS_CGROUP_WEIGHT"), (1 << 4, "SCX_OPS_ENQ_MIGRATION_DISABLED")];

/// Those of a scheduler's flags that this kernel takes.
pub(crate) fn taken(flags: u64) -> libbpf_rs::Result<u64> {
    let btf = Btf::from_vmlinux()?;
    let unknown = OF_SOME_KERNELS.iter().filter(|(_, name)| !knows(&btf, "scx_ops_flags", name));
    Ok(unknown.fold(flags, |flags, (flag, _)| flags & !flag))
}

/// Whether a type of the kernel has this value.
fn knows(btf: &Btf<'_>, of: &str, value: &str) -> bool {
    let is_it = |name: Option<&std::ffi::OsStr>| name.is_some_and(|name| name == value);
    let wide = btf.type_by_name::<types::Enum64<'_>>(of);
    let narrow = btf.type_by_name::<types::Enum<'_>>(of);
    wide.is_some_and(|wide| wide.iter().any(|member| is_it(member.name)))
        || narrow.is_some_and(|narrow| narrow.iter().any(|member| is_it(member.name)))
}
