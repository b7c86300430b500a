//! The machine that a trace was recorded on.

use std::ffi::CStr;

use serde::{Deserialize, Serialize};

use crate::names::{self, ThreadName};

/// The machine that a trace was recorded on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel and its release.
    pub kernel: String,
    /// Instruction set.
    pub architecture: String,
    /// The processors' name.
    pub model: String,
    /// Processors in use by the system.
    pub processors: usize,
    /// The threads that lived when recording began and when it ended.
    #[serde(default)]
    pub threads: Vec<ThreadName>,
    /// Those threads that had another name or process when the recorder looked first: as they were then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_before: Vec<ThreadName>,
    /// Names of addresses that occur in records, in the order of the addresses: those of the kernel's own
    /// data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<AddressName>,
}

/// An address, and the name of what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressName {
    /// The address.
    pub address: u64,
    /// The kernel's symbol.
    pub name: String,
}

impl Machine {
    /// This machine, and the threads that live on it now.
    pub fn here() -> Machine {
        let name = rustix::system::uname();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        // Some architectures have no such line; the name stays empty there.
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Machine {
            kernel: format!("{} {}", text(name.sysname()), text(name.release())),
            architecture: text(name.machine()),
            model: model.map(|(_, model)| model.trim().to_owned()).unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(0, |number| number.get()),
            threads: names::living(),
            threads_before: Vec::new(),
            symbols: Vec::new(),
        }
    }
}

fn text(part: &CStr) -> String {
    part.to_string_lossy().into_owned()
}
