//! The machine that results were taken on.

use std::fs;

use serde::Serialize;

/// What a reader of results has to know about the machine, and when the results were taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name for itself.
    pub processor: String,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// Whether the machine is a virtual one.
    pub is_virtual: bool,
    /// Bytes of the second and third level's cache; 0 where unknown.
    pub caches: [u64; 2],
    /// The kernel's release.
    pub kernel: String,
    /// Day and time, UTC, as `2026-11-03T14:05:00Z`.
    pub date: String,
}

impl Machine {
    /// This machine, now.
    pub fn here() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        Machine {
            processor: field(&cpuinfo, "model name").unwrap_or("unknown processor").to_owned(),
            processors: crate::processor::allowed().len(),
            is_virtual: field(&cpuinfo, "flags").is_some_and(|flags| flags.contains("hypervisor")),
            caches: [cache(2), cache(3)],
            kernel,
            date: now(),
        }
    }

    /// One line for a table's head or a comment in a file.
    pub fn line(&self) -> String {
        let place = if self.is_virtual { "virtual machine" } else { "bare metal" };
        let [l2, l3] = self.caches.map(|bytes| bytes >> 10);
        // Numbers of a build without optimisation say nothing, so its readers must be warned.
        let build = if cfg!(debug_assertions) { ", DEBUG BUILD" } else { "" };
        format!(
            "{}, {} processors ({place}), L2 {l2} KiB, L3 {l3} KiB, Linux {}, {}{build}",
            self.processor, self.processors, self.kernel, self.date
        )
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// A file of the first processor's `nth` cache in sysfs; empty if there is no such cache.
fn of_cache(nth: u32, file: &str) -> String {
    fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{nth}/{file}")).unwrap_or_default()
}

/// Bytes of the first processor's cache of that level, which is not an instruction cache; 0 if unknown.
fn cache(level: u32) -> u64 {
    let found = (0..8).find(|&nth| of_cache(nth, "level").trim() == level.to_string());
    let size = found.map(|nth| of_cache(nth, "size")).unwrap_or_default();
    // sysfs gives sizes as `2048K`.
    size.trim().strip_suffix('K').and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() as libc::time_t;
    // SAFETY: all-zero is a valid `tm`, which the call fills.
    let parts = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut parts);
        parts
    };
    let libc::tm { tm_mday: day, tm_hour: hour, tm_min: minute, tm_sec: second, .. } = parts;
    // A `tm` counts years from 1900 and months from 0.
    let (year, month) = (parts.tm_year + 1900, parts.tm_mon + 1);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
