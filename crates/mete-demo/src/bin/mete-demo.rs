//! `mete demo`, as a program of its own.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use mete_command::command_line::{answer, matches, refined};
use mete_command::lab::DemoOptions;
use mete_command::output::Output;
use mete_command::{failure, interrupt};

/// Log real processes and act on the logs: drivers, clients, a report with plots
#[derive(Debug, Parser)]
#[command(name = "mete demo", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    options: DemoOptions,
}

fn main() -> ExitCode {
    interrupt::settle_limits();
    // The scheduler starts this program a second time, which ends up in this call: it puts the processor masks back if the
    // demo is killed.
    mete_sched::actuator::watcher::take_over_if_asked();
    let command = refined(Arguments::command());
    let read = matches(&command).and_then(|matches| Arguments::from_arg_matches(&matches));
    let options = match read {
        Ok(Arguments { options }) => options,
        Err(help_or_mistake) => return answer(&help_or_mistake),
    };
    // Other runs must not find this program as a component.
    mete_probe::withdraw();
    mete_sched::recovery::recover().iter().for_each(|done| failure::say(done));
    mete_demo::run(&options, &mut Output::new(options.json)).unwrap_or_else(|error| failure::end(&error))
}
