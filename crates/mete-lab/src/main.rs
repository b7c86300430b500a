//! `mete-lab`: the program that measures Mete, for `mete bench` and `mete study`. `mete` starts it, so that
//! the program for production machines has neither peers nor figures.

mod bench;
mod study;

use std::process::ExitCode;

use clap::Parser;
use mete_command::command_line::{self, Mistake};
use mete_command::failure;
use mete_command::lab::{BenchOptions, StudyOptions};
use mete_command::output::Output;

/// Measure what Mete costs here, and the papers' figures again: the program behind `mete bench` and
/// `mete study`
#[derive(Debug, Parser)]
#[command(name = "mete-lab", bin_name = "mete", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Measure what logging costs on this machine, beside other tools, against the project's bars
    Bench(BenchOptions),
    /// Measure the papers' figures again on this machine
    Study(StudyOptions),
}

fn main() -> ExitCode {
    command_line::run(take_over_if_asked, Arguments::check, |Arguments { subcommand }| {
        mete_sched::recovery::recover().iter().for_each(|done| failure::say(done));
        // This program stays a component: it measures the probes in itself.
        match subcommand {
            Subcommand::Bench(options) => bench::run(&options, &mut Output::new(options.json)),
            Subcommand::Study(options) => study::run(&options, &mut Output::new(options.json)),
        }
    })
}

/// The scheduler that is measured starts this program a second time, which ends up here: it puts the
/// processor masks back if the bench is killed. The recorder that is measured does the same for its mounts.
fn take_over_if_asked() {
    mete_sched::actuator::watcher::take_over_if_asked();
    mete_parameters::keeper::take_over_if_asked(mete_probe::withdraw);
}

impl Arguments {
    /// Whether the options go together, and the name of the subcommand.
    fn check(&self) -> (&'static str, Result<(), Mistake>) {
        match &self.subcommand {
            Subcommand::Bench(options) => ("bench", bench::check(options)),
            Subcommand::Study(options) => ("study", study::check(options)),
        }
    }
}

#[cfg(test)]
mod tests {
    use mete_command::lab;

    #[test]
    fn the_command_line_names_every_study() {
        let studies = mete_study::studies().map(|entry| entry.name);
        assert!(studies.eq(lab::STUDIES));
    }
}
