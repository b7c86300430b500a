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

fn text(study: &StudyEntry, name: &str) -> Option<String> {
    fs::read_to_string(folder(study).join(name)).ok()
}

#[test]
fn klog_9_each_page_is_made_of_the_results_beside_it() {
    for study in studies() {
        let results =
            text(study, "results.json").unwrap_or_else(|| panic!("{} keeps no results", study.name));
        let page = study.page_of(&results).unwrap_or_else(|reason| panic!("{}: {reason}", study.name));
        assert!(text(study, "README.md") == Some(page), "{}: run the example `redraw`", study.name);
    }
}

#[test]
fn klog_9_pictures_that_can_be_drawn_again_are_the_same() {
    for study in studies() {
        for (name, picture) in study.redraw(&|name| text(study, name)) {
            assert!(text(study, &name) == Some(picture), "{}: {name}", study.name);
        }
    }
}

#[test]
fn klog_9_no_page_has_a_value_that_is_no_number() {
    for study in studies() {
        let page = text(study, "README.md").unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf "), "{}", study.name);
    }
}
