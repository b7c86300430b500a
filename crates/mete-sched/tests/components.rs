//! Components that do not answer or are stopped delay neither the poll nor its start and end (LOG-11,
//! LOG-16).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Running, eventually};
use mete_log::clock::monotonic_ns;
use mete_log::{Area, DomainId, Region, Shape};
use mete_probe::attach::{AttachError, Component, configured_processors};
use mete_probe::directory::Users;
use mete_probe::wire::{Message, Name, Packet};
use mete_sched::analysis::Analysis;
use mete_sched::domains::{Change, DivideBy, OTHER};
use mete_sched::sources::discovery::Arrival;
use mete_sched::sources::{ComponentSource, Discovery, EventUse, RegionSource, Source, SourceError, Trust};
use mete_sched::{DomainSpec, Layout, Scheduler, Settings};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// The program of `test-programs/driver.rs`.
const DRIVER: &str = env!("CARGO_BIN_EXE_mete-sched-driver");
/// A bound for a start. It would take longer to wait for each silent component as long as a component may
/// take to answer.
const GENEROUS: Duration = Duration::from_secs(25);
const SILENT: usize = 30;
/// A user who exists nowhere.
const OTHER_USER: u32 = 64_001;

/// A directory for sockets that is removed at the end of the test.
struct SocketDirectory(PathBuf);

