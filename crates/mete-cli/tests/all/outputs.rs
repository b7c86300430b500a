//! Into which users' files results go, which users may read them, and as which user commands run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{copy_program, has_two_processors, is_root, mete, program, said_by, says};

const NOBODY: u32 = 65534;

/// A folder, with a trace in it and room for another one.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let record = ["record", "--schema", "stopwatch", "-o", &place.text("trace"), "--", "true"];
        mete(&record).assert().success();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// A folder like `/tmp`, whose owner is root.
    fn shared(&self) -> PathBuf {
        let shared = self.at("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        shared
    }

    fn convert(&self, form: &str, to: &Path) -> assert_cmd::assert::Assert {
        mete(&["convert", &self.text("trace"), "--to", form, "-o", to.to_str().unwrap()]).assert()
    }

    /// Checks that nothing is written there, and that the reason is given.
    fn refuses(&self, to: &Path, why: &str) {
        for form in ["csv", "ctf"] {
            let said = said_by(&self.convert(form, to).code(1));
            assert!(said.lines().count() == 1, "{said}");
            let is_there_already = form == "ctf" && said.contains("it exists already");
            assert!(said.contains(why) || is_there_already, "{form}: {said}");
        }
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn new_6_what_is_made_of_a_trace_only_its_owner_may_read() {
    let place = Place::new();
    for form in ["csv", "perfetto", "parquet"] {
        place.convert(form, &place.at(form)).success();
        assert_eq!(mode(&place.at(form)), 0o600, "{form}");
    }
    for form in ["ctf", "ctf1"] {
        place.convert(form, &place.at(form)).success();
        assert_eq!((mode(&place.at(form)), mode(&place.at(form).join("metadata"))), (0o700, 0o600), "{form}");
    }
    // A file that is replaced keeps its mode, which its owner has chosen.
    fs::set_permissions(place.at("csv"), Permissions::from_mode(0o640)).unwrap();
    place.convert("json", &place.at("csv")).success();
    assert_eq!(mode(&place.at("csv")), 0o640);
}

/// Another user has put something at the place of the result before.
#[test]
fn new_6_no_output_goes_through_what_another_user_has_put_at_its_name() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (shared, victim) = (place.shared(), place.at("victim"));
    fs::write(&victim, "kept").unwrap();
    let foreign = |path: &Path| lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    let in_shared = |name: &str| shared.join(name);

    symlink(&victim, in_shared("link")).unwrap();
    foreign(&in_shared("link"));
    place.refuses(&in_shared("link"), "is a link of another user, and is not followed");
    // A link to a file that does not exist.
    symlink(place.at("new"), in_shared("hanging")).unwrap();
    foreign(&in_shared("hanging"));
    place.refuses(&in_shared("hanging"), "is a link of another user, and is not followed");
    assert!(!place.at("new").exists());
    // A link to a folder on the way.
    symlink(place.0.path(), in_shared("way")).unwrap();
    foreign(&in_shared("way"));
    place.refuses(&in_shared("way/victim"), "is a link of another user, and is not followed");
    // A link in that user's own folder.
    fs::create_dir(place.at("theirs")).unwrap();
    chown(place.at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    symlink(&victim, place.at("theirs/link")).unwrap();
    foreign(&place.at("theirs/link"));
    place.refuses(&place.at("theirs/link"), "is a link of another user, and is not followed");

    // A file that others may read, and a pipe that others may wait at.
    fs::write(in_shared("file"), "theirs").unwrap();
    fs::set_permissions(in_shared("file"), Permissions::from_mode(0o666)).unwrap();
    foreign(&in_shared("file"));
    place.refuses(&in_shared("file"), "it belongs to another user, in a folder where all users may write");
    let mkfifo = Command::new("mkfifo").arg(in_shared("pipe")).status().unwrap();
    assert!(mkfifo.success());
    foreign(&in_shared("pipe"));
    place.refuses(&in_shared("pipe"), "it belongs to another user, in a folder where all users may write");

    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    assert_eq!(fs::read_to_string(in_shared("file")).unwrap(), "theirs");

    // Elsewhere a file of another user is replaced. That user may not read the new one.
    fs::write(place.at("theirs/file"), "theirs").unwrap();
    fs::set_permissions(place.at("theirs/file"), Permissions::from_mode(0o666)).unwrap();
    foreign(&place.at("theirs/file"));
    place.convert("csv", &place.at("theirs/file")).success();
    assert_eq!(
        (mode(&place.at("theirs/file")), fs::metadata(place.at("theirs/file")).unwrap().uid()),
        (0o600, 0)
    );

    // The user's own link is followed in a shared folder, too.
    symlink(&victim, in_shared("own")).unwrap();
    place.convert("csv", &in_shared("own")).success();
    assert!(fs::symlink_metadata(in_shared("own")).unwrap().is_symlink());
    assert_ne!(fs::read_to_string(&victim).unwrap(), "kept");
}

#[test]
fn the_demos_report_does_not_go_through_another_users_link() {
    if !is_root() || !has_two_processors() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    let shared = place.shared();
    fs::write(place.at("victim"), "kept").unwrap();
    symlink(place.at("victim"), shared.join("mete-demo.html")).unwrap();
    lchown(shared.join("mete-demo.html"), Some(NOBODY), Some(NOBODY)).unwrap();
    let said = said_by(&mete(&["demo", "--rounds", "1"]).current_dir(&shared).assert().code(1).stdout(""));
    assert!(said.contains("mete-demo.html is a link of another user, and is not followed"), "{said}");
    assert!(said.contains("--report") && fs::read_to_string(place.at("victim")).unwrap() == "kept");
}

/// A pipe without a writer: to open it would wait for one.
#[test]
fn the_demo_clears_up_after_its_like_and_does_not_touch_what_others_have_put_there() {
    if !has_two_processors() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    let [pipe, left] = ["mete-demo-1-pipe", "mete-demo-1-2"].map(|name| place.at(name));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir_all(left.join("components")).unwrap();
    let touch = Command::new("touch").args(["-d", "1 hour ago"]).args([&pipe, &left]).status().unwrap();
    assert!(touch.success());
    let demo = ["demo", "--no-kernel", "--rounds", "1", "--stretch", "100ms", "--hogs", "0", "--report"];
    let report = place.text("report.html");
    // On a busy machine such a short run may have no results; the test does not ask for them.
    let ended = mete(&[&demo[..], &[&report]].concat()).env("TMPDIR", place.0.path()).output().unwrap();
    assert!(ended.status.code().is_some(), "it waits for a writer");
    assert!(fs::symlink_metadata(&pipe).is_ok() && !left.exists());
}

#[test]
fn new_6_no_trace_is_recorded_through_another_users_link() {
    if !is_root() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    let shared = place.shared();
    fs::create_dir(place.at("victim")).unwrap();
    symlink(place.at("victim"), shared.join("trace")).unwrap();
    lchown(shared.join("trace"), Some(NOBODY), Some(NOBODY)).unwrap();
    for below in ["trace", "trace/below"] {
        let output = shared.join(below);
        let record = ["record", "--schema", "stopwatch", "-o", output.to_str().unwrap(), "--", "true"];
        says(
            &mete(&record).assert().code(1).stdout(""),
            "trace is a link of another user, and is not followed",
        );
    }
    assert!(fs::read_dir(place.at("victim")).unwrap().next().is_none());
}

/// In a folder of that user, where the kernel would follow it.
#[test]
fn folders_of_results_are_not_made_behind_another_users_link() {
    if !is_root() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    fs::create_dir(place.at("theirs")).unwrap();
    fs::create_dir(place.at("victim")).unwrap();
    let link = place.text("theirs/link");
    for target in ["../new", "../victim"] {
        symlink(target, &link).unwrap();
        lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
        let at = |own: &str| place.text(own);
        let record = ["record", "--schema", "stopwatch", "-o"];
        for command in [
            &[&record[..], &[&link, "--", "true"]].concat()[..],
            &[&record[..], &[&link, "--force", "--", "true"]].concat(),
            &[&record[..], &[&at("trace"), "--parameters", &link, "--", "true"]].concat(),
            &["sim", "mix", "--policy", "rr", "--plot", &link],
        ] {
            let said = said_by(&mete(command).assert().code(1).stdout(""));
            // A directory is made where the link is, which fails, if it leads nowhere.
            let is_in_the_way =
                target == "../new" && said.contains("cannot make") && said.contains("File exists");
            let is_named = said.contains("link is a link of another user, and is not followed");
            assert!(is_named || is_in_the_way, "{command:?}: {said}");
        }
        assert!(!place.at("new").exists() && fs::read_dir(place.at("victim")).unwrap().next().is_none());
        fs::remove_file(&link).unwrap();
    }
}

/// The pipe has no reader, so opening it waits.
#[test]
fn one_signal_ends_a_conversion_that_waits_at_a_pipe() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.at("pipe")).status().unwrap().success());
    let mut waits = program(&["convert", &place.text("trace"), "--to", "csv", "-o", &place.text("pipe")]);
    let mut waits = waits.spawn().unwrap();
    let state = || fs::read_to_string(format!("/proc/{}/wchan", waits.id())).unwrap_or_default();
    while !["fifo_open", "wait_for_partner"].contains(&state().as_str()) {
        assert!(Path::new(&format!("/proc/{}/exe", waits.id())).read_link().is_ok(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&waits);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(!waits.wait().unwrap().success());
}

#[test]
fn results_may_go_to_what_stands_for_the_standard_output() {
    let place = Place::new();
    let plain = mete(&["convert", &place.text("trace"), "--to", "csv"]).assert().success();
    for to in ["/dev/stdout", "/proc/self/fd/1"] {
        let piped = place.convert("csv", Path::new(to)).success();
        assert_eq!(piped.get_output().stdout, plain.get_output().stdout);
        let file = fs::File::create(place.at("out")).unwrap();
        let mut command = program(&["convert", &place.text("trace"), "--to", "csv", "-o", to]);
        assert!(command.stdout(file).status().unwrap().success());
        assert_eq!(fs::read(place.at("out")).unwrap(), plain.get_output().stdout, "{to}");
    }
}

#[test]
fn a_pipe_of_another_user_is_refused_in_any_folder_before_the_work() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.at("vtrr-micro")).unwrap();
    for pipe in ["pipe", "vtrr-micro/data.csv"] {
        assert!(Command::new("mkfifo").arg(place.at(pipe)).status().unwrap().success());
        chown(place.at(pipe), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let why = "it is no ordinary file and belongs to another user";
    place.refuses(&place.at("pipe"), why);
    let said = said_by(&mete(&["study", "vtrr-micro", "--out", &place.text("")]).assert().code(1).stdout(""));
    assert!(said.contains(&format!("data.csv: {why}")), "{said}");
}

/// Pipes of the user, by name and of a shell, and devices where root has another number.
#[test]
fn results_may_go_into_pipes_of_the_user_and_devices_of_all() {
    let place = Place::new();
    let plain = mete(&["convert", &place.text("trace"), "--to", "csv"]).assert().success();
    let plain = &plain.get_output().stdout;
    for script in [
        "mkfifo pipe; cat pipe & \"$0\" convert trace --to csv -o pipe; wait",
        "\"$0\" convert trace --to csv -o >(cat >copy) && wait $! && cat copy",
    ] {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_mete")]).current_dir(place.0.path());
        let output = command.output().unwrap();
        assert_eq!(&output.stdout, plain, "{script}: {output:?}");
    }
    // The trace belongs to this user, which has the number 0 there, and all others have none.
    let of_user = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user"]).args(arguments);
        command.status().unwrap().success()
    };
    if is_root() || !of_user(&["true"]) {
        eprintln!("SKIPPED: only a user without rights finds devices of nobody in a namespace of its own");
        return;
    }
    let convert = [env!("CARGO_BIN_EXE_mete"), "convert", &place.text("trace"), "--to", "csv", "-o"];
    assert!(of_user(&[&convert[..], &["/dev/null"]].concat()));
}

