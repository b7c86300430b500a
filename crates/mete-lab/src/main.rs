//! `mete-lab`: what shows and judges Mete, the bench and the studies. `mete bench` and `mete study` start it, so that peers
//! and figures are not in the program that runs on production machines.

mod bench;
mod study;

use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser};
use mete_command::command_line::{answer, matches, refined, refusal};
use mete_command::lab::{BenchOptions, StudyOptions};
use mete_command::output::Output;
use mete_command::{failure, interrupt};

/// Measure what Mete costs here, and the papers' figures again
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
    interrupt::settle_limits();
    // The scheduler that is measured starts this program a second time, which ends up in this call: it puts the processor
    // masks back if the bench is killed. The recorder that is measured does the same for its mounts.
    mete_sched::actuator::watcher::take_over_if_asked();
    mete_parameters::keeper::take_over_if_asked(mete_probe::withdraw);
    let command = refined(Arguments::command());
    let subcommand = match read(&command) {
        Ok(subcommand) => subcommand,
        Err(help_or_mistake) => return answer(&help_or_mistake),
    };
    mete_sched::recovery::recover().iter().for_each(|done| failure::say(done));
    // This program stays a component: it measures the probes in itself.
    let ended = match subcommand {
        Subcommand::Bench(options) => bench::run(&options, &mut Output::new(options.json)),
        Subcommand::Study(options) => study::run(&options, &mut Output::new(options.json)),
    };
    ended.unwrap_or_else(|error| failure::end(&error))
}

/// The subcommand that was typed, if its options go together.
fn read(command: &Command) -> Result<Subcommand, clap::Error> {
    let Arguments { subcommand } = Arguments::from_arg_matches(&matches(command)?)?;
    let (name, checked) = match &subcommand {
        Subcommand::Bench(options) => ("bench", bench::check(options)),
        Subcommand::Study(options) => ("study", study::check(options)),
    };
    checked.map_err(|(kind, mistake)| refusal(command, name, kind, &mistake))?;
    Ok(subcommand)
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
