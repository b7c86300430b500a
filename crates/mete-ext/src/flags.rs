//! What a scheduler asks of the kernel, as far as this kernel knows it.

use libbpf_rs::btf::{Btf, types};

/// The flag of `struct sched_ext_ops` by which a scheduler said that it heeds the weights of control groups. Linux before 6.18 warns of one
/// that does not say so; later ones do not know the flag, and refuse the scheduler.
const HAS_CGROUP_WEIGHT: u64 = 1 << 16;

/// Those of a scheduler's flags that this kernel takes.
pub(crate) fn taken(flags: u64) -> libbpf_rs::Result<u64> {
    let is_known = knows(&Btf::from_vmlinux()?, "scx_ops_flags", "SCX_OPS_HAS_CGROUP_WEIGHT");
    Ok(if is_known { flags } else { flags & !HAS_CGROUP_WEIGHT })
}

/// Whether a type of the kernel has this value.
fn knows(btf: &Btf<'_>, of: &str, value: &str) -> bool {
    let is_it = |name: Option<&std::ffi::OsStr>| name.is_some_and(|name| name == value);
    let wide = btf.type_by_name::<types::Enum64<'_>>(of);
    let narrow = btf.type_by_name::<types::Enum<'_>>(of);
    wide.is_some_and(|wide| wide.iter().any(|member| is_it(member.name)))
        || narrow.is_some_and(|narrow| narrow.iter().any(|member| is_it(member.name)))
}
