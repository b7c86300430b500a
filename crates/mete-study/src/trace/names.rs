//! What processes are called, as far as a trace says.

use std::collections::HashMap;

use super::{Next, Recorded};

/// The names of processes so far.
#[derive(Debug, Default)]
pub struct Names(HashMap<i32, String>);

impl Names {
    /// With those that lived when recording began and when it ended.
    pub fn of_trace(recorded: &Recorded) -> Names {
        let lived = recorded.threads().iter();
        Names(lived.map(|of| (of.thread as i32, of.name.clone())).collect())
    }

    /// Takes what comes next.
    pub fn next(&mut self, next: &Next<'_>) {
        let Next::Event(seen) = next else { return };
        let pid = match seen.name() {
            "FORK" => "child",
            "EXEC" | "EXIT" => "pid",
            _ => return,
        };
        self.0.insert(seen.pid(pid), seen.text("name"));
    }

    /// A process's name; its number where the trace has none.
    pub fn of(&self, pid: i32) -> String {
        match self.0.get(&pid) {
            Some(name) => name.clone(),
            None if pid == 0 => "idle".to_owned(),
            None => format!("process {pid}"),
        }
    }
}