const TELL: &str = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; grep CapEff: /proc/self/status";

/// A command that tells as which user it runs, under a sudo that this user has called.
fn under_sudo(place: &Place, caller: &str, options: &[&str]) -> Output {
    let trace = place.text("of-command");
    let record = ["record", "--schema", "stopwatch", "-o", &trace];
    let mut command = program(&[&record[..], options, &["--", "sh", "-c", TELL]].concat());
    let output = command.env("SUDO_UID", caller).env("SUDO_GID", caller).current_dir("/").output().unwrap();
    let _ = fs::remove_dir_all(trace);
    output
}

fn words(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

fn id(arguments: &[&str]) -> Vec<String> {
    words(&Command::new("id").args(arguments).output().unwrap())
}

#[test]
fn under_sudo_a_command_runs_as_the_user_who_called_it_unless_told_otherwise() {
    if !is_root() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    let of = |output: &Output, user: &str| {
        let told = words(output);
        let expected = [id(&["-u", user]), id(&["-g", user]), id(&["-G", user])].concat();
        assert_eq!(told[..expected.len()], expected, "{told:?}");
        told[expected.len()..].to_vec()
    };
    let output = under_sudo(&place, "65534", &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "mete: sh runs as nobody, who called sudo; --user root has it run as root\n");
    let expected = ["/nonexistent", "nobody", "nobody", "CapEff:", "0000000000000000"];
    assert_eq!(of(&output, "nobody")[..5], expected);

    // Nothing is said about a user that was asked for.
    for (caller, options, user) in [
        ("65534", &["--user", "root"][..], "root"),
        ("0", &["--user", "nobody"], "nobody"),
        ("0", &[], "root"),
    ] {
        let output = under_sudo(&place, caller, options);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        of(&output, user);
    }
    // A user of which the system knows only the number.
    let output = under_sudo(&place, "64999", &[]);
    assert_eq!(words(&output)[..6], ["64999", "64999", "64999", "/", "64999", "64999"]);
    // An option with a wrong value is a mistake on the command line; what sudo says is not.
    for (caller, options, status, why) in [
        ("65534", &["--user", "no-such-user"][..], 2, "there is no user \"no-such-user\""),
        ("x", &[], 1, "SUDO_UID=x"),
        // The kernel takes this number as "unchanged", so that the command would be root's.
        ("4294967295", &[], 1, "SUDO_UID=4294967295"),
    ] {
        let output = under_sudo(&place, caller, options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(status) && said.contains(why), "{said}");
    }
}

/// Other users' programs with probes take descriptors, but not the last one.
#[test]
fn a_command_has_its_usual_limit_of_descriptors_and_mete_has_more() {
    let place = Place(tempfile::tempdir().unwrap());
    let mete = env!("CARGO_BIN_EXE_mete");
    let record = format!("{mete} record --schema stopwatch -o {} --", place.text("limited"));
    let command = "ulimit -Sn; sed -n 's/^Max open files *//p' /proc/$PPID/limits";
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("ulimit -Sn 200; {record} sh -c \"$1\""), "sh", command])
        .env_remove("SUDO_UID")
        .output()
        .unwrap();
    let words: Vec<usize> = words(&output).iter().filter_map(|word| word.parse().ok()).collect();
    let (usual, most) = (words[0], words[2]);
    assert_eq!((usual, words[1]), (200, most.min(65_536)), "{output:?}");
}

