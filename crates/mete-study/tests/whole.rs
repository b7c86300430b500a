//! The benchmark and the studies as a whole: they stop on request, and in every case nothing stays switched on. No
//! test checks a measured time.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mete_study::study::{Entry, Study, StudyOptions, by_name, log_cost, log_readers};
use mete_study::{Options, Progress, Reason, Report, bench};
use rustix::mount::{MountPropagationFlags, mount_change};

/// The benchmark takes this process as a component, pins threads and attaches programs. So tests run one at a time;
/// otherwise one test would see what another one holds.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels after this number of steps.
struct StopAfter(u64);

impl Progress for StopAfter {
    fn begin(&mut self, _what: &str, _steps: u64) {}
    fn step(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
    fn is_cancelled(&self) -> bool {
        self.0 == 0
    }
}

/// Everything that a measurement could leave behind in or around this process.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    affinity: String,
    children: String,
    descriptors: Vec<String>,
    scratch: Vec<String>,
    sockets: Vec<String>,
    tracing: Option<Vec<String>>,
    /// Mounts, if this process has a mount namespace of its own. Without one it may not mount.
    mounts: Option<String>,
}

/// Other programs on this machine publish themselves, are killed and mount as well. So this process gets sockets and
/// mounts of its own. That must happen before the component in it looks for its directory, and before there are
/// threads, so it is the first of its constructors.
#[used]
#[unsafe(link_section = ".init_array.00001")]
static FIRST: extern "C" fn() = have_own_surroundings;
static HAS_OWN_MOUNTS: AtomicBool = AtomicBool::new(false);

extern "C" fn have_own_surroundings() {
    // SAFETY: there are no other threads yet that could read the environment or share the table of mounts.
    unsafe {
        std::env::set_var("METE_RUNTIME_DIR", own_directory());
        let is_apart = libc::unshare(libc::CLONE_NEWNS) == 0
            && mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).is_ok();
        HAS_OWN_MOUNTS.store(is_apart, Ordering::Relaxed);
        libc::atexit(remove_own_directory);
    }
}

fn own_directory() -> PathBuf {
    std::env::temp_dir().join(format!("mete-whole-{}", std::process::id()))
}

extern "C" fn remove_own_directory() {
    let _ = fs::remove_dir_all(own_directory());
}

fn traces() -> Traces {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap();
    // Another process may run a study meanwhile.
    let mark = format!("mete-study-{}", std::process::id());
    let own = |path| names(path).into_iter().filter(|name| name.contains(&mark)).collect();
    Traces {
        affinity: line.to_owned(),
        children: fs::read_to_string("/proc/thread-self/children").unwrap_or_default(),
        descriptors: kernel_objects(),
        scratch: own("/tmp"),
        sockets: names(own_directory().to_str().unwrap()),
        tracing: fs::exists("/sys/kernel/tracing/instances")
            .unwrap_or(false)
            .then(|| own("/sys/kernel/tracing/instances")),
        mounts: HAS_OWN_MOUNTS
            .load(Ordering::Relaxed)
            .then(|| fs::read_to_string("/proc/self/mounts").unwrap()),
    }
}

/// The number of programs, links and perf events that this process holds.
fn kernel_objects() -> Vec<String> {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let targets = links.filter_map(|link| fs::read_link(link.path()).ok());
    let mut objects: Vec<_> = targets
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.contains("bpf") || target.contains("perf_event"))
        .collect();
    objects.sort();
    objects
}

fn names(path: &str) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn options(only: &str) -> Options {
    Options { only: Some(only.into()), is_quick: true, ..Options::default() }
}

#[test]
fn log_17_a_bench_that_is_stopped_at_any_step_leaves_nothing_switched_on() {
    let _alone = alone();
    let before = traces();
    for steps in [1, 3, 9, 12] {
        for group in mete_study::groups().filter(|group| *group != "polling") {
            let report = bench(&options(group), &mut StopAfter(steps));
            assert_eq!(traces(), before, "{group} after {steps} steps");
            drop(report);
        }
    }
}

#[test]
fn log_17_a_run_that_is_stopped_says_so() {
    let _alone = alone();
    assert!(!bench(&options("user"), &mut StopAfter(1)).is_complete);
    assert!(!log_readers(StudyOptions { is_quick: true }, &mut StopAfter(1)).report.is_complete);
}

#[test]
fn log_17_figures_of_a_study_that_is_stopped_are_not_said_to_be_beyond_this_machine() {
    let _alone = alone();
    for run in [log_cost, log_readers] {
        let study = run(StudyOptions { is_quick: true }, &mut StopAfter(1));
        assert!(!study.figures.is_empty());
        for figure in study.figures {
            assert_eq!(figure.verdict, mete_study::Verdict::NotMeasured);
            assert!(figure.ours.contains("stopped before"), "{figure:?}");
        }
    }
}

#[test]
fn log_17_user_rows_have_values_or_reasons() {
    let _alone = alone();
    let report = bench(&options("user"), &mut ());
    assert!(report.is_complete);
    all_are_said(&report);
    let own =
        report.rows.iter().filter(|row| row.name.starts_with("user: row") || row.name.contains("disabled"));
    for row in own.inspect(|row| println!("{}: {:?} {}", row.name, row.median, row.note)) {
        assert!(row.median.is_some(), "our own rows need nothing that may be missing: {row:?}");
    }
}

