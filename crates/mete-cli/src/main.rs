//! The command `mete`: arguments in, tables or JSON lines out. What it shows is found out by the
//! crates below it; here are the words, the waiting and the exit status.
//!
//! ```text
//!   arguments ──▶ doctor │ log │ schedule │ bench │ sim │ replay │ study │ schema │ record │ set │ get │ show │ convert ──▶ output ──▶ stdout
//!                     └── progress, notes, failures ─────────────────────────▶ stderr
//! ```
//!
//! Conventions of all subcommands: results go to stdout and everything else to stderr; `--json`
//! makes the results one object a line; a failure is one sentence and exit status 1, a mistyped
//! command line exit status 2; a trace of which a part cannot be read is shown or converted without it, with exit
//! status 3; a command that cannot be run, 126, or does not exist, 127; a closed pipe ends it without a word and with 141, as SIGPIPE
//! would; Ctrl-C ends a run with the results so far and exit status 130, unless the run has no other end.

mod arguments;
mod bench;
mod demo;
mod doctor;
mod failure;
mod files;
mod folder_draft;
mod generate;
mod interrupt;
mod latency;
mod log;
mod notice;
mod output;
mod parameters;
mod parse;
mod progress;
mod record;
mod recovery;
mod replay;
mod report;
mod schedule;
mod schema;
mod sim;
mod study;
mod sweep;
mod table;
mod terminal;
mod trace;

use std::process::ExitCode;

use arguments::{Arguments, Subcommand};
use output::Output;

fn main() -> ExitCode {
    interrupt::settle_limits();
    // Placing processes starts this program a second time, to put them back.
    mete_sched::actuator::watcher::take_over_if_asked();
    // And so does mounting parameters, to unmount them.
    mete_parameters::keeper::take_over_if_asked(mete_probe::withdraw);
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(help_or_mistake) => return answer(&help_or_mistake),
    };
    if !matches!(arguments.subcommand, Subcommand::Bench(_) | Subcommand::Study(_)) {
        // The probes in here are what the bench measures; other uses are no component.
        mete_probe::withdraw();
    }
    recovery::run();
    run(arguments.subcommand).unwrap_or_else(|error| failure::end(&error))
}

/// What clap has to say: help to stdout, a mistake to stderr.
fn answer(said: &clap::Error) -> ExitCode {
    match said.print() {
        Ok(()) => ExitCode::from(said.exit_code() as u8),
        Err(error) => failure::end(&output::failed(&error)),
    }
}

fn run(subcommand: Subcommand) -> anyhow::Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    match subcommand {
        Subcommand::Doctor(options) => doctor::run(&options, &mut Output::new(options.json)).map(done),
        Subcommand::Log(options) => log::run(&options, &mut Output::new(options.json)),
        Subcommand::Schedule(options) => schedule::run(&options, &mut Output::new(options.json)),
        Subcommand::Demo(options) => demo::run(&options, &mut Output::new(options.json)),
        Subcommand::Bench(options) => bench::run(&options, &mut Output::new(options.json)),
        Subcommand::Sim(options) => sim::run(&options, &mut Output::new(options.json)),
        Subcommand::Replay(options) => replay::run(&options, &mut Output::new(options.json)).map(done),
        Subcommand::Study(options) => study::run(&options, &mut Output::new(options.json)),
        Subcommand::Schema(options) => schema::run(&options).map(done),
        Subcommand::Record(options) => record::run(&options, &mut Output::new(options.json)),
        Subcommand::Set(options) => parameters::set(&options).map(done),
        Subcommand::Get(options) => parameters::get(&options, &mut Output::new(options.json)).map(done),
        Subcommand::Show(options) => trace::show(&options),
        Subcommand::Convert(options) => trace::run_convert(&options),
        Subcommand::Generate(options) => generate::run(&options, &mut Output::new(false)).map(done),
    }
}
