//! Threads and their processes as Perfetto wants to hear of them.

use super::packets::Put;
use crate::threads::Known;

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

/// Says what is known of a thread from this time on.
pub fn tell(thread: i32, known: &Known, time: u64, packets: &mut impl Put) {
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
