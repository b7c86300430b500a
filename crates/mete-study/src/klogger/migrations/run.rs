//! One player beside one number of hogs.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use mete_base::progress::Progress;
use mete_bench::load::Load;
use mete_bench::recording::{Recorded, ScratchRecording};
use mete_bench::scratch::Scratch;
use mete_measure::Reason;
use mete_trace::NamedItem;
use serde::Serialize;

use super::player::Player;
use crate::klogger::pause;
use crate::klogger::workloads::make_clip;
use crate::trace::{Runs, Usage};

/// The events that are recorded.
pub(super) const EVENTS: [&str; 3] = ["SCHEDIN", "SCHEDOUT", "FORK"];

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// The process that decodes.
    Player,
    /// The process that shows decoded frames. In the paper it is the X server.
    Display,
    /// A process that only computes.
    Hog,
}

/// The result with one number of hogs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct PlayerResult {
    pub hogs: usize,
    /// Percent of all processors' time, by role.
    pub share: BTreeMap<Role, f64>,
    /// Percent of all processors' time that all other processes of the machine used.
    pub others_percent: f64,
    /// Migrations a second of player and display together.
    pub migrations_a_second: f64,
    /// Percent of all frames that were lost; `None` if the player does not report it.
    pub frames_lost: Option<f64>,
    /// Events that the trace has lost.
    pub lost: u64,
}

impl PlayerResult {
    /// Percent of all processors' time; `None` if no process has this role.
    pub(super) fn share_of(&self, role: Role) -> Option<f64> {
        self.share.get(&role).copied()
    }
}

/// Measures a player beside this number of hogs for this time.
pub(super) type Measure = fn(usize, Duration, &dyn Progress) -> Result<PlayerResult, Reason>;

/// The players: one of our own, and a real one.
pub(super) const PLAYERS: [(&str, Measure); 2] = [("decoder", decoder), ("ffmpeg", ffmpeg)];

/// A player of our own, which knows how many frames it has lost.
fn decoder(hogs: usize, time: Duration, progress: &dyn Progress) -> Result<PlayerResult, Reason> {
    let player = Player::start(hogs)?;
    let session = ScratchRecording::begin("scheduler", &EVENTS)?;
    player.crew.go();
    pause(time, progress);
    player.crew.stop();
    let recorded = session.end()?;
    let pids = player.crew.pids().into_iter().enumerate().map(|(nth, pid)| match nth {
        0 => (pid, Role::Player),
        1 => (pid, Role::Display),
        _ => (pid, Role::Hog),
    });
    let frames_lost = player.frames().lost_percent();
    Ok(PlayerResult { frames_lost, ..point(hogs, &recorded, pids.collect()) })
}

/// ffmpeg, which decodes a clip at the rate of its frames, and hogs in the same session.
fn ffmpeg(hogs: usize, time: Duration, progress: &dyn Progress) -> Result<PlayerResult, Reason> {
    let scratch = Scratch::new()?;
    make_clip(scratch.path(), "1280x720", 4)?;
    // The hogs end by themselves, in case this process is gone by then.
    let start = format!(
        "n=0; while [ $n -lt {hogs} ]; do
             (ulimit -t 20; exec awk 'BEGIN {{ while (1) i++ }}') & n=$((n + 1))
         done
         exec ffmpeg -nostdin -loglevel error -re -i clip.mpg -f null -"
    );
    // Recorded from before the start on, because the roles of processes follow from their forks.
    let session = ScratchRecording::begin("scheduler", &EVENTS)?;
    let mut load = Load::start(&["sh", "-c", &start], scratch.path())?;
    load.wait(time, progress);
    let recorded = session.end()?;
    let pids = threads_and_children(&recorded, load.pid());
    Ok(point(hogs, &recorded, pids))
}

/// The roles of a process's threads, which play, and of the processes that it has started, which compute.
fn threads_and_children(recorded: &Recorded, pid: i32) -> HashMap<i32, Role> {
    let mut pids = HashMap::from([(pid, Role::Player)]);
    recorded.each(|next| {
        let NamedItem::Event(seen) = next else { return };
        if seen.name() == "FORK" && pids.contains_key(&seen.pid("parent")) {
            // A thread has the id of its process as `child_tgid`.
            let role = if seen.pid("child_tgid") == pid { Role::Player } else { Role::Hog };
            pids.insert(seen.pid("child"), role);
        }
    });
    pids
}

fn point(hogs: usize, recorded: &Recorded, pids: HashMap<i32, Role>) -> PlayerResult {
    let usage = Usage::of(recorded, Runs::of_own_recording());
    // A trace without events has no duration, and nothing to divide.
    let seconds = (recorded.duration_ns().max(1)) as f64 / 1e9;
    let mut share = BTreeMap::from([(Role::Player, 0.0), (Role::Hog, 0.0)]);
    let mut migrations = 0;
    for (pid, role) in &pids {
        let of = usage.of_process(*pid);
        *share.entry(*role).or_default() += usage.percent(of.ns);
        // The figure has the migrations of player and display only.
        migrations += if *role == Role::Hog { 0 } else { of.migrations };
    }
    PlayerResult {
        hogs,
        share,
        others_percent: usage.others_percent(|pid| pids.contains_key(&pid)),
        migrations_a_second: f64::from(migrations) / seconds,
        frames_lost: None,
        lost: recorded.lost(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    /// Process 7 starts 9; 20 is a thread of 7.
    fn written() -> Recorded {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 2_000, "FORK", &[("parent", 7), ("child", 9), ("child_tgid", 9)]);
        written.event(0, 2_000, "FORK", &[("parent", 7), ("child", 20), ("child_tgid", 7)]);
        written.read()
    }

    #[test]
    fn klog_9_threads_of_the_player_play_and_its_children_are_hogs() {
        let pids = threads_and_children(&written(), 7);
        let expected = [(7, Role::Player), (9, Role::Hog), (20, Role::Player)];
        assert_eq!(pids, HashMap::from(expected));
    }
}
