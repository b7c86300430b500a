//! The programs that say what wakes tasks (`bpf/causes.bpf.h`).

use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, Object, OpenObject};
use mete_kernel::has_hook;

/// What the sections of these programs begin with.
const TRACEPOINT: &str = "tp_btf/";
/// What the names of those end with that see the end of something.
const END: &str = "_end";

/// Leaves those out whose tracepoints this kernel does not have. What they would have seen counts as what is seen around it.
pub(crate) fn choose(open: &mut OpenObject) -> libbpf_rs::Result<()> {
    let btf = Btf::from_vmlinux()?;
    for mut program in open.progs_mut() {
        let exists = has_hook(&btf, program.section().to_str().unwrap_or_default());
        program.set_autoload(exists);
    }
    Ok(())
}

/// They run as long as these links live. The ends come first: where something had begun that nothing ends, it would seem to go on for ever.
pub(crate) fn watch(object: &mut Object) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for is_end in [true, false] {
        for program in object.progs_mut() {
            let section = program.section().to_str().unwrap_or_default();
            let name = program.name().to_str().unwrap_or_default();
            if section.starts_with(TRACEPOINT) && name.ends_with(END) == is_end && program.autoload() {
                links.push(program.attach()?);
            }
        }
    }
    Ok(links)
}
