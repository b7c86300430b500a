//! The benchmark and the studies without the `mete` command. From the root of the repository:
//!
//! ```text
//! cargo run --release -p mete-study --example bench -- [--quick] [--json] [--only GROUP] [--write]
//! cargo run --release -p mete-study --example bench -- log-cost | … | vtrr-error [--quick] [--write]
//! ```
//!
//! `--write` keeps the results under `results/` and `studies/`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use mete_study::study::{StudyOptions, by_name};
use mete_study::{Options, Progress, Report, bench};

static IS_CANCELLED: AtomicBool = AtomicBool::new(false);

extern "C" fn cancel(_signal: libc::c_int) {
    IS_CANCELLED.store(true, Ordering::Relaxed);
}

/// Reports progress on stderr.
struct Lines(Instant);

impl Progress for Lines {
    fn begin(&mut self, what: &str, steps: u64) {
        let seconds = self.0.elapsed().as_secs_f64();
        // If stderr is closed, progress is not reported.
        let _ = writeln!(std::io::stderr(), "{seconds:6.1} s  {what}, {steps} steps");
    }
    fn step(&mut self) {}
    fn is_cancelled(&self) -> bool {
        IS_CANCELLED.load(Ordering::Relaxed)
    }
}

fn main() -> ExitCode {
    // SAFETY: the handler only stores to an atomic.
    unsafe { libc::signal(libc::SIGINT, cancel as *const () as libc::sighandler_t) };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the results: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> std::io::Result<()> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let only = arguments.iter().skip_while(|argument| *argument != "--only").nth(1).cloned();
    let mut progress = Lines(Instant::now());
    let options = StudyOptions { is_quick: has("--quick") };
    if let Some(entry) = arguments.first().and_then(|name| by_name(name)) {
        let study = (entry.run)(options, &mut progress);
        print(&study.report, has("--json"))?;
        for figure in &study.figures {
            println!("{}: {}; {} ({})", figure.figure, figure.paper, figure.ours, figure.verdict.text());
        }
        return if has("--write") { study.write_to(Path::new("studies")) } else { Ok(()) };
    }
    let report = bench(&Options { only, is_quick: has("--quick"), ..Options::default() }, &mut progress);
    print(&report, has("--json"))?;
    if has("--write") { report.write_csv(Path::new("results"), &report.file_name()) } else { Ok(()) }
}

fn print(report: &Report, is_json: bool) -> std::io::Result<()> {
    let text = if is_json {
        report.json_lines()
    } else {
        format!("{}\n{}\n", report.machine.line(), report.table())
    };
    std::io::stdout().write_all(text.as_bytes())
}
