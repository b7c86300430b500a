//! README.md and the recipes show simulated runs as the commands print them.

use crate::common;
use std::fs;
use std::path::Path;

/// README.md and every page in `docs/recipes`.
fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let recipes = fs::read_dir(root.join("docs/recipes")).unwrap().map(|entry| entry.unwrap().path());
    recipes.chain([root.join("README.md")]).map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The commands on a page that simulate, each with the lines of its output that the page shows.
fn shown(page: &str) -> Vec<(String, Vec<String>)> {
    let blocks = page.split("```").skip(1).step_by(2);
    let sessions =
        blocks.flat_map(|block| block.split("\n$ ").skip(1).map(str::to_owned).collect::<Vec<_>>());
    let simulated = sessions.filter(|session| session.starts_with("mete sim "));
    simulated
        .map(|session| {
            let (command, output) = session.split_once('\n').unwrap();
            let lines = output.lines().filter(|line| !line.is_empty() && *line != "…");
            (command.split('#').next().unwrap().to_owned(), lines.map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn the_readme_and_the_recipes_show_simulated_runs_as_they_are() {
    let shown: Vec<_> = pages().iter().flat_map(|page| shown(page)).collect();
    assert!(shown.len() >= 2, "the recipes show simulated runs");
    for (command, lines) in shown {
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let output = common::mete(&arguments).env_remove("COLUMNS").output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut rest = printed.lines();
        for line in lines {
            assert!(
                rest.any(|found| found.trim_end() == line),
                "`{command}` does not print, there: {line}\n{printed}"
            );
        }
    }
}
