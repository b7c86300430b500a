//! Migrations and processor share of a player beside a growing number of hogs (KLogger paper, §9.2, figure 6).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::player::{self, Player};
use super::{migrations_page, page, pause};
use crate::study::{StudyOptions, StudyResults};
use crate::trace::{Runs, Usage};
use mete_base::progress::Progress;
use mete_bench::child::check_installed;
use mete_bench::load::Load;
use mete_bench::recording::{Recorded, Session};
use mete_bench::scratch::Scratch;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_trace::{NamedItem, ProcessNames};

const EVENTS: [&str; 3] = ["SCHEDIN", "SCHEDOUT", "FORK"];
/// The numbers of hogs beside the player. The paper's largest one is ten.
const HOGS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 10];
/// How long each number is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_millis(2_400), Duration::from_millis(600)];
/// The number of processes that are shown of a recorded trace: those that used the processors most.
const SHOWN: usize = 12;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Who {
    /// The process that decodes.
    Player,
    /// The process that shows decoded frames. In the paper it is the X server.
    Display,
    /// A process that only computes.
    Hog,
}

/// The result with one number of hogs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlayerResult {
    pub hogs: usize,
    /// Percent of all processors' time, by role.
    pub share: BTreeMap<Who, f64>,
    /// Percent of all processors' time that all other processes of the machine used.
    pub others: f64,
    /// Migrations a second of player and display together.
    pub migrations: f64,
    /// Percent of all frames that were lost; `None` if the player does not report it.
    pub frames_lost: Option<f64>,
    /// Events that the trace has lost.
    pub lost: u64,
}

/// One player over the numbers of hogs.
pub(super) struct Curve {
    pub player: &'static str,
    pub points: Vec<PlayerResult>,
}

type Measure = fn(usize, Duration, &dyn Progress) -> Result<PlayerResult, Reason>;

/// The players: one of our own, and a real one.
const PLAYERS: [(&str, Measure); 2] = [("decoder", decoder), ("ffmpeg", ffmpeg)];

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study migrations");
    let mut curves = Vec::new();
    for (player, measure) in PLAYERS {
        let mut points = Vec::new();
        progress.begin(player, HOGS.len() as u64);
        for hogs in HOGS {
            if progress.is_cancelled() {
                break;
            }
            let point = measure(hogs, WATCHED[usize::from(options.is_quick)], progress);
            report.rows.extend(rows(player, hogs, &point));
            let is_missing = point.is_err();
            points.extend(point);
            if is_missing {
                break;
            }
            progress.step();
        }
        curves.push(Curve { player, points });
    }
    report.is_complete = !progress.is_cancelled();
    migrations_page::study(report, &curves)
}

/// A player of our own, which knows how many frames it has lost.
fn decoder(hogs: usize, time: Duration, progress: &dyn Progress) -> Result<PlayerResult, Reason> {
    let player = Player::start(hogs)?;
    let session = Session::begin("scheduler", &EVENTS)?;
    player.crew.go();
    pause(time, progress);
    player.crew.stop();
    let recorded = session.end()?;
    let pids = player.crew.pids().into_iter().enumerate().map(|(nth, pid)| match nth {
        0 => (pid, Who::Player),
        1 => (pid, Who::Display),
        _ => (pid, Who::Hog),
    });
    let frames_lost = player.frames().lost_percent();
    Ok(PlayerResult { frames_lost, ..point(hogs, &recorded, pids.collect()) })
}

/// ffmpeg, which decodes a clip at the rate of its frames, and hogs in the same session.
fn ffmpeg(hogs: usize, time: Duration, progress: &dyn Progress) -> Result<PlayerResult, Reason> {
    check_installed("ffmpeg")?;
    let scratch = Scratch::new()?;
    let clip =
        "-nostdin -loglevel error -f lavfi -i testsrc2=size=1280x720:rate=25 -t 4 -c:v mpeg2video clip.mpg";
    let made = Command::new("ffmpeg").args(clip.split(' ')).current_dir(scratch.path()).status()?;
    if !made.success() {
        return Err(Reason::new("ffmpeg cannot make an MPEG2 clip here"));
    }
    // The hogs end by themselves, in case this process is gone by then.
    let start = format!(
        "n=0; while [ $n -lt {hogs} ]; do
             (ulimit -t 20; exec awk 'BEGIN {{ while (1) i++ }}') & n=$((n + 1))
         done
         exec ffmpeg -nostdin -loglevel error -re -i clip.mpg -f null -"
    );
    let session = Session::begin("scheduler", &EVENTS)?;
    let mut load = Load::start(&["sh", "-c", &start], scratch.path())?;
    load.wait(time, progress);
    let recorded = session.end()?;
    let pids = threads_and_children(&recorded, load.pid());
    Ok(point(hogs, &recorded, pids))
}