impl SocketDirectory {
    fn new(name: &str) -> SocketDirectory {
        let path = std::env::temp_dir().join(format!("mete-components-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("run")).unwrap();
        fs::set_permissions(path.join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        SocketDirectory(path)
    }

    fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    fn driver(&self, name: &str) -> Running {
        let mut command = Command::new(DRIVER);
        command.arg(self.0.join(name)).env("METE_RUNTIME_DIR", self.run());
        let mut driver = Running::start(&mut command);
        assert_eq!(driver.hear(), "here");
        driver
    }

    /// A driver of a user who exists nowhere, which reports requests in the name of a domain.
    fn forger(&self, domain: DomainId, correspondent: DomainId) -> Running {
        let program = self.0.join("forger");
        fs::copy(DRIVER, &program).unwrap();
        for path in [&self.0, &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for path in [self.run(), self.0.join("work")] {
            fs::create_dir_all(&path).unwrap();
            std::os::unix::fs::chown(&path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        }
        let mut command = Command::new(program);
        command
            .arg(self.0.join("work/socket"))
            .args([domain, correspondent].map(|domain| domain.to_string()));
        command.env("METE_RUNTIME_DIR", self.run()).uid(OTHER_USER).gid(OTHER_USER);
        let mut forger = Running::start(&mut command);
        assert_eq!(forger.hear(), "here");
        forger
    }

    fn settings(&self) -> Settings {
        Settings {
            kernel: Vec::new(),
            component_directory: Some(self.run()),
            housekeeping: Duration::from_millis(40),
            may_be_empty: true,
            ..Settings::default()
        }
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A socket at which no program answers.
fn silent(path: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    socket
}

fn domain(driver: &Running) -> DomainSpec {
    format!("driver=pid:{}", driver.pid()).parse().unwrap()
}

fn reads(scheduler: &Scheduler, driver: &Running) -> bool {
    let label = format!("mete-sched-driver ({})", driver.pid());
    scheduler.analysis().sources().any(|source| source.label() == label)
}

#[test]
fn log_11_silent_sockets_and_a_stopped_program_delay_neither_polls_nor_start_nor_end() {
    let place = SocketDirectory::new("silent");
    let sockets: Vec<_> =
        (0..SILENT).map(|number| silent(&place.run().join(format!("{number}.sock")))).collect();
    let (stopped, driver) = (place.driver("stopped"), place.driver("driver"));
    stopped.signal(libc::SIGSTOP);
    let begin = Instant::now();
    let mut scheduler = Scheduler::start(place.settings(), vec![domain(&driver)]).unwrap();
    let mut polls = 0;
    while !reads(&scheduler, &driver) || polls < 500 {
        scheduler.tick();
        polls += 1;
        std::thread::sleep(Duration::from_micros(200));
    }
    scheduler.finish();
    assert!(begin.elapsed() < GENEROUS, "{polls} polls took {:?}", begin.elapsed());
    let called = sockets.iter().filter(|socket| rustix::net::accept(socket).is_ok()).count();
    assert_eq!(called, SILENT, "every socket was tried");
    stopped.signal(libc::SIGCONT);
}

#[test]
fn log_11_a_component_that_takes_no_request_is_let_go_and_reported_and_can_be_taken_once_it_goes_on() {
    let place = SocketDirectory::new("deaf");
    let driver = place.driver("driver");
    let path = place.run().join(format!("{}.sock", driver.pid()));
    let mut source = ComponentSource::start(taken(&path), configured_processors(), &Arc::default()).unwrap();
    eventually("it logs", || source.settle().unwrap());
    driver.signal(libc::SIGSTOP);
    // The component's own process changes its domain, again and again.
    let change = |to| Change { pid: driver.pid(), from: OTHER, to, is_alive: true, is_by_cgroup: false };
    let refused = (0..10_000).find_map(|round| source.bind(change(DomainId::new(round % 2))).err()).unwrap();
    assert!(matches!(refused, SourceError::Component(AttachError::Deaf { .. })), "{refused}");
    assert!(!source.is_alive(), "it is let go");
    drop(source);
    driver.signal(libc::SIGCONT);
    let mut source = ComponentSource::start(taken(&path), configured_processors(), &Arc::default()).unwrap();
    eventually("it logs again", || source.settle().unwrap());
    source.bind(change(DomainId::new(2))).unwrap();
    eventually("it takes what it is told", || source.settle().unwrap());
}

/// A program that behaves as components do, at several sockets of its own.
struct Several {
    listeners: Vec<OwnedFd>,
    /// For each listener, the schedulers that have called it and are answered.
    callers: Vec<Vec<OwnedFd>>,
}

impl Several {
    fn at(paths: &[PathBuf]) -> Several {
        let callers = paths.iter().map(|_| Vec::new()).collect();
        Several { listeners: paths.iter().map(|path| silent(path)).collect(), callers }
    }

    /// Introduces itself to the schedulers that call, and agrees to everything that it is told.
    fn answer(&mut self) {
        let say = |to: &OwnedFd, token, message| {
            let packet = Packet { token, message }.encode();
            let _ = rustix::net::send(to, &packet, SendFlags::NOSIGNAL);
        };
        for (listener, callers) in self.listeners.iter().zip(&mut self.callers) {
            while let Ok(caller) = rustix::net::accept_with(listener, SocketFlags::NONBLOCK) {
                say(&caller, 0, Message::Hello { pid: 1, events: 0, name: Name::new("several") });
                callers.push(caller);
            }
            for caller in callers.iter() {
                let mut bytes = [0; 4096];
                while let Ok((length @ 1.., _)) = rustix::net::recv(caller, &mut bytes, RecvFlags::empty()) {
                    say(caller, Packet::decode(&bytes[..length]).unwrap().token, Message::Ack);
                }
            }
        }
    }
}

#[test]
fn log_11_one_of_several_components_of_a_process_that_hangs_up_is_called_again() {
    let place = SocketDirectory::new("several");
    let mut several = Several::at(&["1.sock", "1-1.sock"].map(|name| place.run().join(name)));
    let mut scheduler = Scheduler::start(place.settings(), Vec::new()).unwrap();
    let label = format!("several ({})", std::process::id());
    eventually("both are read", || {
        several.answer();
        scheduler.tick();
        scheduler.analysis().sources().filter(|source| source.label() == label).count() == 2
    });
    let calls_of_other = several.callers[1].len();
    several.callers[0].clear();
    eventually("the one that hung up is called again", || {
        several.answer();
        scheduler.tick();
        several.callers[0].len() == 1
    });
    assert_eq!(several.callers[1].len(), calls_of_other, "the other one goes on");
}

/// A component that never does what it was told.
struct Stuck(Component);

impl Arrival for Stuck {
    fn begin(component: Component, _: usize, _: &Arc<Trust>) -> Result<Stuck, SourceError> {
        Ok(Stuck(component))
    }

    fn advance(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl AsFd for Stuck {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[test]
fn log_11_a_component_that_does_not_begin_to_log_is_let_go_and_reported_and_tried_again() {
    let place = SocketDirectory::new("stuck");
    let driver = place.driver("driver");
    let discovery = Discovery::<Stuck>::start(1, Some(&place.run()), Users::All, &Arc::default()).unwrap();
    for _ in 0..2 {
        let refused = discovery.next_within(Duration::from_secs(300)).unwrap().err().unwrap();
        assert!(matches!(refused, SourceError::Component(AttachError::Silent { .. })), "{refused}");
    }
    drop(discovery);
    taken(&place.run().join(format!("{}.sock", driver.pid())));
}

/// What a source was asked to do.
#[derive(Default)]
struct Asked {
    stocks: AtomicUsize,
}

/// A source that logs nothing.
struct Mute {
    inner: RegionSource,
    asked: Arc<Asked>,
}

impl Source for Mute {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn processors(&self) -> usize {
        self.inner.processors()
    }

    fn area(&self, processor: usize) -> Area<'_> {
        self.inner.area(processor)
    }

    fn events(&self) -> &[EventUse] {
        self.inner.events()
    }

    fn bind(&mut self, change: Change) -> Result<(), SourceError> {
        self.inner.bind(change)
    }

    fn take_stock(&mut self) -> Result<(), SourceError> {
        self.asked.stocks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn log_13_stock_is_taken_at_the_beginning_and_whenever_processes_have_come_to_a_domain() {
    let place = SocketDirectory::new("stock");
    let settings = Settings { components: false, ..place.settings() };
    let name = "mete-stock";
    let mut scheduler = Scheduler::start(settings, vec![format!("a=comm:{name}").parse().unwrap()]).unwrap();
    let asked = Arc::new(Asked::default());
    let region = Arc::new(Region::create(Shape::COMPONENT, 1).unwrap());
    let inner = RegionSource::new("mute", region, Vec::new());
    scheduler.read(Box::new(Mute { inner, asked: Arc::clone(&asked) })).unwrap();
    let stocks = || asked.stocks.load(Ordering::Relaxed);
    assert_eq!(stocks(), 1);
    for expected in 2..4 {
        (0..100).for_each(|_| scheduler.tick());
        assert_eq!(stocks(), expected - 1, "no process has come");
        let _member = common::waiting_as(name);
        eventually("it is taken again", || {
            scheduler.tick();
            stocks() == expected
        });
    }
}

#[test]
fn log_2_a_component_that_pauses_logs_no_request_and_goes_on_with_every_one() {
    const REQUESTS: u64 = 100;
    let place = SocketDirectory::new("pausing");
    let driver = place.driver("driver");
    let mut client = UnixStream::connect(place.0.join("driver")).unwrap();
    let path = place.run().join(format!("{}.sock", driver.pid()));
    let source = ComponentSource::start(taken(&path), configured_processors(), &Arc::default()).unwrap();
    let mut analysis =
        Analysis::new(configured_processors(), vec![None; 3], Layout::PerEvent, monotonic_ns());
    analysis.add(Box::new(source)).unwrap();
    // The rows that a number of requests make.
    let mut rows_of = |analysis: &mut Analysis, requests: u64| {
        let rows =
            |analysis: &Analysis| analysis.completeness().files.iter().map(|file| file.rows).sum::<u64>();
        let before = rows(analysis);
        for _ in 0..requests {
            client.write_all(&[1]).unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        analysis.poll(monotonic_ns());
        rows(analysis) - before
    };
    for _ in 0..3 {
        eventually("it logs", || rows_of(&mut analysis, 1) == 1);
        assert_eq!(rows_of(&mut analysis, REQUESTS), REQUESTS);
        analysis.sources_mut().for_each(|source| source.pause().unwrap());
        eventually("it pauses", || rows_of(&mut analysis, 1) == 0);
        assert_eq!(rows_of(&mut analysis, REQUESTS), 0);
        analysis.sources_mut().for_each(|source| source.resume().unwrap());
        analysis.sources_mut().for_each(|source| source.attend().unwrap());
    }
}

#[test]
fn log_2_only_those_sources_log_again_that_are_wanted() {
    let place = SocketDirectory::new("resumed");
    let driver = place.driver("driver");
    let mut client = UnixStream::connect(place.0.join("driver")).unwrap();
    let mut scheduler = Scheduler::start(place.settings(), Vec::new()).unwrap();
    let mut logs_requests = |scheduler: &mut Scheduler| {
        let rows = |scheduler: &Scheduler| {
            scheduler.analysis().completeness().files.iter().map(|file| file.rows).sum::<u64>()
        };
        let before = rows(scheduler);
        client.write_all(&[1]).unwrap();
        client.read_exact(&mut [0]).unwrap();
        scheduler.tick();
        rows(scheduler) > before
    };
    eventually("the component logs", || logs_requests(&mut scheduler));
    scheduler.pause().unwrap();
    eventually("it pauses", || !logs_requests(&mut scheduler));
    scheduler.resume_those(|label| label == "kernel").unwrap();
    assert!((0..100).all(|_| !logs_requests(&mut scheduler)), "it is no kernel");
    let its_label = format!("({})", driver.pid());
    scheduler.resume_those(|label| label.ends_with(&its_label)).unwrap();
    eventually("it logs again", || logs_requests(&mut scheduler));
}

/// Takes a component, as soon as no earlier scheduler has it any more.
fn taken(path: &Path) -> Component {
    let begin = Instant::now();
    loop {
        match Component::connect(path, GENEROUS) {
            Ok(component) => return component,
            Err(error) => assert!(begin.elapsed() < GENEROUS, "{error}"),
        }
    }
}

#[test]
fn log_6_without_the_kernel_programs_that_appear_beside_a_component_have_domains_of_their_own() {
    let place = SocketDirectory::new("divided");
    let driver = place.driver("driver");
    let settings = Settings { divide: Some(DivideBy::Program), ..place.settings() };
    let mut scheduler = Scheduler::start(settings, Vec::new()).unwrap();
    eventually("the component is read", || {
        scheduler.tick();
        reads(&scheduler, &driver)
    });
    let later = common::waiting_as("mete-appears");
    eventually("a program that appears has a domain", || {
        scheduler.tick();
        scheduler.domains().by_name("mete-appears") == Some(scheduler.domains().domain_of(later.pid()))
    });
}

fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: {test}: not root");
    }
    is_root
}

/// Polls until a component has logged at least this number of rows that count, or that do not count. Returns
/// both numbers.
fn rows_of(scheduler: &mut Scheduler, component: &Running, at_least: u64) -> (u64, u64) {
    let label = format!("forger ({})", component.pid());
    let mut found = (0, 0);
    eventually("rows are read", || {
        scheduler.tick();
        let files = scheduler.analysis().completeness().files;
        let files = files.iter().filter(|file| file.source == label);
        found = files.fold((0, 0), |sum, file| (sum.0 + file.rows, sum.1 + file.disregarded));
        found.0 >= at_least
    });
    (found.0 - found.1, found.1)
}

#[test]
fn log_6_rows_count_only_for_domains_that_their_component_may_speak_for() {
    if !is_root("log_6_rows_count_only_for_domains_that_their_component_may_speak_for") {
        return;
    }
    const VICTIM: DomainId = DomainId::new(2);
    const DRIVER: DomainId = DomainId::new(3);
    let victim = Running::waiting();
    for is_member in [false, true] {
        // In the name of another user's process; in its own name about another user's process; and about a
        // process in no domain.
        for (name, own, correspondent, counts) in [
            ("for", VICTIM, DRIVER, false),
            ("about", DRIVER, VICTIM, false),
            ("itself", DRIVER, OTHER, is_member),
        ] {
            let place = SocketDirectory::new(&format!("forged-{name}-{is_member}"));
            let forger = place.forger(own, correspondent);
            let member = if is_member { forger.pid() } else { victim.pid() + (1 << 22) };
            let domains = [
                format!("victim=pid:{}", victim.pid()),
                format!("driver=pid:{member},user:{}", u32::MAX - 1),
            ];
            let domains = domains.map(|domain| domain.parse().unwrap()).to_vec();
            let mut scheduler = Scheduler::start(place.settings(), domains).unwrap();
            let (counted, disregarded) = rows_of(&mut scheduler, &forger, 500);
            let traffic = &scheduler.analysis().findings().traffic;
            let reported = traffic.reported().total().cells().iter().sum::<u64>();
            // Before the component was told of its own domain, nothing that it said about itself counted.
            assert_eq!(
                (counted > 0, reported > 0),
                (counts, counts),
                "{name}, {is_member}: {counted}, {disregarded}"
            );
            assert!(!counts || disregarded == 0 || disregarded < counted);
            let statement = scheduler.analysis().completeness().to_string();
            assert_eq!(statement.contains("do not count: it may not speak"), disregarded > 1, "{statement}");
            assert!(!traffic.is_driver(VICTIM));
        }
    }
}

#[test]
fn log_6_a_driver_that_was_named_as_such_may_report_about_all_domains() {
    if !is_root("log_6_a_driver_that_was_named_as_such_may_report_about_all_domains") {
        return;
    }
    let victim = Running::waiting();
    let place = SocketDirectory::new("named");
    let forger = place.forger(DomainId::new(3), DomainId::new(2));
    let client: DomainSpec = format!("client=pid:{}", victim.pid()).parse().unwrap();
    let driver: DomainSpec = format!("driver=pid:{}", forger.pid()).parse().unwrap();
    let domains = vec![client, driver.with_role(mete_policy::Role::Driver)];
    let mut scheduler = Scheduler::start(place.settings(), domains).unwrap();
    eventually("what it reports counts", || {
        scheduler.tick();
        scheduler.analysis().findings().traffic.reported().total().get(3, 2) > 100
    });
}

#[test]
fn log_6_components_are_looked_for_where_their_users_have_a_process_in_a_domain() {
    const TEST: &str = "log_6_components_are_looked_for_where_their_users_have_a_process_in_a_domain";
    if !is_root(TEST) || std::env::var_os("METE_RUNTIME_DIR").is_some() {
        return;
    }
    let directory = PathBuf::from(format!("/tmp/mete-{OTHER_USER}"));
    if fs::create_dir(&directory).is_err() {
        return println!("SKIPPED: {TEST}: {} is in use", directory.display());
    }
    let place = SocketDirectory(directory.clone());
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&directory, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let socket = {
        let path = directory.join("1.sock");
        std::thread::spawn(move || {
            // SAFETY: this changes the rights of this thread alone, and the thread ends here.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, OTHER_USER, -1) }, 0);
            silent(&path)
        })
    };
    let socket = socket.join().unwrap();
    let is_called = || rustix::net::accept(&socket).is_ok();
    let other = Running::waiting();
    let settings = Settings { component_directory: None, ..place.settings() };
    let selects = |text: &str| vec![text.parse::<DomainSpec>().unwrap()];

    let mut scheduler =
        Scheduler::start(settings.clone(), selects(&format!("a=pid:{}", other.pid()))).unwrap();
    for _ in 0..50 {
        scheduler.tick();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!is_called(), "its user has nothing to do with it");
    scheduler.finish();

    let mut member = Command::new("sleep");
    member.arg("1000").uid(OTHER_USER).gid(OTHER_USER);
    let member = Running::start(&mut member);
    for settings in [
        (settings.clone(), selects(&format!("a=user:{OTHER_USER}"))),
        (settings.clone(), selects(&format!("a=pid:{}", member.pid()))),
        (
            Settings { component_users: Users::These([OTHER_USER].into()), ..settings.clone() },
            selects(&format!("a=pid:{}", other.pid())),
        ),
        (Settings { component_users: Users::All, ..settings }, selects(&format!("a=pid:{}", other.pid()))),
    ] {
        let mut scheduler = Scheduler::start(settings.0, settings.1).unwrap();
        eventually("it is called", || {
            scheduler.tick();
            is_called()
        });
    }
}
