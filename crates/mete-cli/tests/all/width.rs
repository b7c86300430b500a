//! Text in a terminal fits its width. Text into a pipe stays as it is.

use crate::common::{mete, on_a_terminal, printed_by, program};

/// Output that is wider than a screen unless it is folded.
const WIDE: [&[&str]; 6] = [
    &["doctor"],
    &["sim", "--list"],
    &["sim", "mix", "--for", "6s"],
    &["sim", "tavs-web", "--for", "6s", "--policy", "rr,wrr,vtrr,wfq,eevdf,lottery,credit,credit-tavs"],
    &["schema", "explain", "locking", "--no-btf"],
    &["study", "--list"],
];

fn printed(arguments: &[&str], columns: Option<usize>) -> String {
    let mut command = mete(arguments);
    match columns {
        Some(columns) => command.env("COLUMNS", columns.to_string()),
        None => command.env_remove("COLUMNS"),
    };
    let assert = command.assert().success();
    printed_by(&assert)
}

/// A word that is longer than a line stays whole.
fn too_wide(text: &str, columns: usize) -> Vec<&str> {
    let is_wide = |line: &&str| line.trim_end().chars().count() > columns && line.trim().contains(' ');
    text.lines().filter(is_wide).collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| !word.starts_with('─')).collect()
}

#[test]
fn results_fit_80_and_120_columns() {
    for arguments in WIDE {
        for columns in [80, 120] {
            let text = printed(arguments, Some(columns));
            let wide = too_wide(&text, columns);
            assert!(wide.is_empty(), "{arguments:?} in {columns} columns: {wide:#?}\n{text}");
        }
    }
}

#[test]
fn what_goes_into_a_pipe_is_not_folded() {
    for arguments in [&["sim", "--list"][..], &["schema", "explain", "locking", "--no-btf"]] {
        let (whole, folded) = (printed(arguments, None), printed(arguments, Some(60)));
        assert!(whole.lines().count() < folded.lines().count(), "{whole}");
        let (mut whole, mut folded) = (words(&whole), words(&folded));
        whole.sort_unstable();
        folded.sort_unstable();
        assert_eq!(whole, folded, "folding leaves out nothing");
    }
}

#[test]
fn code_is_printed_as_it_stands() {
    for arguments in [["schema", "format", "locking"], ["schema", "format", "scheduler"]] {
        assert_eq!(printed(&arguments, None), printed(&arguments, Some(40)));
    }
}

#[test]
fn a_terminal_is_asked_how_wide_it_is() {
    for columns in [80, 120] {
        let command = format!("stty cols {columns} && {} sim --list", program(&[]).get_program().display());
        let Some(mut script) = on_a_terminal(&command) else { return };
        let text = printed_by(&script.env("COLUMNS", "60").assert().success()).replace('\r', "");
        let widest = text.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
        assert!(widest <= columns && widest > columns - 20, "{widest} in {columns}:\n{text}");
    }
}