fn all_are_said(report: &Report) {
    assert!(!report.rows.is_empty());
    for row in &report.rows {
        assert!(row.median.is_some() || !row.note.is_empty(), "{row:?}");
        assert_eq!(row.verdict.is_some(), row.bar.is_some() && row.median.is_some(), "{row:?}");
    }
}

#[test]
fn log_10_the_reader_passes_once_and_every_row_is_accounted_for() {
    let _alone = alone();
    let report = bench(&options("reader"), &mut ());
    all_are_said(&report);
    let row = report.rows.iter().find(|row| row.name.contains("passes")).unwrap();
    match row.median {
        Some(_) => assert_eq!((row.max, row.holds), (Some(1.0), Some(true)), "{}", row.note),
        None => println!("SKIPPED: {}", row.note),
    }
}

#[test]
fn log_17_the_scheduler_that_the_caller_makes_is_the_one_that_is_measured() {
    let _alone = alone();
    let turns = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = turns.clone();
    let make = move || {
        let count = count.clone();
        let turn = move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok::<(), Reason>(())
        };
        Ok::<mete_study::Turn, Reason>(Box::new(turn))
    };
    let options = Options { scheduler: Some(Box::new(make)), ..options("polling") };
    let report = bench(&options, &mut StopAfter(2));
    assert_eq!(turns.load(std::sync::atomic::Ordering::Relaxed), 20, "two samples of ten turns");
    assert!(report.rows[0].median.is_some());
}

#[test]
fn log_17_a_study_writes_its_data_its_plots_and_its_page() {
    let _alone = alone();
    let before = traces();
    let study = log_readers(StudyOptions { is_quick: true }, &mut ());
    assert_eq!(traces(), before);
    all_are_said(&study.report);
    let directory = std::env::temp_dir().join(format!("mete-studies-{}", std::process::id()));
    study.write_to(&directory).unwrap();
    let written = names(directory.join("log-readers").to_str().unwrap());
    fs::remove_dir_all(&directory).unwrap();
    for name in ["README.md", "log-readers.csv", "distribution.csv", "figure-5.6-full-speed.svg"] {
        assert!(written.iter().any(|file| file == name), "{name} is missing in {written:?}");
    }
}

#[test]
fn log_17_the_cost_study_covers_the_thesis_table_and_leaves_nothing_switched_on() {
    let _alone = alone();
    let before = traces();
    let study = log_cost(StudyOptions { is_quick: true }, &mut StopAfter(30));
    assert_eq!(traces(), before);
    all_are_said(&study.report);
    for setting in ["native", "disabled", "0 entries", "1 entry", "4 entries", "5 entries"] {
        for partner in ["cross AS", "intra AS"] {
            let name = format!("user probes, {partner}: {setting}");
            assert!(study.report.rows.iter().any(|row| row.name == name), "{name} is missing");
        }
    }
}

/// The case studies of the KLogger paper.
const CASES: [&str; 7] = ["loggers", "locks", "quanta", "migrations", "switch-cost", "noise", "timer"];

fn case(name: &str) -> &'static Entry {
    by_name(name).unwrap()
}

fn quick(name: &str, progress: &mut dyn Progress) -> Study {
    (case(name).run)(StudyOptions { is_quick: true }, progress)
}

/// Whether the kernel can be recorded here. Prints the reason if not.
fn was_recorded(study: &Study) -> bool {
    let reason = study.report.rows.iter().find(|row| row.median.is_none());
    let is_recorded = study.report.rows.iter().any(|row| row.median.is_some());
    if !is_recorded {
        println!("SKIPPED: {}: {}", study.folder, reason.map_or("no row", |row| &row.note));
    }
    is_recorded
}

#[test]
fn klog_9_a_case_study_that_is_stopped_says_so_and_leaves_nothing_behind() {
    let _alone = alone();
    let before = traces();
    for name in CASES {
        let study = quick(name, &mut StopAfter(1));
        assert_eq!(traces(), before, "{name}");
        assert!(!study.report.is_complete || !was_recorded(&study), "{name}");
    }
}

#[test]
fn klog_9_a_case_study_has_rows_figures_data_and_a_page_of_a_real_recording() {
    let _alone = alone();
    let before = traces();
    for (name, files) in [
        ("timer", ["README.md", "timer.svg", "distribution.csv"]),
        ("noise", ["README.md", "noise.svg", "tail.svg"]),
    ] {
        let study = quick(name, &mut ());
        assert_eq!(traces(), before, "{name}");
        all_are_said(&study.report);
        assert!(study.report.is_complete && !study.figures.is_empty(), "{name}");
        if !was_recorded(&study) {
            continue;
        }
        assert!(study.report.rows.iter().all(|row| row.median.is_some()), "{name}: {:?}", study.report.rows);
        for file in files {
            let text = study.files.iter().find(|(name, _)| name == file).map(|(_, text)| text);
            assert!(text.is_some_and(|text| !text.contains("NaN")), "{name}: {file}");
        }
    }
}

#[test]
fn klog_9_what_is_no_trace_is_refused_by_its_name() {
    let directory = std::env::temp_dir().join(format!("mete-no-trace-{}", std::process::id()));
    for name in CASES {
        let Some(of_trace) = case(name).of_trace else {
            assert_eq!(name, "loggers", "all others can be told from a trace");
            continue;
        };
        let error = of_trace(&directory).unwrap_err().to_string();
        assert!(error.contains("mete-no-trace"), "{name}: {error}");
    }
}
