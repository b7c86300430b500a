//! Migrations and processor share of a player beside a growing number of hogs (KLogger paper, §9.2, figure 6).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::player::{self, Player};
use super::{migrations_page, page, pause};
use crate::child::check_installed;
use crate::load::Load;
use crate::progress::Progress;
use crate::reason::Reason;
use crate::report::{Report, Row};
use crate::scratch::Scratch;
use crate::study::{Study, StudyOptions};
use crate::trace::{Names, Next, Recorded, Run, Runs, Session};

const EVENTS: [&str; 3] = ["SCHEDIN", "SCHEDOUT", "FORK"];
/// Hogs beside the player; the paper's largest number is ten.
const HOGS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 10];
/// How long each number is watched, and in a quick run.
const WATCHED: [Duration; 2] = [Duration::from_millis(2_400), Duration::from_millis(600)];
/// Of somebody's trace, the processes that used the processors most.
const SHOWN: usize = 12;

/// Who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Who {
    /// Who plays: decodes.
    Player,
    /// Who shows what is decoded; in the paper, the X server.
    Display,
    /// Who computes.
    Hog,
}

/// One number of hogs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub hogs: usize,
    /// Percent of all processors' time.
    pub share: BTreeMap<Who, f64>,
    /// Of player and display together, in a second.
    pub migrations: f64,
    /// Percent of all frames; `None` where the player does not say.
    pub frames_lost: Option<f64>,
    /// Events that the trace has lost.
    pub lost: u64,
}

/// One player over the numbers of hogs.
pub(super) struct Curve {
    pub player: &'static str,
    pub points: Vec<Point>,
}

type Measure = fn(usize, Duration, &dyn Progress) -> Result<Point, Reason>;

/// The players: our own, and a real one.
const PLAYERS: [(&str, Measure); 2] = [("decoder", decoder), ("ffmpeg", ffmpeg)];

pub(in crate::study) fn study(options: StudyOptions, progress: &mut dyn Progress) -> Study {
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
fn decoder(hogs: usize, time: Duration, progress: &dyn Progress) -> Result<Point, Reason> {
    let player = Player::start(hogs)?;
    let session = Session::begin("scheduler", &EVENTS)?;
    player.crew.go();
    pause(time, progress);
    player.crew.stop();
    let recorded = session.end()?;
    let who = |nth| match nth {
        0 => Who::Player,
        1 => Who::Display,
        _ => Who::Hog,
    };
    let pids = player.crew.pids().into_iter().enumerate().map(|(nth, pid)| (pid, who(nth)));
    let frames = player.frames();
    let of = |pids| Point { frames_lost: frames.lost_percent(), ..point(hogs, &recorded, pids) };
    Ok(of(pids.collect()))
}

/// ffmpeg, which decodes a clip at the rate of its frames, and hogs in the same session.
fn ffmpeg(hogs: usize, time: Duration, progress: &dyn Progress) -> Result<Point, Reason> {
    check_installed("ffmpeg")?;
    let scratch = Scratch::new()?;
    let clip =
        "-nostdin -loglevel error -f lavfi -i testsrc2=size=1280x720:rate=25 -t 4 -c:v mpeg2video clip.mpg";
    let made = Command::new("ffmpeg").args(clip.split(' ')).current_dir(scratch.path()).status()?;
    if !made.success() {
        return Err(Reason::new("ffmpeg cannot make an MPEG2 clip here"));
    }
    let start = format!(
        "n=0; while [ $n -lt {hogs} ]; do awk 'BEGIN {{ while (1) i++ }}' & n=$((n + 1)); done
         exec ffmpeg -nostdin -loglevel error -re -i clip.mpg -f null -"
    );
    let session = Session::begin("scheduler", &EVENTS)?;
    let mut load = Load::start(&["sh", "-c", &start], scratch.path())?;
    load.wait(time, progress);
    let recorded = session.end()?;
    let pids = threads_and_children(&recorded, load.pid());
    Ok(point(hogs, &recorded, pids))
}

/// A process's threads play; the processes that it has started compute.
fn threads_and_children(recorded: &Recorded, pid: i32) -> HashMap<i32, Who> {
    let mut pids = HashMap::from([(pid, Who::Player)]);
    recorded.each(|next| {
        let Next::Event(seen) = next else { return };
        if seen.name() == "FORK" && pids.contains_key(&seen.pid("parent")) {
            let who = if seen.pid("child_tgid") == pid { Who::Player } else { Who::Hog };
            pids.insert(seen.pid("child"), who);
        }
    });
    pids
}

fn point(hogs: usize, recorded: &Recorded, pids: HashMap<i32, Who>) -> Point {
    let usage = Usage::of(recorded, Runs::of_own_recording());
    let all_ns = (recorded.duration_ns() * recorded.processors() as u64).max(1) as f64;
    let seconds = (recorded.duration_ns().max(1)) as f64 / 1e9;
    let mut share = BTreeMap::from([(Who::Player, 0.0), (Who::Hog, 0.0)]);
    let mut migrations = 0;
    for (pid, who) in &pids {
        let Some(of) = usage.0.get(pid) else { continue };
        *share.entry(*who).or_default() += 100.0 * of.ns as f64 / all_ns;
        migrations += if *who == Who::Hog { 0 } else { of.migrations };
    }
    let migrations = f64::from(migrations) / seconds;
    Point { hogs, share, migrations, frames_lost: None, lost: recorded.lost() }
}

/// What each process used.
#[derive(Debug, Default)]
struct Usage(HashMap<i32, Used>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    ns: u64,
    migrations: u32,
    last: Option<u32>,
}

impl Usage {
    fn of(recorded: &Recorded, mut runs: Runs) -> Usage {
        let mut usage = Usage::default();
        recorded.each(|next| {
            if let Some(run) = runs.next(&next).filter(|run| run.pid != 0) {
                usage.add(&run);
            }
        });
        usage
    }

    /// Runs of one process come in their order.
    fn add(&mut self, run: &Run) {
        let used = self.0.entry(run.pid).or_default();
        used.ns += run.ns();
        used.migrations += u32::from(used.last.is_some_and(|last| last != run.processor));
        used.last = Some(run.processor);
    }
}

/// What somebody has recorded: share and migrations of the processes that used the processors most.
pub(in crate::study) fn of_trace(directory: &Path) -> Result<Study, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("scheduler", &EVENTS)?;
    let mut names = Names::of_trace(&recorded);
    recorded.each(|next| names.next(&next));
    let mut usage: Vec<_> = Usage::of(&recorded, Runs::default()).0.into_iter().collect();
    usage.sort_by_key(|(pid, used)| (std::cmp::Reverse(used.ns), *pid));
    usage.truncate(SHOWN);
    let all_ns = (recorded.duration_ns() * recorded.processors() as u64).max(1) as f64;
    let mut report = Report::new(format!("mete study migrations --trace {}", directory.display()));
    for (pid, used) in usage {
        let name = format!("{} ({pid})", names.of(pid));
        let percent = Ok(vec![100.0 * used.ns as f64 / all_ns]);
        let row = Row::new(format!("{name}: processor share"), "percent", percent);
        report.rows.push(row.note("of all processors").note(page::loss(recorded.lost())));
        report.rows.push(Row::new(format!("{name}: migrations"), "", Ok(vec![used.migrations.into()])));
    }
    Ok(migrations_page::of_trace(report))
}

