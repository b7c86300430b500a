//! The names of processes, as far as a trace has them.

use std::collections::HashMap;

use crate::{NamedItem, NamedTrace};

/// The names of processes at the current place in a trace.
#[derive(Debug, Default)]
pub struct ProcessNames(HashMap<i32, String>);

impl ProcessNames {
    /// The names of the processes that lived when recording began or when it ended.
    pub fn of_trace(trace: &NamedTrace) -> ProcessNames {
        let lived = trace.threads().iter();
        ProcessNames(lived.map(|of| (of.thread as i32, of.name.clone())).collect())
    }

    /// Takes the next item of the trace.
    pub fn take(&mut self, item: &NamedItem<'_>) {
        let NamedItem::Event(seen) = item else { return };
        let pid = match seen.name() {
            // A child has its parent's name until it executes a program, and the event carries it.
            "FORK" => "child",
            "EXEC" | "EXIT" => "pid",
            _ => return,
        };
        self.0.insert(seen.pid(pid), seen.text("name"));
    }

    /// A process's name, or its id where the trace has no name.
    pub fn of(&self, pid: i32) -> String {
        match self.0.get(&pid) {
            Some(name) => name.clone(),
            None if pid == 0 => "idle".to_owned(),
            None => format!("process {pid}"),
        }
    }
}
