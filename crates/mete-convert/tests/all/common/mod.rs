//! Helpers that several tests need: those for tests of traces, and those for tests of converters only.

#[path = "../../../../mete-trace/tests/common/mod.rs"]
mod of_traces;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use of_traces::*;

/// Text with everything that some format must escape.
pub const NASTY: &[u8; 16] = b"a\"$x @{[1]}\\\n,\xc3z";

/// What to do if a Python package is missing.
pub const HOW_TO_GET_IT: &str = "scripts/setup.sh readers puts it where the tests find it";

/// A Python that has this package: the one in METE_PYTHON, that of the set-up, or the system's.
pub fn python_with(package: &str) -> Option<PathBuf> {
    let own = std::env::var_os("METE_PYTHON").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let candidates = [own, Some(root.join("target/python/bin/python3")), Some("python3".into())];
    candidates.into_iter().flatten().find(|python| {
        let import = format!("import {package}");
        let mut command = Command::new(python);
        command.args(["-c", &import]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
