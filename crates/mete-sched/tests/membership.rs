//! Which process belongs to which domain, with real processes and control groups (LOG-6).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::fs;

use common::{Group, Running, SUBJECT, children};
use mete_sched::domains::{Domains, FIRST, OTHER};

fn domains(texts: &[String]) -> Domains {
    Domains::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

/// The user to whom the files of this process belong.
fn user() -> u32 {
    mete_sched::domains::process::user(std::process::id()).unwrap()
}

#[test]
fn log_6_processes_are_selected_by_number_name_program_user_and_parent() {
    let mut one = Running::waiting();
    one.tell("more");
    one.hear();
    let child = children(one.pid())[0].pid;
    // The kernel cuts the subject's name to 15 bytes. The child runs /proc/self/exe, and so its name is exe.
    for (selector, selects_one, selects_child) in [
        (format!("pid:{}", one.pid()), true, true),
        (format!("pid:{child}"), false, true),
        ("comm:mete-sched-subject".into(), true, true),
        (format!("exe:{SUBJECT}"), true, true),
        (format!("user:{}", user()), true, true),
        (format!("children:{}", one.pid()), false, true),
        ("comm:mete-sched-driver-not".into(), false, false),
        ("user:4294967294".into(), false, false),
    ] {
        let mut domains = domains(&[format!("d={selector}")]);
        domains.scan();
        let expected = |is_selected: bool| if is_selected { FIRST } else { OTHER };
        assert_eq!(domains.domain_of(one.pid()), expected(selects_one), "{selector}");
        assert_eq!(domains.domain_of(child), expected(selects_child), "{selector}");
    }
}

#[test]
fn log_6_of_two_domains_that_select_a_process_the_first_one_gets_it() {
    let one = Running::waiting();
    let (number, name) = (format!("number=pid:{}", one.pid()), "name=comm:mete-sched-subject".to_owned());
    for texts in [[number.clone(), name.clone()], [name, number]] {
        let mut domains = domains(&texts);
        domains.scan();
        assert_eq!(domains.domain_of(one.pid()), FIRST);
    }
}

#[test]
fn log_6_tasks_of_a_control_group_belong_to_its_domain_while_they_are_in_it() {
    let Some(group) = Group::make("in-and-out") else { return };
    let (inside, chosen) = (Running::waiting(), Running::waiting());
    let mut domains =
        domains(&[format!("chosen=pid:{}", chosen.pid()), format!("group=cgroup:{}", group.0.display())]);
    domains.scan();
    let empty = domains.check_matches().unwrap();
    assert!(empty.len() == 1 && empty[0].name == "group", "the group is empty: {empty:?}");
    group.take(inside.pid());
    group.take(chosen.pid());
    let changes = domains.scan().to_vec();
    let entered = changes.iter().find(|change| change.pid == inside.pid()).unwrap();
    assert!(entered.is_by_cgroup && entered.to.index() == FIRST.index() + 1);
    assert_eq!(domains.domain_of(chosen.pid()), FIRST, "its own selector takes precedence");
    fs::write(group.0.parent().unwrap().join("cgroup.procs"), inside.pid().to_string()).unwrap();
    let changes = domains.scan().to_vec();
    let left = changes.iter().find(|change| change.pid == inside.pid()).unwrap();
    assert!(left.is_by_cgroup && left.is_alive && left.to == OTHER);
}
