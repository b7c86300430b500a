//! Threads and their processes in Perfetto's form.

use super::packets::PacketSink;
use crate::threads::KnownThread;

/// Fields of `ProcessTree`, its `Process` and its `Thread`.
mod field {
    pub const PROCESSES: u32 = 1;
    pub const THREADS: u32 = 2;
    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_CMDLINE: u32 = 3;
    pub const THREAD_TID: u32 = 1;
    pub const THREAD_NAME: u32 = 2;
    pub const THREAD_TGID: u32 = 3;
}

/// Writes what is known about a thread from this time on.
pub fn write_thread(thread: i32, known: &KnownThread, time: u64, packets: &mut impl PacketSink) {
    packets.process_tree(time, |tree| {
        if known.process == Some(thread) {
            tree.message(field::PROCESSES, |process| {
                process.int(field::PROCESS_PID, thread.into());
                if !known.name.is_empty() {
                    process.text(field::PROCESS_CMDLINE, &known.name);
                }
            });
        }
        tree.message(field::THREADS, |it| {
            it.int(field::THREAD_TID, thread.into());
            if let Some(process) = known.process {
                it.int(field::THREAD_TGID, process.into());
            }
            if !known.name.is_empty() {
                it.text(field::THREAD_NAME, &known.name);
            }
        });
    });
}
