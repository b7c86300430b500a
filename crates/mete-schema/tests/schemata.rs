//! The pages that explain the shipped schemata, `docs/schemata/*.md` (KLOG-8).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::fs;
use std::path::Path;

use mete_schema::shipped::SHIPPED;
use mete_schema::{Schema, Source, check};

fn page(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemata");
    fs::read_to_string(root.join(format!("{name}.md"))).unwrap()
}

#[test]
fn klog_8_each_shipped_schema_has_a_page_that_explains_its_events_and_points() {
    for shipped in SHIPPED {
        let page = page(shipped.name);
        let schema = Schema::read(&[shipped.source()]).unwrap();
        for event in &schema.events {
            assert!(page.contains(&format!("`{}`", event.name)), "{} of {}", event.name, shipped.name);
        }
        for point in &schema.points {
            let name = point.target.words().1.pop().unwrap();
            let family = name.trim_end_matches("_entry").trim_end_matches("_exit");
            let is_there = page.contains(&format!("`{name}`")) || page.contains(&format!("`{family}_*`"));
            assert!(is_there, "{name} of {}", shipped.name);
        }
    }
}

#[test]
fn klog_8_files_on_the_pages_are_right_beside_their_schemata() {
    let mut count = 0;
    for shipped in SHIPPED {
        let page = page(shipped.name);
        for text in page.split("```mete\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            let sources = [shipped.source(), Source::new(shipped.name, text)];
            let checked = Schema::read(&sources).and_then(|schema| check(&schema, None));
            checked.unwrap_or_else(|problems| panic!("{}", problems.render(&sources, false)));
            count += 1;
        }
    }
    assert_eq!(count, 3);
}
