//! The programs that belong beside this one: it hands subcommands over to them.

use mete_command::lab;
use mete_kernel::{Capability, Need};

pub fn capabilities() -> Vec<Capability> {
    vec![
        beside("mete-lab", Need::For("mete bench and mete study")),
        beside("mete-demo", Need::For("mete demo")),
        beside("mete-demo-part", Need::For("mete demo, and the demo's requests in mete bench")),
    ]
}

fn beside(name: &'static str, needed_for: Need) -> Capability {
    let found = lab::program_beside(name);
    Capability {
        name,
        finding: found.map(|path| path.display().to_string()).map_err(|error| error.to_string()),
        needed_for,
        remedy: "make install puts all programs into one directory; make build builds them",
    }
}
