//! The command line of `mete`: its subcommands, and what is common to their help and their error messages.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use mete_base::nearest::nearest;

use crate::{
    bench, demo, doctor, generate, log, parameters, record, replay, schedule, schema, sim, study, trace,
};

/// Measure what schedulers need to know, and deal the processor out by it
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
may be.";

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Say what this machine can do, what depends on it, and how to get what is missing
    Doctor(doctor::Options),
    /// Log what schedulers need to know, and print it for each accounting domain
    Log(log::Options),
    /// Log real processes and act on it: drivers, clients, a report with plots
    Demo(demo::Options),
    /// Move clients to the processors of the drivers that they talk to most, and put them back at the end
    Schedule(schedule::Options),
    /// Measure what logging costs on this machine, beside other tools, against the project's bars
    Bench(bench::Options),
    /// Try scheduling policies on a simulated machine
    Sim(sim::Options),
    /// Do the work of a recorded schedule again under other policies
    Replay(replay::Options),
    /// Measure the papers' figures again on this machine
    Study(study::Options),
    /// Check, explain or format a schema: events of a subsystem, and where they are logged
    Schema(schema::Options),
    /// Record what a schema describes into a trace: every event of the kernel, and how many are lost
    Record(record::Options),
    /// Change parameters of a running recorder: what is recorded, how much is kept free
    Set(parameters::SetOptions),
    /// Print parameters of a running recorder
    Get(parameters::GetOptions),
    /// Print a recorded trace: every event, every gap, of all processors in one order
    Show(trace::ShowOptions),
    /// Convert a recorded trace for other programs: Perfetto, Parquet, Arrow, CTF, Perl, JSON, CSV, text
    Convert(trace::ConvertOptions),
    /// Write man pages or shell completions
    #[command(hide = true)]
    Generate(generate::Options),
}

impl Arguments {
    /// The arguments that were typed, if they go together.
    ///
    /// # Errors
    ///
    /// The help that was asked for, or the message about a mistyped command line.
    pub fn read() -> Result<Arguments, clap::Error> {
        let typed = with_negative_values(std::env::args_os());
        let subcommand = typed.get(1).cloned();
        let matches =
            command().try_get_matches_from(typed).map_err(|error| hinted(error, subcommand.as_deref()))?;
        let arguments = Arguments::from_arg_matches(&matches)?;
        if let Subcommand::Schedule(options) = &arguments.subcommand {
            options.check().map_err(|(kind, mistake)| refusal("schedule", kind, &mistake))?;
        }
        if let Subcommand::Sim(options) = &arguments.subcommand {
            options.check().map_err(|(kind, mistake)| refusal("sim", kind, &mistake))?;
        }
        Ok(arguments)
    }
}

/// The definition of the whole command line, from which arguments are read and help is written.
pub fn command() -> Command {
    refined(Arguments::command())
}

/// Makes the paragraphs flow in the help of a command and of each of its subcommands.
fn refined(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(flowing(&text)),
        None => command,
    };
    command.mut_subcommands(refined)
}

/// Joins the lines of each paragraph into one, which clap breaks to fit the terminal. If the breaks of the source
/// stayed, a narrow terminal would break each line a second time. Examples keep their lines.
fn flowing(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let has_example = paragraph.lines().any(|line| line.starts_with(' '));
        if has_example { paragraph.to_owned() } else { paragraph.replace('\n', " ") }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Turns `--for -5s` into `--for=-5s`. No option begins with a digit, so `-5s` is a value, and the parser of that value
/// says what is allowed instead. Arguments after `--` belong to another command and stay as they are.
fn with_negative_values(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut joined, mut is_own) = (Vec::<OsString>::new(), true);
    for argument in arguments {
        is_own &= argument != "--";
        match joined.last_mut() {
            Some(option) if is_own && is_open_option(option) && is_negative(&argument) => {
                option.push("=");
                option.push(&argument);
            }
            _ => joined.push(argument),
        }
    }
    joined
}

fn is_open_option(argument: &OsStr) -> bool {
    let bytes = argument.as_encoded_bytes();
    bytes.starts_with(b"--") && bytes.len() > 2 && !bytes.contains(&b'=')
}

fn is_negative(argument: &OsStr) -> bool {
    matches!(argument.as_encoded_bytes(), [b'-', digit, ..] if digit.is_ascii_digit())
}

/// An error message in the form in which clap writes those of this subcommand.
fn refusal(subcommand: &str, kind: ErrorKind, mistake: &str) -> clap::Error {
    let mut command = command();
    command.build();
    match command.find_subcommand_mut(subcommand) {
        Some(subcommand) => subcommand.error(kind, mistake),
        None => command.error(kind, mistake),
    }
}

/// Adds what was probably meant where clap finds nothing similar: swapped letters, as in `lgo` and `--fro`.
fn hinted(mut error: clap::Error, subcommand: Option<&OsStr>) -> clap::Error {
    let command = command();
    let (wrong, suggested, known): (_, _, Vec<String>) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let names = shown.map(|command| command.get_name().to_owned()).collect();
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand, names)
        }
        ErrorKind::UnknownArgument => {
            let name = subcommand.and_then(OsStr::to_str).unwrap_or_default();
            let options = command.find_subcommand(name).unwrap_or(&command).get_arguments();
            let names = options.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
            (ContextKind::InvalidArg, ContextKind::SuggestedArg, names)
        }
        _ => return error,
    };
    if let Some(ContextValue::String(typed)) = error.get(wrong)
        && error.get(suggested).is_none()
        && let Some(meant) = nearest(typed, known.iter().map(String::as_str))
    {
        let meant = match suggested {
            ContextKind::SuggestedSubcommand => ContextValue::Strings(vec![meant.to_owned()]),
            _ => ContextValue::String(meant.to_owned()),
        };
        error.insert(suggested, meant);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_negative_number_is_the_value_of_the_option_before_it() {
        let joined = |text: &str| -> String {
            let joined = with_negative_values(text.split(' ').map(OsString::from));
            joined.join(OsStr::new(" ")).to_string_lossy().into_owned()
        };
        assert_eq!(joined("mete log --for -5s --json"), "mete log --for=-5s --json");
        assert_eq!(joined("mete sim mix --seed=1 -1"), "mete sim mix --seed=1 -1");
        assert_eq!(joined("mete log --for --every 1s"), "mete log --for --every 1s");
        assert_eq!(joined("mete log -- nice --adjustment -5"), "mete log -- nice --adjustment -5");
        assert_eq!(joined("mete log -- -5"), "mete log -- -5");
    }

    #[test]
    fn paragraphs_flow_and_examples_stand() {
        let text = "Examples:\n  mete a\n  mete b\n\nOne two\nthree.\n\nFour.";
        assert_eq!(flowing(text), "Examples:\n  mete a\n  mete b\n\nOne two three.\n\nFour.");
    }
}
