//! Help, man pages and completions.

use std::fs;

use crate::common::{mete, printed_by, stdout};

/// All subcommands that are shown.
const SHOWN: [&str; 15] = [
    "doctor", "log", "schedule", "demo", "bench", "sim", "replay", "study", "schema", "record", "set", "get",
    "status", "show", "convert",
];

#[test]
fn help_of_every_subcommand_has_examples_that_name_it() {
    let help = stdout(&["--help"]);
    assert!(help.contains("Examples:"), "{help}");
    for name in SHOWN {
        assert!(help.contains(&format!("\n  {name}")), "{name} is not listed:\n{help}");
        let help = stdout(&[name, "--help"]);
        let examples = help.split_once("Examples:").map(|(_, examples)| examples.to_owned());
        assert!(examples.is_some_and(|examples| examples.contains(&format!("mete {name}"))), "{help}");
    }
}

/// The help as it is printed for this number of columns.
fn help_within(columns: usize, name: &str) -> String {
    let assert = mete(&[name, "--help"]).env("COLUMNS", columns.to_string()).assert().success();
    printed_by(&assert)
}

#[test]
fn help_fits_80_and_100_columns_and_is_broken_by_the_terminal_alone() {
    for (name, columns) in SHOWN.into_iter().flat_map(|name| [(name, 80), (name, 100)]) {
        let help = help_within(columns, name);
        // Two things are not broken, because they may be typed as they stand: a usage, and a list that is one
        // word.
        let stands = |line: &str| line.starts_with("Usage:") || !line.trim().contains(' ');
        let fits = |line: &str| line.chars().count() <= columns || stands(line);
        assert!(help.lines().all(fits), "{help}");
        // Where a line ends before the paragraph does, the next word had no room.
        let (_, behind) = help.split_once("Examples:").unwrap();
        let lines: Vec<_> = behind.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| !line.is_empty())) {
            let is_text = pair.iter().all(|line| !line.starts_with(' '));
            let word = pair[1].split(' ').next().unwrap();
            let room = columns - pair[0].chars().count();
            assert!(!is_text || word.chars().count() + 1 > room, "{name}: {pair:?}");
        }
    }
}

#[test]
fn examples_stand_as_they_are_in_80_columns() {
    for name in SHOWN {
        let examples = |help: String| -> Vec<String> {
            let (_, behind) = help.split_once("Examples:").unwrap();
            behind.trim_start().lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(examples(help_within(80, name)), examples(help_within(200, name)), "{name}");
    }
}

#[test]
fn examples_of_the_help_are_accepted_as_they_stand() {
    for name in SHOWN {
        let help = stdout(&[name, "--help"]);
        let examples = help.split_once("Examples:").unwrap().1;
        for line in examples.lines().map(str::trim).filter(|line| line.contains("mete ")) {
            let line = line.trim_start_matches("sudo ").split(" | ").next().unwrap();
            // An explanation behind a command stands apart from it.
            let command = line.split("  ").next().unwrap();
            let Some(arguments) = command.strip_prefix("mete ") else { continue };
            let arguments = arguments.split(" -- ").next().unwrap();
            // With --help behind it, the rest is parsed and nothing is done.
            let words = arguments.split_whitespace().map(|word| word.trim_matches('\''));
            let arguments: Vec<_> = words.chain(["--help"]).collect();
            let assert = mete(&arguments).assert();
            let output = assert.get_output();
            let said = String::from_utf8_lossy(&output.stderr);
            // The users, groups and files of the examples need not exist here.
            let is_elsewhere =
                ["there is no user", "there is no control group", "shares.toml cannot be read"]
                    .iter()
                    .any(|missing| said.contains(missing));
            assert!(output.status.success() || is_elsewhere, "{line}: {said}");
        }
    }
}

#[test]
fn there_is_a_man_page_for_every_subcommand() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    stdout(&["generate", "man", "--out", path]);
    let names = SHOWN.map(|name| format!("mete-{name}.1"));
    for name in names.iter().map(String::as_str).chain(["mete.1"]) {
        let page =
            fs::read_to_string(directory.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            page.contains(".SH NAME") && page.contains(".SH OPTIONS") && page.contains(".SH EXAMPLES"),
            "{name}"
        );
    }
    let is_of_help = |name: &str| name.contains("-help");
    let pages = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(pages.filter(|name| is_of_help(name)).collect::<Vec<_>>(), [] as [String; 0]);
}

#[test]
fn there_are_completions_for_every_shell_and_subcommand() {
    let directory = tempfile::tempdir().unwrap();
    stdout(&["generate", "completions", "--out", directory.path().to_str().unwrap()]);
    for file in ["mete.bash", "_mete", "mete.fish"] {
        let text =
            fs::read_to_string(directory.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for name in SHOWN {
            assert!(text.contains(name), "{file} does not complete {name}");
        }
    }
}

#[test]
fn completions_know_policies_schemata_and_scenarios() {
    let directory = tempfile::tempdir().unwrap();
    stdout(&["generate", "completions", "--out", directory.path().to_str().unwrap()]);
    let bash = std::fs::read_to_string(directory.path().join("mete.bash")).unwrap();
    for name in ["group-vtrr", "stopwatch", "shares-3-2-1"] {
        assert!(bash.contains(name), "{name}");
    }
    // In the place where the shell completes what the option of that subcommand takes.
    let schedule = bash.split("mete__subcmd__schedule)").nth(1).unwrap_or_default();
    let policies = schedule.split("--policy)").nth(1).unwrap_or_default();
    assert!(policies.lines().nth(1).is_some_and(|line| line.contains("eevdf") && line.contains("affinity")));
}
