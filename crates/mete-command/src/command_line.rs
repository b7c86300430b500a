//! What the command lines of all programs have in common: help that fits the terminal, negative values, and error
//! messages that say what was probably meant.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use mete_base::nearest::nearest;

use crate::{failure, output};

/// What is wrong with options that clap accepts one by one, and how to correct it.
pub type Mistake = (ErrorKind, String);

/// Matches the arguments of this process with the definition of a command line.
///
/// # Errors
///
/// The help that was asked for, or the message about a mistyped command line.
pub fn matches(command: &Command) -> Result<ArgMatches, clap::Error> {
    let typed = typed();
    let subcommand = typed.get(1).cloned();
    let matched = command.clone().try_get_matches_from(typed);
    matched.map_err(|error| hinted(command, error, subcommand.as_deref()))
}

/// Prints what clap answers: help to stdout, a mistake to stderr. Returns the exit status.
pub fn answer(help_or_mistake: &clap::Error) -> ExitCode {
    match help_or_mistake.print() {
        Ok(()) => ExitCode::from(help_or_mistake.exit_code() as u8),
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

/// Joins the lines of each paragraph into one, which clap breaks to fit the terminal. If the breaks of the source
/// stayed, a narrow terminal would break each line a second time. Examples keep their lines.
fn flowing(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let has_example = paragraph.lines().any(|line| line.starts_with(' '));
        if has_example { paragraph.to_owned() } else { paragraph.replace('\n', " ") }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// An error message in the form in which clap writes those of this subcommand.
pub fn refusal(command: &Command, subcommand: &str, kind: ErrorKind, mistake: &str) -> clap::Error {
    let mut command = command.clone();
    command.build();
    match command.find_subcommand_mut(subcommand) {
        Some(subcommand) => subcommand.error(kind, mistake),
        None => command.error(kind, mistake),
    }
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
