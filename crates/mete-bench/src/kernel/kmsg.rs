//! The kernel's own log as a program reaches it: text that is written to /dev/kmsg goes through printk.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use mete_measure::reason::Reason;

/// The setting that says how much of the text that programs write is kept.
const LIMITED: &str = "/proc/sys/kernel/printk_devkmsg";

/// The log, which keeps all text that is written. When this is dropped, the setting is what it was before.
pub struct KernelLog {
    file: File,
    before: String,
}

impl KernelLog {
    /// Opens the log.
    ///
    /// # Errors
    ///
    /// If this process may not write to it, or may not change the setting.
    pub fn open() -> Result<KernelLog, Reason> {
        let file = OpenOptions::new().write(true).open("/dev/kmsg");
        let file = file.map_err(Reason::while_trying("write to /dev/kmsg"))?;
        let before = fs::read_to_string(LIMITED).map_err(Reason::while_trying(format!("read {LIMITED}")))?;
        // By default, the kernel drops lines without notice beyond ten in five seconds.
        fs::write(LIMITED, "on\n").map_err(Reason::while_trying(format!("set {LIMITED}")))?;
        Ok(KernelLog { file, before: before.trim().to_owned() })
    }

    /// Writes one line with two numbers. Its level is the lowest one, so that no console shows it.
    ///
    /// # Errors
    ///
    /// The error of the kernel.
    pub fn line(&mut self, one: u64, other: u64) -> Result<(), Reason> {
        let mut text = [0u8; 48];
        let room = text.len();
        let mut rest = &mut text[..];
        writeln!(rest, "<7>mete study loggers {one} {other}")?;
        let used = room - rest.len();
        // The kernel takes each write as one line, so the line must go out in one write.
        self.file.write_all(&text[..used]).map_err(Reason::while_trying("write to /dev/kmsg"))
    }
}

impl Drop for KernelLog {
    fn drop(&mut self) {
        // This process could set it, so it can set it back.
        let _ = fs::write(LIMITED, format!("{}\n", self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_the_kernels_log_keeps_everything_only_as_long_as_it_is_measured() {
        let before = fs::read_to_string(LIMITED).unwrap_or_default();
        match KernelLog::open() {
            Ok(log) => {
                assert_eq!(fs::read_to_string(LIMITED).unwrap_or_default().trim(), "on");
                drop(log);
            }
            Err(reason) => println!("SKIPPED: {reason}"),
        }
        assert_eq!(fs::read_to_string(LIMITED).unwrap_or_default(), before);
    }
}
