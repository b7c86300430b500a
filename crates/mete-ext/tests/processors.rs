//! Shares of all processors together, however many there are: `make test` runs this with two and with eight.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::thread::available_parallelism;

use common::{Group, assert_shares, ruling};

#[test]
fn vtrr_7_two_groups_share_all_processors_whatever_the_number_of_their_tasks() {
    let test = "vtrr_7_two_groups_share_all_processors_whatever_the_number_of_their_tasks";
    let Some(scheduler) = ruling(test) else { return };
    let processors = available_parallelism().unwrap().get() as u32;
    let few = Group::top("mete-few", 200).hogs(processors, None);
    let many = Group::top("mete-many", 100).hogs(4 * processors, None);
    assert_shares(&[&few, &many], &[667, 333], 5, || scheduler.status());
    assert_eq!(scheduler.status().ended, None);
}
