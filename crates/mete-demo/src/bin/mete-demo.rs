//! `mete demo`, as a program of its own.

use std::process::ExitCode;

use clap::Parser;
use mete_command::lab::DemoOptions;
use mete_command::output::Output;
use mete_command::{command_line, failure};

/// Log real processes and act on the logs: drivers, clients, a report with plots
#[derive(Debug, Parser)]
#[command(name = "mete-demo", bin_name = "mete demo", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    options: DemoOptions,
}

fn main() -> ExitCode {
    // The scheduler starts this program a second time, which ends up in the first call: it puts masks and
    // classes back if the demo is killed.
    let take_over = mete_sched::actuator::watcher::take_over_if_asked;
    command_line::run(
        take_over,
        |_| ("", Ok(())),
        |Arguments { options }| {
            // Other runs must not find this program as a component.
            mete_probe::withdraw();
            mete_sched::recovery::recover().iter().for_each(|done| failure::say(done));
            mete_demo::run(&options, &mut Output::new(options.json))
        },
    )
}