/// The roles of a process's threads, which play, and of the processes that it has started, which compute.
fn threads_and_children(recorded: &Recorded, pid: i32) -> HashMap<i32, Who> {
    let mut pids = HashMap::from([(pid, Who::Player)]);
    recorded.each(|next| {
        let NamedItem::Event(seen) = next else { return };
        if seen.name() == "FORK" && pids.contains_key(&seen.pid("parent")) {
            // A thread has the id of its process as `child_tgid`.
            let who = if seen.pid("child_tgid") == pid { Who::Player } else { Who::Hog };
            pids.insert(seen.pid("child"), who);
        }
    });
    pids
}

fn point(hogs: usize, recorded: &Recorded, pids: HashMap<i32, Who>) -> PlayerResult {
    let usage = Usage::of(recorded, Runs::of_own_recording());
    // A trace without events has no duration, and nothing to divide.
    let seconds = (recorded.duration_ns().max(1)) as f64 / 1e9;
    let mut share = BTreeMap::from([(Who::Player, 0.0), (Who::Hog, 0.0)]);
    let mut migrations = 0;
    for (pid, who) in &pids {
        let of = usage.of_process(*pid);
        *share.entry(*who).or_default() += usage.percent(of.ns);
        // The figure has the migrations of player and display only.
        migrations += if *who == Who::Hog { 0 } else { of.migrations };
    }
    let migrations = f64::from(migrations) / seconds;
    let others = usage.others_percent(|pid| pids.contains_key(&pid));
    PlayerResult { hogs, share, others, migrations, frames_lost: None, lost: recorded.lost() }
}

/// The study of a recorded trace: share and migrations of the processes that used the processors most.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("scheduler", &EVENTS)?;
    let mut names = ProcessNames::of_trace(&recorded);
    recorded.each(|next| names.take(&next));
    let usage = Usage::of(&recorded, Runs::default());
    let mut most: Vec<_> = usage.processes().collect();
    most.sort_by_key(|(pid, used)| (std::cmp::Reverse(used.ns), *pid));
    most.truncate(SHOWN);
    let mut report = Report::new(format!("mete study migrations --trace {}", directory.display()));
    for (pid, used) in most {
        let name = format!("{} ({pid})", names.of(pid));
        let percent = Ok(vec![usage.percent(used.ns)]);
        let row = Row::new(format!("{name}: processor share"), "percent", percent);
        report.rows.push(row.note("of all processors").note(page::loss(recorded.lost())));
        report.rows.push(Row::new(format!("{name}: migrations"), "", Ok(vec![used.migrations.into()])));
    }
    Ok(migrations_page::of_trace(report))
}

fn rows(player: &str, hogs: usize, point: &Result<PlayerResult, Reason>) -> Vec<Row> {
    let point = match point {
        Ok(point) => point,
        Err(reason) => return vec![Row::new(format!("{player}: all rows"), "percent", Err(reason.clone()))],
    };
    let beside = if hogs == 1 { "hog" } else { "hogs" };
    let one = |what, unit, value: f64| {
        Row::new(format!("{player}, {hogs} {beside}: {what}"), unit, Ok(vec![value]))
    };
    let shares = point.share.iter().map(|(who, share)| match who {
        Who::Player => one("player's share", "percent", *share),
        Who::Display => one("display's share", "percent", *share),
        Who::Hog => one("hogs' share", "percent", *share),
    });
    let others = one("others' share", "percent", point.others);
    let migrations = one("migrations of the player", "1/s", point.migrations).note(page::loss(point.lost));
    let frames = point.frames_lost.map(|lost| one("frames lost", "percent", lost));
    shares.chain([others, migrations]).chain(frames).collect()
}

impl player::Frames {
    fn lost_percent(&self) -> Option<f64> {
        (self.due > 0).then(|| 100.0 * (1.0 - self.shown.min(self.due) as f64 / self.due as f64))
    }
}

impl Player {
    /// The number of frames that should have been shown so far, and of those that were.
    fn frames(&self) -> player::Frames {
        let read = |word: usize| self.crew.words(1)[word].load(Ordering::Acquire);
        player::Frames { due: read(player::DUE), shown: read(player::SHOWN) }
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
        let expected = [(7, Who::Player), (9, Who::Hog), (20, Who::Player)];
        assert_eq!(pids, HashMap::from(expected));
    }

    #[test]
    fn klog_9_frames_are_lost_that_were_due_and_not_shown() {
        assert_eq!(player::Frames { due: 50, shown: 40 }.lost_percent().map(f64::round), Some(20.0));
        assert_eq!(player::Frames { due: 0, shown: 0 }.lost_percent(), None);
    }
}
