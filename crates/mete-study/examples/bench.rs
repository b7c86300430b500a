//! The benchmark and the studies without the `mete` command:
//! `cargo run --release -p mete-study --example bench -- [--quick] [--json] [--only GROUP]`.

use std::io::Write;
use std::time::Instant;

use mete_study::{Options, Progress};

/// Says on stderr what goes on.
struct Lines(Instant);

impl Progress for Lines {
    fn begin(&mut self, what: &str, steps: u64) {
        let _ = writeln!(std::io::stderr(), "{:6.1} s  {what} ({steps} rounds)", self.0.elapsed().as_secs_f64());
    }
    fn step(&mut self) {}
    fn is_cancelled(&self) -> bool {
        false
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1).cloned();
    let options = Options { only: after("--only"), is_quick: has("--quick") };
    let report = mete_study::bench(&options, &mut Lines(Instant::now()));
    let text = if has("--json") { report.json_lines() } else { format!("{}\n", report.table()) };
    print!("{text}");
}
