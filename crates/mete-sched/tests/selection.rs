//! The kernel and the search of `/proc` agree on which process belongs to which domain (LOG-6).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use common::{Group, Random, Running, eventually, kernel};
use mete_kernel::{Bound, Glob};
use mete_log::DomainId;
use mete_sched::domains::process::Process;
use mete_sched::domains::{DomainSpec, Domains, FIRST, OTHER};
use mete_sched::sources::{KernelSource, Source};

fn domains(texts: &[String]) -> Domains {
    Domains::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

/// Begins in the same order as the scheduler.
fn start(domains: &mut Domains) -> Option<KernelSource> {
    let (mut source, _) = KernelSource::start(kernel()?, &[]).unwrap();
    source.select(&domains.rules(), None).unwrap();
    look(domains, &mut source);
    look(domains, &mut source);
    domains.expect_kernel_bindings();
    Some(source)
}

fn look(domains: &mut Domains, source: &mut KernelSource) {
    let changes = domains.scan_beside(|pid| source.bound(pid)).to_vec();
    for change in changes {
        source.rebind(change, domains.kernel_binding_of(change.pid)).unwrap();
    }
}

const NAMES: [&str; 5] = ["mete-a1", "mete-a2", "mete-b1", "mete-b2", "mete-nothing"];
/// The selectors select no process above the tests, from which the tests' processes would inherit a domain.
const PATTERNS: [&str; 2] = ["mete-a*", "mete*-?1"];
const CHILDREN: DomainId = DomainId::new(4);
const PROGRAM: DomainId = DomainId::new(5);

/// What a process is, and the domain that it has by the rules.
#[derive(Clone)]
struct Model {
    name: &'static str,
    is_child_of_root: bool,
    domain: DomainId,
}

impl Model {
    fn apply(&mut self) {
        let by_name = PATTERNS
            .iter()
            .position(|pattern| Glob::of_names(pattern.as_bytes()).matches(self.name.as_bytes()));
        let by_parent = self.is_child_of_root.then_some(CHILDREN);
        self.domain =
            by_name.map(|nth| DomainId::from_index(FIRST.index() + nth)).or(by_parent).unwrap_or(self.domain);
    }
}

/// Renames itself, forks children that do the same, and at the end becomes another program or sleeps.
fn live(random: &mut Random, mut model: Model, depth: u32, tell: &mut File) -> ! {
    // SAFETY: no memory is passed.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(60);
    }
    for _ in 0..1 + random.below(4) {
        if depth < 4 && random.below(3) == 0 {
            let mut child = Model { is_child_of_root: depth == 0, ..model.clone() };
            child.apply();
            let seed = random.below(u64::MAX) | 1;
            // SAFETY: this process has one thread, and the child does not return.
            if unsafe { libc::fork() } == 0 {
                live(&mut Random(seed), child, depth + 1, tell);
            }
        } else if depth > 0 {
            model.name = NAMES[random.below(NAMES.len() as u64) as usize];
            let name = CString::new(model.name).unwrap();
            // SAFETY: the string ends with a zero byte.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
            model.apply();
        }
        std::thread::sleep(std::time::Duration::from_micros(random.below(3000)));
    }
    let becomes_another = depth > 0 && random.below(3) == 0;
    if becomes_another {
        // Its name selects nothing. Its program selects a domain. Before that, it has its parent's domain.
        model.domain = if model.is_child_of_root { CHILDREN } else { PROGRAM };
    }
    let report =
        [u64::from(std::process::id()), u64::from(model.domain.get())].map(u64::to_ne_bytes).concat();
    tell.write_all(&report).unwrap();
    if becomes_another {
        let error = std::os::unix::process::CommandExt::exec(Command::new("sleep").arg("60"));
        panic!("{error}");
    }
    loop {
        // SAFETY: no memory is passed.
        unsafe { libc::pause() };
    }
}

/// All processes below a process that is still there.
fn end(root: i32) {
    for child in common::children(root as u32) {
        end(child.pid as i32);
    }
    // SAFETY: the process is a descendant of this one, and its parent has not waited for it.
    unsafe {
        libc::kill(root, libc::SIGKILL);
        libc::waitpid(root, std::ptr::null_mut(), 0);
    }
}

