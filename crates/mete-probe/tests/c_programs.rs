//! C and C++ programs write the same rows as Rust programs.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use common::{LIMIT, Log, SocketDirectory, Subject, id, poll_all, until};
use mete_log::{DomainId, NO_DOMAIN, Row, Stamp};
use mete_probe::attach::Component;

/// Compilers and their options. Those that are not installed are skipped, with a message.
const COMPILERS: [&[&str]; 6] = [
    &["gcc", "-xc", "-std=c11", "-Wpedantic"],
    &["gcc", "-xc", "-std=c11", "-O2", "-fPIE", "-pie", "-flto", "-Wl,--gc-sections", "-ffunction-sections"],
    &["g++", "-xc++", "-std=c++17", "-Wpedantic", "-O2"],
    &["clang-19", "-xc", "-std=c11", "-O2"],
    &["clang-19", "-xc", "-std=c11", "-O0"],
    &["clang++-19", "-xc++", "-std=c++17", "-O2"],
];
/// The system's libraries that the Rust standard library needs.
const SYSTEM_LIBRARIES: [&str; 5] = ["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"];

fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folders whose files are in the library.
const SOURCES: [&str; 3] = ["src", "../mete-c/src", "../mete-log/src"];

/// A library for C, which was built beside this test: by another crate, so it may be older than what is
/// tested.
fn library(name: &str) -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let found = folder.join(name);
    let built = found.metadata().ok()?.modified().expect("a time");
    let changed = SOURCES.map(|folder| last_change(&crate_path(folder)));
    assert!(
        changed.iter().all(|time| *time <= built),
        "{name} is older than its source: cargo build -p mete-c"
    );
    Some(found)
}

fn last_change(folder: &Path) -> SystemTime {
    let entries = folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path());
    let times = entries.map(|path| match path.is_dir() {
        true => last_change(&path),
        false => path.metadata().expect("a file").modified().expect("a time"),
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Compiles the C subject. `None`, with a message, if the compiler is missing.
fn compile(place: &SocketDirectory, compiler: &[&str], libraries: &[&str]) -> Option<PathBuf> {
    compile_file(place, "count", compiler, libraries)
}

fn compile_file(
    place: &SocketDirectory,
    name: &str,
    compiler: &[&str],
    libraries: &[&str],
) -> Option<PathBuf> {
    compile_path(place, &format!("tests/subject/{name}.c"), compiler, libraries)
}

fn compile_path(
    place: &SocketDirectory,
    source: &str,
    compiler: &[&str],
    libraries: &[&str],
) -> Option<PathBuf> {
    let program = place.path().join(Path::new(source).file_stem().expect("a file"));
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror"]);
    command.arg("-I").arg(crate_path("include")).arg(crate_path(source));
    command.args(["-xnone", "-o"]).arg(&program).args(libraries);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            println!("SKIPPED: {}: {error}", compiler.join(" "));
            None
        }
    }
}

#[test]
fn log_1_the_c_example_compiles() {
    let place = SocketDirectory::new("example");
    let compiler = ["cc", "-xc", "-std=c11", "-Wpedantic", "-O2", "-DMETE_OPTIONAL"];
    if let Some(program) = compile_path(&place, "../../examples/c/requests.c", &compiler, &[]) {
        let status = Command::new(program).arg("0").status().expect("run it");
        assert!(status.success());
    }
}

/// Takes the program and checks the first rows of each of its events.
fn assert_rows_like_rust(place: &SocketDirectory, program: &Path) {
    let subject = Subject::start_command(place, Command::new(program));
    let mut component = subject.connect();
    let events: Vec<_> =
        component.events().iter().map(|event| (event.name.as_str(), event.kind as u16)).collect();
    let mut sorted = events.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [("number", 0), ("phase", 1), ("value", 2)]);

    let log = Log::of(&mut component, 4096, Stamp::Hardware);
    for name in ["number", "phase", "value"] {
        let event = id(&component, name);
        let mut readers = log.readers();
        component.enable(event).expect("enable");
        until(|| {
            let mut is_seen = false;
            let _ = poll_all(&mut readers, |_, row| {
                assert_row(&component, row);
                is_seen |= row.event == Some(event);
            });
            is_seen.then_some(())
        });
        component.disable(event).expect("disable");
    }
    assert_eq!(subject.finish().len(), 1);
}

