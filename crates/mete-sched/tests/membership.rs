//! Who belongs to which domain, on real processes and control groups (LOG-6).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Running, SUBJECT, children, eventually, skip};
use mete_sched::domains::{Domains, FIRST, OTHER};

fn domains(texts: &[String]) -> Domains {
    Domains::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

/// The user that files of this process belong to.
fn user() -> u32 {
    mete_sched::domains::process::user(std::process::id()).unwrap()
}

#[test]
fn log_6_processes_are_selected_by_number_name_program_user_and_parent() {
    let mut one = Running::waiting();
    one.tell("more");
    one.hear();
    let child = children(one.pid())[0].pid;
    // Its name is cut to 15 bytes by the kernel; the child runs /proc/self/exe and so is called exe.
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

/// A control group that goes with the test.
struct Group(PathBuf);

impl Group {
    /// One of its own in some hierarchy, or a word about why not.
    fn make(name: &str) -> Option<Group> {
        let name = format!("mete-sched-{name}-{}", std::process::id());
        let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
        let made = mounts.into_iter().map(|mount| PathBuf::from(mount).join(&name)).find(|path| {
            let is_group = path.parent().is_some_and(|mount| mount.join("cgroup.procs").exists());
            is_group && fs::create_dir(path).is_ok()
        });
        if made.is_none() {
            skip("no control group can be made here; run as root");
        }
        made.map(Group)
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let root = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(&root, pid);
        }
        eventually("the group is empty", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
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
    assert!(entered.is_by_cgroup && entered.to == FIRST + 1);
    assert_eq!(domains.domain_of(chosen.pid()), FIRST, "its own selector goes first");
    fs::write(group.0.parent().unwrap().join("cgroup.procs"), inside.pid().to_string()).unwrap();
    let changes = domains.scan().to_vec();
    let left = changes.iter().find(|change| change.pid == inside.pid()).unwrap();
    assert!(left.is_by_cgroup && left.is_alive && left.to == OTHER);
}
