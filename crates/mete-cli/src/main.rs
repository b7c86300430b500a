//! The command `mete`: it reads arguments and prints tables or JSON lines. The crates below it do the work;
//! this crate holds the words, the waiting and the exit status.
//!
//! ```text
//!   arguments ──▶ subcommand (log, schedule, record, …) ──▶ output ──▶ stdout
//!                     └── progress, notices, failures ───────────────▶ stderr
//! ```
//!
//! Conventions of all subcommands:
//!
//! - Results go to stdout, everything else to stderr. With `--json`, the results are one JSON object a line.
//! - Ctrl-C ends a run with the results so far, unless the run has no other end.
//! - [`mete_command::status`] has the exit statuses and their meanings.

mod arguments;
mod doctor;
mod generate;
mod latency;
mod log;
mod notice;
mod parameters;
mod parse;
mod record;
mod recovery;
mod replay;
mod report;
mod schedule;
mod schema;
mod sim;
mod status;
mod trace;

use std::process::ExitCode;

use clap::CommandFactory;
use mete_command::output::Output;
use mete_command::{command_line, lab};

use arguments::{Arguments, Subcommand};

fn main() -> ExitCode {
    command_line::run(take_over_if_asked, Arguments::check, |arguments| {
        // Other runs must not find this program as a component.
        mete_probe::withdraw();
        recovery::run();
        run(arguments.subcommand)
    })
}

/// A scheduler starts this program a second time. That second process ends up here: it puts masks, classes or
/// weights back if the scheduler is killed. In the same way, a recorder that mounts its parameters starts a
/// process that unmounts them.
fn take_over_if_asked() {
    mete_sched::actuator::watcher::take_over_if_asked();
    mete_parameters::keeper::take_over_if_asked(mete_probe::withdraw);
}

fn run(subcommand: Subcommand) -> anyhow::Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    match subcommand {
        Subcommand::Doctor(options) => doctor::run(&options, &mut Output::new(options.json)).map(done),
        Subcommand::Log(options) => log::run(&options, &mut Output::new(options.json)),
        Subcommand::Schedule(options) => schedule::run(&options, &mut Output::new(options.json)),
        Subcommand::Demo(_) => Err(lab::become_program("mete-demo", None)),
        Subcommand::Bench(_) => Err(lab::become_program("mete-lab", Some("bench"))),
        Subcommand::Sim(options) => sim::run(&options, &mut Output::new(options.json)),
        Subcommand::Replay(options) => replay::run(&options, &mut Output::new(options.json)).map(done),
        Subcommand::Study(_) => Err(lab::become_program("mete-lab", Some("study"))),
        Subcommand::Schema(options) => schema::run(&options).map(done),
        Subcommand::Record(options) => record::run(&options, &mut Output::new(options.json)),
        Subcommand::Status(options) => status::run(&mut Output::new(options.json)).map(done),
        Subcommand::Set(options) => parameters::set(&options).map(done),
        Subcommand::Get(options) => parameters::get(&options, &mut Output::new(options.json)).map(done),
        Subcommand::Show(options) => trace::show(&options),
        Subcommand::Convert(options) => trace::run_convert(&options),
        Subcommand::Generate(options) => {
            generate::run(&options, Arguments::command(), &mut Output::new(false)).map(done)
        }
    }
}
