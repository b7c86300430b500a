//! The statements and examples of `docs/schema.md` are true.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_schema::counter::COUNTERS;
use mete_schema::kernel::Running;
use mete_schema::known::KNOWN;
use mete_schema::target::KINDS;
use mete_schema::types::WORDS;
use mete_schema::{Schema, Source, check, format::format, parse};

const PAGE: &str = include_str!("../../../docs/schema.md");

/// The schemata on the page.
fn examples() -> Vec<Source> {
    let blocks = PAGE.split("```mete\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.enumerate().map(|(nth, text)| Source::new(format!("example {nth}"), text)).collect()
}

#[test]
fn examples_on_the_page_are_right() {
    assert!(examples().len() >= 7);
    for example in examples() {
        let sources = [example];
        let schema =
            Schema::read(&sources).unwrap_or_else(|problems| panic!("{}", problems.render(&sources, false)));
        check(&schema, None).unwrap_or_else(|problems| panic!("{}", problems.render(&sources, false)));
        let mut problems = Vec::new();
        parse(0, &format(&parse(0, &sources[0].text, &mut problems)), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn examples_on_the_page_fit_the_kernel_that_runs_here() {
    let kernel = match Running::new() {
        Ok(kernel) => kernel,
        Err(error) => {
            println!("SKIPPED: examples_on_the_page_fit_the_kernel_that_runs_here: {error}");
            return;
        }
    };
    for example in examples() {
        let sources = [example];
        let schema = Schema::read(&sources).unwrap();
        check(&schema, Some(&kernel))
            .unwrap_or_else(|problems| panic!("{}", problems.render(&sources, false)));
    }
}

#[test]
fn the_page_names_every_type_counter_point_and_known_value() {
    let types = WORDS.iter().map(|(word, _)| *word);
    let counters = COUNTERS.iter().map(|counter| counter.name);
    let known = KNOWN.iter().map(|(name, _)| *name);
    for word in types.chain(counters).chain(known) {
        assert!(PAGE.contains(&format!("`{word}`")), "{word}");
    }
    for kind in KINDS {
        assert!(PAGE.contains(&format!("`{}:", kind.word)), "{}", kind.word);
    }
}
