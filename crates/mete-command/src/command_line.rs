//! What all programs have in common from their first line to their exit status: limits, a command line with
//! help that fits the terminal, negative values, error messages that say what was probably meant, and
//! failures.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Parser};
use mete_base::nearest::nearest;

use crate::status::{DONE, MISTYPED};
use crate::{failure, interrupt, output};

/// What is wrong with options that clap accepts one by one, and how to correct it.
pub type Mistake = (ErrorKind, String);

/// Runs a program: reads its arguments, does its work, and tells a failure.
///
/// `take_over` comes before the arguments are read. A process that the program started with its own
/// executable, such as one that puts processor masks back, does its work there and does not return. `check`
/// says whether the options go together, and the name of the subcommand.
pub fn run<A: Parser>(
    take_over: impl FnOnce(),
    check: impl FnOnce(&A) -> (&'static str, Result<(), Mistake>),
    work: impl FnOnce(A) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    interrupt::settle_limits();
    take_over();
    match read(check) {
        Ok(arguments) => work(arguments).unwrap_or_else(|error| failure::end(&error)),
        Err(help_or_mistake) => answer(&help_or_mistake),
    }
}

/// The arguments that were typed, if they go together. The error is the help that was asked for, or the
/// message about a mistyped command line.
fn read<A: Parser>(check: impl FnOnce(&A) -> (&'static str, Result<(), Mistake>)) -> Result<A, clap::Error> {
    let command = refined(A::command());
    let typed = typed();
    let subcommand = typed.get(1).cloned();
    let matched = command.clone().try_get_matches_from(typed);
    let matched = matched.map_err(|error| hinted(&command, error, subcommand.as_deref()))?;
    let arguments = A::from_arg_matches(&matched)?;
    // What can be told from the command line alone is told here, so that it has the exit status of a mistyped
    // command line and not that of a failure.
    let (subcommand, checked) = check(&arguments);
    checked.map_err(|(kind, mistake)| refusal(&command, subcommand, kind, &mistake))?;
    Ok(arguments)
}

/// Prints what clap answers: help to stdout, a mistake to stderr. Returns the exit status.
fn answer(help_or_mistake: &clap::Error) -> ExitCode {
    match help_or_mistake.print() {
        // Help goes to stdout, and it was asked for.
        Ok(()) => ExitCode::from(if help_or_mistake.use_stderr() { MISTYPED } else { DONE }),
        Err(error) => failure::end(&output::failed(&error)),
    }
}

/// The arguments of this process, each negative value joined to its option.
pub fn typed() -> Vec<OsString> {
    with_negative_values(std::env::args_os())
}

/// Makes the paragraphs flow in the help of a command and of each of its subcommands.
pub fn refined(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(flowing(&text)),
        None => command,
    };
    command.mut_subcommands(refined)
}

/// Joins the lines of each paragraph into one, which clap breaks to fit the terminal. If the breaks of the
/// source stayed, a narrow terminal would break each line a second time. Examples keep their lines.
fn flowing(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let has_example = paragraph.lines().any(|line| line.starts_with(' '));
        if has_example { paragraph.to_owned() } else { paragraph.replace('\n', " ") }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// An error message in the form in which clap writes those of this subcommand.
fn refusal(command: &Command, subcommand: &str, kind: ErrorKind, mistake: &str) -> clap::Error {
    let mut command = command.clone();
    command.build();
    match command.find_subcommand_mut(subcommand) {
        Some(subcommand) => subcommand.error(kind, mistake),
        None => command.error(kind, mistake),
    }
}

/// Turns `--for -5s` into `--for=-5s`. No option begins with a digit, so `-5s` is a value, and the parser of
/// that value says what is allowed instead. Arguments after `--` belong to another command and stay as they
/// are.
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

/// Adds what was probably meant where clap finds nothing similar: swapped letters, as in `lgo` and `--fro`.
fn hinted(command: &Command, mut error: clap::Error, subcommand: Option<&OsStr>) -> clap::Error {
    let (wrong, suggested, known): (_, _, Vec<String>) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let names = shown.map(|command| command.get_name().to_owned()).collect();
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand, names)
        }
        ErrorKind::UnknownArgument => {
            let name = subcommand.and_then(OsStr::to_str).unwrap_or_default();
            let options = command.find_subcommand(name).unwrap_or(command).get_arguments();
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