/// A user with groups of its own, if the system has one, has them all.
#[test]
fn a_command_has_all_groups_of_its_user() {
    if !is_root() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let users = passwd.lines().filter_map(|line| line.split(':').next()).filter(|user| *user != "root");
    let Some(user) = users.max_by_key(|user| id(&["-G", user]).len()) else { return };
    let output = under_sudo(&place, "0", &["--user", user]);
    let groups = id(&["-G", user]);
    assert_eq!(words(&output)[2..2 + groups.len()], groups, "{user}");
}

#[test]
fn only_root_runs_a_command_as_another_user() {
    if !is_root() {
        return;
    }
    let place = Place(tempfile::tempdir().unwrap());
    let copy = place.at("mete");
    copy_program(env!("CARGO_BIN_EXE_mete"), &copy);
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o777)).unwrap();
    let run = |user: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&copy);
        let trace = place.text("trace");
        command.args(["record", "--schema", "stopwatch", "-o", &trace, "--user", user, "--", "id", "-u"]);
        // SUDO_UID is believed only if root runs the command.
        command.env("SUDO_UID", "0").env("SUDO_GID", "0").current_dir("/").output().unwrap()
    };
    let refused = run("root");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1), "{said}");
    assert_eq!(said, "mete: only root can run a command as another user (root)\n");
    let own = run("nobody");
    assert_eq!(words(&own)[0], "65534", "{}", String::from_utf8_lossy(&own.stderr));
}