fn assert_row(component: &Component, row: Row) {
    assert_eq!(row.domain, Some(DomainId::default()));
    let event = row.event.expect("selected");
    match component.events()[event.index()].name.as_str() {
        "number" => assert_eq!(row.correspondent, Some(DomainId::new(1))),
        "phase" => assert_eq!((row.correspondent, row.counter), (Some(DomainId::new(1)), Some(3))),
        _ => assert_eq!(row.correspondent, Some(NO_DOMAIN)),
    }
}

#[test]
fn log_1_c_and_cpp_programs_write_the_same_rows() {
    let Some(library) = library("libmete_probe.a") else {
        println!("SKIPPED: libmete_probe.a was not built beside this test (cargo build -p mete-c)");
        return;
    };
    let libraries = [&[library.to_str().expect("a plain path")], &SYSTEM_LIBRARIES[..]].concat();
    for (nth, compiler) in COMPILERS.iter().enumerate() {
        let place = SocketDirectory::new(&format!("c{nth}"));
        if let Some(program) = compile(&place, compiler, &libraries) {
            assert_rows_like_rust(&place, &program);
        }
    }
}

#[test]
fn log_1_c_programs_use_the_shared_library() {
    let Some(library) = library("libmete_probe.so") else {
        println!("SKIPPED: libmete_probe.so was not built beside this test (cargo build -p mete-c)");
        return;
    };
    let place = SocketDirectory::new("shared");
    let folder = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let libraries = [library.to_str().expect("a plain path"), &folder];
    if let Some(program) = compile(&place, &["cc", "-xc", "-std=c11", "-O2"], &libraries) {
        assert_rows_like_rust(&place, &program);
    }
}

#[test]
fn log_2_shared_objects_come_and_go_while_their_events_are_on() {
    let Some(library) = library("libmete_probe.so") else {
        println!("SKIPPED: libmete_probe.so was not built beside this test (cargo build -p mete-c)");
        return;
    };
    let place = SocketDirectory::new("plugin");
    let folder = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let libraries = [library.to_str().expect("a plain path"), &folder, "-ldl"];
    let host = compile_file(&place, "host", &["cc", "-xc", "-O2"], &libraries);
    let plugin = compile_file(&place, "plugin", &["cc", "-xc", "-O2", "-fPIC", "-shared"], &libraries);
    let (Some(host), Some(plugin)) = (host, plugin) else { return };
    let mut command = Command::new(host);
    command.arg(plugin);
    let mut subject = Subject::start_command(&place, command);
    let told = |subject: &mut Subject, expected: &str| {
        subject.say("");
        assert_eq!(subject.line(), expected);
    };
    told(&mut subject, "worked");
    let mut component = subject.connect();
    let log = Log::of(&mut component, 64, Stamp::None);
    let plugged = id(&component, "plugged");
    component.enable(plugged).expect("enable");
    let mut readers = log.readers();
    for round in 1..20 {
        told(&mut subject, "unloaded");
        told(&mut subject, "worked");
        let mut rows = Vec::new();
        let _ = poll_all(&mut readers, |_, row| rows.push((row.event, row.counter)));
        assert_eq!(rows, [(Some(plugged), Some(round))], "what is loaded while its event is on is on");
    }
    told(&mut subject, "unloaded");
    component.disable(plugged).expect("disable what is not loaded");
    told(&mut subject, "worked");
    assert_eq!(poll_all(&mut readers, |_, _| ()).rows, 0);
    subject.finish();
}

