//! The pages in `studies/` are what their templates make of the results beside them, and the pictures what is
//! drawn of the data: neither was changed by hand.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::fs;
use std::path::{Path, PathBuf};

use mete_study::studies;
use mete_study::study::StudyEntry;

fn folder(study: &StudyEntry) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(study.name)
}

/// The study's folder, and those in it that keep what the same study found on other machines.
fn folders(study: &StudyEntry) -> Vec<PathBuf> {
    let folder = folder(study);
    let within = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let others: Vec<_> = within.filter(|path| path.join("results.json").exists()).collect();
    std::iter::once(folder).chain(others).collect()
}

fn text(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(name)).ok()
}

fn all() -> impl Iterator<Item = (&'static StudyEntry, PathBuf)> {
    studies().flat_map(|study| folders(study).into_iter().map(move |folder| (study, folder)))
}

#[test]
fn klog_9_each_page_is_made_of_the_results_beside_it() {
    for (study, folder) in all() {
        let results =
            text(&folder, "results.json").unwrap_or_else(|| panic!("{} keeps no results", study.name));
        let page = study.page_of(&results).unwrap_or_else(|reason| panic!("{}: {reason}", study.name));
        assert!(text(&folder, "README.md") == Some(page), "{folder:?}: run the example `redraw`");
    }
}

#[test]
fn klog_9_pictures_that_can_be_drawn_again_are_the_same() {
    for (study, folder) in all() {
        for (name, picture) in study.redraw(&|name| text(&folder, name)) {
            assert!(text(&folder, &name) == Some(picture), "{folder:?}: {name}");
        }
    }
}

#[test]
fn klog_9_no_page_has_a_value_that_is_no_number() {
    for (_, folder) in all() {
        let page = text(&folder, "README.md").unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf "), "{folder:?}");
    }
}
