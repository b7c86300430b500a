//! A policy that rules in a process that tests can stop and kill.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A policy that rules in a process of its own.
pub struct Ruler {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Ruler {
    pub fn start(policy: &str) -> Ruler {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mete-ext-ruler"));
        let mut process = command.arg(policy).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut ruler = Ruler { process, input, output: BufReader::new(output) };
        assert_eq!(ruler.line(), "ruling\n");
        ruler
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Has another policy rule, and says what came of it.
    pub fn set_policy(&mut self, policy: &str) -> String {
        self.input.write_all(format!("{policy}\n").as_bytes()).unwrap();
        self.line()
    }

    /// What was done so far.
    pub fn status(&mut self) -> HashMap<String, u64> {
        self.input.write_all(b"\n").unwrap();
        let line = self.line();
        let words = line.split_whitespace().filter_map(|word| word.split_once('='));
        words.map(|(name, number)| (name.to_owned(), number.parse().unwrap())).collect()
    }

    /// Sends a signal to it.
    pub fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }
}

impl Drop for Ruler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        wait_until_disabled();
    }
}

/// Waits until the kernel rules again.
pub fn wait_until_disabled() {
    let state = || fs::read_to_string("/sys/kernel/sched_ext/state").unwrap();
    let begin = Instant::now();
    while state().trim() != "disabled" {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", state());
        sleep(Duration::from_millis(20));
    }
}