/// Unloads a plug-in that is linked to these libraries while its event is on, then ends a thread that has
/// logged, then disconnects the scheduler. Each step runs the library's code.
fn assert_harmless_to_unload(place: &SocketDirectory, libraries: &[&str]) {
    let host = compile_file(place, "unloader", &["cc", "-xc", "-O2"], &["-ldl", "-lpthread"]);
    let plugin = compile_file(place, "plugin", &["cc", "-xc", "-O2", "-fPIC", "-shared"], libraries);
    let (Some(host), Some(plugin)) = (host, plugin) else { return };
    let mut command = Command::new(host);
    command.arg(plugin);
    let mut subject = Subject::start_command(place, command);
    assert_eq!(subject.line(), "loaded");
    let mut component = subject.connect();
    let log = Log::of(&mut component, 64, Stamp::None);
    component.enable(id(&component, "plugged")).expect("enable");
    let mut readers = log.readers();
    for step in ["worked", "unloaded", "joined"] {
        subject.say("");
        assert_eq!(subject.line(), step);
    }
    assert_eq!(poll_all(&mut readers, |_, _| ()).rows, 2, "both threads have logged");
    drop(component);
    subject.connect();
    assert!(subject.finish().is_empty());
}

#[test]
fn log_11_the_shared_library_is_unloaded_without_harm() {
    let Some(library) = library("libmete_probe.so") else {
        println!("SKIPPED: libmete_probe.so was not built beside this test (cargo build -p mete-c)");
        return;
    };
    let folder = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let libraries = [library.to_str().expect("a plain path"), &folder];
    assert_harmless_to_unload(&SocketDirectory::new("unload-shared"), &libraries);
}

#[test]
fn log_11_a_plug_in_with_a_library_of_its_own_is_unloaded_without_harm() {
    let Some(library) = library("libmete_probe.a") else {
        println!("SKIPPED: libmete_probe.a was not built beside this test (cargo build -p mete-c)");
        return;
    };
    let libraries = [&[library.to_str().expect("a plain path")], &SYSTEM_LIBRARIES[..]].concat();
    assert_harmless_to_unload(&SocketDirectory::new("unload-static"), &libraries);
}

#[test]
fn log_12_two_copies_of_the_library_in_one_process_are_two_components() {
    let Some(library) = library("libmete_probe.so") else {
        println!("SKIPPED: libmete_probe.so was not built beside this test (cargo build -p mete-c)");
        return;
    };
    let place = SocketDirectory::new("copies");
    let folder = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let libraries = [library.to_str().expect("a plain path"), &folder];
    let compiler = ["cc", "-xc", "-O2", "-fPIC", "-shared"];
    let Some(plugin) = compile_file(&place, "plugin", &compiler, &libraries) else { return };
    // The subject has its own copy linked in; the plug-in brings the shared one.
    let mut command = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"));
    command.args(["count", "1"]).env("LD_PRELOAD", plugin);
    let subject = Subject::start_command(&place, command);
    let other = place.path().join(format!("{}-1.sock", subject.pid()));
    let events = |path: &Path| {
        let component = until(|| Component::connect(path, LIMIT).ok());
        assert_eq!(component.pid(), subject.pid());
        component.events().len()
    };
    let mut both = [events(subject.socket()), events(&other)];
    both.sort_unstable();
    assert_eq!(both, [1, 4]);
    subject.finish();
    assert!(!other.exists(), "both clean up");
}

#[test]
fn log_2_a_c_program_built_for_it_runs_without_the_library() {
    let place = SocketDirectory::new("optional");
    let compiler = ["cc", "-xc", "-std=c11", "-O2", "-DMETE_OPTIONAL"];
    let Some(program) = compile(&place, &compiler, &[]) else { return };
    let subject = Subject::start_command(&place, Command::new(program));
    let socket = subject.socket().to_owned();
    assert_eq!(subject.finish().len(), 1);
    assert!(!socket.exists(), "no library was there to make it");
}
