//! The shipped schemata, by themselves and against the kernel that runs here.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_schema::kernel::{KernelTypes, Running};
use mete_schema::shipped::{SHIPPED, Shipped, by_name};
use mete_schema::{Schema, check, format, parse};

fn read(shipped: Shipped) -> Schema {
    let sources = [shipped.source()];
    Schema::read(&sources).unwrap_or_else(|problems| panic!("{}", problems.render(&sources, false)))
}

#[test]
fn klog_8_shipped_schemata_are_right_and_in_canonical_form() {
    for shipped in SHIPPED {
        read(shipped);
        let file = parse(0, shipped.text, &mut Vec::new());
        assert_eq!(format::format(&file), shipped.text, "{}", shipped.name);
    }
}

#[test]
fn klog_8_shipped_schemata_say_what_each_event_and_field_means() {
    for shipped in SHIPPED {
        for event in read(shipped).events {
            assert!(!event.docs.is_empty(), "{} of {}", event.name, shipped.name);
            for field in &event.fields {
                assert!(!field.docs.is_empty(), "{}.{} of {}", event.name, field.name, shipped.name);
            }
        }
    }
}

#[test]
fn klog_8_shipped_schemata_have_the_papers_events_or_what_stands_for_them_today() {
    let names =
        |name| read(by_name(name).unwrap()).events.into_iter().map(|event| event.name).collect::<Vec<_>>();
    assert_eq!(names("stopwatch"), ["START", "STOP"]);
    // The paper's two events that name a lock are not needed: symbols give the names today. Added are the end of a
    // wait, and locks of programs.
    assert_eq!(names("locking"), ["SPIN", "READ", "WRITE", "ACQUIRED", "FUTEX", "FUTEX_DONE"]);
    let scheduler =
        ["TRY_TO_WAKEUP", "ADD_TO_RUNQ", "REMOVE_FROM_RUNQ", "SCHEDOUT", "SCHEDIN", "FORK", "EXEC", "EXIT"];
    assert_eq!(names("scheduler"), scheduler);
}

#[test]
fn klog_8_shipped_schemata_fit_the_kernel_that_runs_here() {
    let kernel = match Running::new() {
        Ok(kernel) => kernel,
        Err(error) => {
            println!("SKIPPED: klog_8_shipped_schemata_fit_the_kernel_that_runs_here: {error}");
            return;
        }
    };
    for shipped in SHIPPED {
        let schema = read(shipped);
        let checked = check(&schema, Some(&kernel as &dyn KernelTypes));
        let checked =
            checked.unwrap_or_else(|problems| panic!("{}", problems.render(&[shipped.source()], false)));
        let unchecked = &checked.unchecked;
        assert_eq!(checked.points.len(), schema.points.len());
        for (point, checked) in schema.points.iter().zip(&checked.points) {
            let is_unchecked = checked.arguments.is_none();
            let target = point.target.to_string();
            let is_told = unchecked.iter().any(|sentence| sentence.starts_with(&target));
            assert_eq!(
                is_unchecked, is_told,
                "{}: a point is checked, or a message says that it is not",
                point.target
            );
        }
    }
}