#[test]
fn log_6_kernel_and_scan_agree_over_random_histories() {
    let sleep = std::fs::canonicalize("/bin/sleep").unwrap();
    for seed in 1..=5_u64 {
        println!("seed {seed}");
        let mut pipe = [0; 2];
        // SAFETY: the call writes two descriptors into an array of two.
        assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        // SAFETY: the descriptors are new, and nothing else owns them.
        let [mut told, mut tell] = pipe.map(|fd| unsafe { File::from_raw_fd(fd) });
        let (mut go_read, go_write) = {
            let mut pipe = [0; 2];
            // SAFETY: as above.
            assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
            // SAFETY: as above.
            pipe.map(|fd| unsafe { File::from_raw_fd(fd) }).into()
        };
        // SAFETY: the child uses only what was made before, and does not return.
        let root = unsafe { libc::fork() };
        if root == 0 {
            drop(go_write);
            let _ = go_read.read(&mut [0]);
            let model = Model { name: "root", is_child_of_root: false, domain: OTHER };
            live(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)), model, 0, &mut tell);
        }
        drop(tell);
        let mut texts: Vec<_> =
            PATTERNS.iter().enumerate().map(|(nth, pattern)| format!("d{nth}=comm:{pattern}")).collect();
        texts.extend([format!("children=children:{root}"), format!("program=exe:{}", sleep.display())]);
        let mut domains = domains(&texts);
        let Some(mut source) = start(&mut domains) else { return end(root) };
        (&go_write).write_all(&[1]).unwrap();
        let mut expected = Vec::new();
        let count = |pid: i32| {
            fn below(pid: u32) -> usize {
                1 + common::children(pid).iter().map(|child| below(child.pid)).sum::<usize>()
            }
            below(pid as u32)
        };
        // Every process reports once, when only its exec is still to come.
        eventually("all have reported", || {
            look(&mut domains, &mut source);
            let mut ready = libc::pollfd { fd: pipe[0], events: libc::POLLIN, revents: 0 };
            // SAFETY: the call gets one structure, and is told that there is one.
            while unsafe { libc::poll(&raw mut ready, 1, 20) } == 1 {
                let mut report = [0; 16];
                told.read_exact(&mut report).unwrap();
                let (pid, domain) = report.split_at(8);
                let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
                expected.push((number(pid) as u32, DomainId::new(number(domain) as u16)));
            }
            !expected.is_empty() && expected.len() == count(root)
        });
        let sleeps = |(pid, domain): &(u32, DomainId)| {
            let comm = Process::read(*pid).unwrap().comm;
            *domain != PROGRAM || comm == "sleep"
        };
        eventually("all have become what they wanted to", || expected.iter().all(sleeps));
        // One that took its name late, because others computed, was looked at twice before: it is looked at again in one of sixteen scans.
        for _ in 0..18 {
            look(&mut domains, &mut source);
        }
        for &(pid, domain) in &expected {
            let comm = Process::read(pid).unwrap().comm;
            let found = (source.bound(pid).unwrap().domain, domains.domain_of(pid));
            assert_eq!(found, (domain, domain), "seed {seed}: process {pid}, {comm:?}: kernel, scan");
        }
        end(root);
    }
}

#[test]
fn log_6_a_process_that_begins_in_a_bound_control_group_stays_in_its_domain_when_it_is_found() {
    let Some(group) = Group::make("found-later") else { return };
    let mut parent = Running::waiting();
    group.take(parent.pid());
    let texts = [format!("group=cgroup:{}", group.0.display()), "none=comm:no-such-prog".into()];
    let mut domains = domains(&texts);
    let Some(mut source) = start(&mut domains) else { return };
    for (path, domain) in domains.cgroups() {
        source.bind_cgroup(path, domain).unwrap();
    }
    parent.tell("more");
    parent.hear();
    let child = common::children(parent.pid())[0].pid;
    for _ in 0..3 {
        look(&mut domains, &mut source);
        let here = Bound { domain: FIRST, is_by_cgroup: true };
        assert_eq!((source.bound(child), domains.domain_of(child)), (Some(here), FIRST));
    }
    assert_eq!(domains.late_bindings().processes, 0, "no process was bound late");
}

#[test]
fn log_6_a_process_whose_name_is_no_text_is_selected_by_the_name_that_people_know() {
    let whole = "сериализатор";
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join(whole);
    std::os::unix::fs::symlink(common::SUBJECT, &program).unwrap();
    let mut process = Running::start(Command::new(&program).arg("wait"));
    assert_eq!(process.hear(), "here");
    let comm = Process::read(process.pid()).unwrap().comm;
    assert!(comm.len() == 15 && comm.to_str().is_none(), "{comm:?}");
    for selector in [format!("comm:{whole}"), "comm:сери*".into(), format!("exe:{}", program.display())] {
        let spec: DomainSpec = format!("d={selector}").parse().unwrap();
        let mut domains = Domains::new([spec]).unwrap();
        domains.scan();
        assert_eq!(domains.domain_of(process.pid()), FIRST, "{selector}");
    }
    let bytes = std::ffi::OsString::from_vec([b"d=comm:", comm.as_bytes()].concat());
    let mut domains = Domains::new([DomainSpec::parse(&bytes).unwrap()]).unwrap();
    domains.scan();
    assert_eq!(domains.domain_of(process.pid()), FIRST, "the cut name itself");
}
