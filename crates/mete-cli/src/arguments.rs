//! The command line of `mete`: its subcommands, and what is common to their help and their error messages.

use clap::Parser;
use mete_command::command_line::Mistake;
use mete_command::lab::{BenchOptions, DemoOptions, StudyOptions};

use crate::parse::check_domains;
use crate::{doctor, generate, log, parameters, record, replay, schedule, schema, sim, status, trace};

/// Measure what schedulers need to know, and schedule by it
#[derive(Debug, Parser)]
#[command(name = "mete", version, after_help = EXAMPLES, max_term_width = 100, infer_subcommands = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

const EXAMPLES: &str = "\
Examples:
  mete doctor                        what this machine can do
  sudo mete demo                     watch the main job on real processes
  sudo mete log --for 5s             log the whole machine for five seconds
  sudo mete log -- make -j4          log a command and everything that it starts
  sudo mete schedule --driver db=comm:postgres --client web=comm:nginx
  sudo mete record --schema scheduler -o trace -- make
  mete show trace                    what ran when, and who was woken by whom
  mete sim mix --policy vtrr,eevdf   two policies on a simulated machine
  sudo mete bench --quick            what logging costs on this machine

Each subcommand shows its own examples: mete log --help

Results fit the terminal. Into a file or a pipe they go unfolded, unless COLUMNS says how wide they
may be.

Exit status: 0 all is done; 1 it failed, and the last line on stderr says why; 2 the command line is
mistyped, or names what is not there; 3 something is missing from the results; 126, 127 a command that
was to be started cannot be run, or does not exist; 130 stopped before its end; 141 the reader of the
results has gone. What runs a command ends with the command's own status.";

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Say what this machine can do, what depends on it, and how to get what is missing
    Doctor(doctor::DoctorOptions),
    /// Log what schedulers need to know, and print it for each accounting domain
    Log(log::LogOptions),
    /// Log real processes and act on the logs: drivers, clients, a report with plots
    Demo(DemoOptions),
    /// Move clients to the drivers that they talk to most, or deal out shares
    Schedule(schedule::ScheduleOptions),
    /// Measure what logging costs on this machine, beside other tools, against the project's bars
    Bench(BenchOptions),
    /// Try scheduling policies on a simulated machine
    Sim(sim::SimOptions),
    /// Do the work of a recorded schedule again under other policies
    Replay(replay::ReplayOptions),
    /// Measure the papers' figures again on this machine
    Study(StudyOptions),
    /// Check, explain or format a schema: events of a subsystem, and where they are logged
    Schema(schema::SchemaOptions),
    /// Record what a schema describes into a trace: every event of the kernel, and how many are lost
    Record(record::RecordOptions),
    /// Say how running schedulers and recorders are: shares wanted and given, decisions, losses
    Status(status::StatusOptions),
    /// Change parameters of a running recorder or scheduler: what is recorded, which share a domain has
    Set(parameters::SetOptions),
    /// Print parameters of a running recorder or scheduler
    Get(parameters::GetOptions),
    /// Print a recorded trace: every event, every gap, of all processors in one order
    Show(trace::ShowOptions),
    /// Convert a recorded trace for other programs: Perfetto, Parquet, Arrow, CTF, Perl, JSON, CSV, text
    Convert(trace::ConvertOptions),
    /// Write man pages or shell completions
    #[command(hide = true)]
    Generate(generate::GenerateOptions),
}

impl Arguments {
    /// Whether the options go together, and the name of the subcommand.
    pub fn check(&self) -> (&'static str, Result<(), Mistake>) {
        match &self.subcommand {
            Subcommand::Log(options) => ("log", check_domains(&options.domains)),
            Subcommand::Schedule(options) => ("schedule", options.check()),
            Subcommand::Sim(options) => ("sim", options.check()),
            Subcommand::Record(options) => ("record", check_domains(&options.domains)),
            Subcommand::Show(options) => ("show", options.choice.check()),
            Subcommand::Convert(options) => ("convert", options.check()),
            _ => ("", Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use mete_command::command_line::refined;

    use super::Arguments;

    #[test]
    fn the_command_line_is_consistent() {
        refined(Arguments::command()).debug_assert();
    }
}