fn rows(player: &str, hogs: usize, point: &Result<Point, Reason>) -> Vec<Row> {
    let point = match point {
        Ok(point) => point,
        Err(reason) => return vec![Row::new(format!("{player}: all rows"), "percent", Err(reason.clone()))],
    };
    let name = |what: &str| format!("{player}, {hogs} {}: {what}", if hogs == 1 { "hog" } else { "hogs" });
    let one = |what, unit, value: f64| Row::new(name(what), unit, Ok(vec![value]));
    let shares = point.share.iter().map(|(who, share)| match who {
        Who::Player => one("player's share", "percent", *share),
        Who::Display => one("display's share", "percent", *share),
        Who::Hog => one("hogs' share", "percent", *share),
    });
    let migrations = one("migrations of the player", "1/s", point.migrations).note(page::loss(point.lost));
    let frames = point.frames_lost.map(|lost| one("frames lost", "percent", lost));
    shares.chain([migrations]).chain(frames).collect()
}

impl player::Frames {
    fn lost_percent(&self) -> Option<f64> {
        (self.due > 0).then(|| 100.0 * (1.0 - self.shown.min(self.due) as f64 / self.due as f64))
    }
}

impl Player {
    /// The frames that should have been shown so far, and were.
    fn frames(&self) -> player::Frames {
        let read = |word: usize| self.crew.words(1)[word].load(Ordering::Acquire);
        player::Frames { due: read(player::DUE), shown: read(player::SHOWN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    /// Process 7 runs twice on processor 0 and once on 1, its child 9 on 1; 20 is a thread of 7.
    fn written() -> Recorded {
        let mut written = Written::new("scheduler", 2);
        let run = |written: &mut Written, processor, pid, from, to| {
            written.event(processor, from, "SCHEDIN", &[("pid", pid), ("tgid", pid)]);
            written.event(processor, to, "SCHEDOUT", &[("pid", pid), ("state", 1)]);
        };
        run(&mut written, 0, 7, 1_000, 2_000);
        written.event(0, 2_000, "FORK", &[("parent", 7), ("child", 9), ("child_tgid", 9)]);
        written.event(0, 2_000, "FORK", &[("parent", 7), ("child", 20), ("child_tgid", 7)]);
        run(&mut written, 0, 7, 2_500, 2_700);
        run(&mut written, 1, 9, 2_600, 4_000);
        run(&mut written, 1, 7, 4_000, 4_300);
        written.read()
    }

    #[test]
    fn klog_9_a_migration_is_a_run_on_another_processor_than_the_last() {
        let usage = Usage::of(&written(), Runs::default());
        assert_eq!(usage.0[&7], Used { ns: 1_500, migrations: 1, last: Some(1) });
        assert_eq!(usage.0[&9], Used { ns: 1_400, migrations: 0, last: Some(1) });
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
