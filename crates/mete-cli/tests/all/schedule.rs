//! `mete schedule` on real processes: it moves them, and puts them back in whichever way it ends.

use std::io::{BufReader, Lines};
use std::os::unix::net::UnixDatagram;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::common::{
    self, Group, Running, has_two_processors, kernel_is_there, mask, mete, objects, printed_by, program,
    said_by, says, set_mask, stdout, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;

/// A client on processor 0, with a driver on processor 1 that it talks to all the time.
struct DemoProcesses {
    client: Running,
    driver: Running,
}

impl DemoProcesses {
    fn open() -> Option<DemoProcesses> {
        if !kernel_is_there() {
            return None;
        }
        if !has_two_processors() {
            return None;
        }
        let (client, driver) = common::ping_pong();
        set_mask(driver.pid(), &[1]);
        set_mask(client.pid(), &[0]);
        Some(DemoProcesses { client, driver })
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let (driver, client) = (self.driver.pid(), self.client.pid());
        let who = format!("schedule --json --driver driver=pid:{driver} --client client=pid:{client}");
        // Other load on the machine must not keep the client from moving.
        let settings = "--cap 100000 --max-imbalance 100000 --confirm 1 --dwell 0 --margin 0";
        who.split(' ').chain(settings.split(' ')).chain(more.iter().copied()).map(str::to_owned).collect()
    }

    fn schedule(&self, more: &[&str]) -> (Running, Decisions) {
        let arguments = self.arguments(more);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut scheduler = Running::start(program(&arguments).stdout(Stdio::piped()));
        let lines = scheduler.lines();
        (scheduler, Decisions(lines))
    }

    /// Waits until the client was moved beside its driver. Its own mask forbids that at first; then it
    /// may run on both processors, and may come to the driver by itself.
    fn wait_for_move(&self, decisions: &mut Decisions) {
        let begin = Instant::now();
        decisions.wait_for("not moved");
        while mask(self.client.pid()) != [1] {
            assert!(begin.elapsed() < common::PATIENCE, "the client is never moved");
            set_mask(self.client.pid(), &[0, 1]);
            let try_until = Instant::now() + Duration::from_secs(1);
            while mask(self.client.pid()) != [1] && Instant::now() < try_until {
                std::thread::sleep(Duration::from_millis(5));
            }
            if mask(self.client.pid()) == [0, 1] {
                set_mask(self.client.pid(), &[0]);
                decisions.wait_for("not moved");
            }
        }
    }

    fn is_as_it_was(&self) -> bool {
        mask(self.client.pid()) == [0, 1]
    }
}

struct Decisions(Lines<BufReader<ChildStdout>>);

impl Decisions {
    fn wait_for(&mut self, what: &str) -> Value {
        let mut decisions =
            self.0.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let found = decisions.find(|decision| decision["what"] == what);
        let found = found.unwrap_or_else(|| panic!("no client was {what}"));
        common::assert_described(std::slice::from_ref(&found));
        found
    }
}

#[test]
fn log_16_a_client_moves_to_its_driver_and_back_when_the_scheduler_is_killed() {
    let Some(stage) = DemoProcesses::open() else { return };
    let (mut scheduler, mut decisions) = stage.schedule(&["--for", "10m"]);
    stage.wait_for_move(&mut decisions);
    scheduler.signal(Signal::KILL);
    scheduler.wait();
    wait_until("the client's mask is as it was", || stage.is_as_it_was());
}

#[test]
fn log_16_ctrl_c_ends_with_a_summary_and_puts_masks_back() {
    let Some(stage) = DemoProcesses::open() else { return };
    let (mut scheduler, mut decisions) = stage.schedule(&["--for", "10m"]);
    stage.wait_for_move(&mut decisions);
    let links = common::bpf_links(scheduler.pid());
    scheduler.signal(Signal::INT);
    let rest: Vec<Value> = decisions.0.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(scheduler.wait().code() == Some(130) && stage.is_as_it_was());
    let restored =
        rest.iter().find(|object| object["kind"] == "restored").expect("a word on what was put back");
    assert!(restored["restored"].as_u64() >= Some(1) && restored["failed"] == 0, "{restored}");
    assert!(rest.iter().any(|object| object["kind"] == "completeness"));
    common::assert_described(&rest);
    wait_until("the kernel has let go of all links", || {
        !links.iter().any(|&link| common::bpf_link_exists(link))
    });
}

#[test]
fn a_closed_pipe_ends_the_scheduler_and_puts_masks_back() {
    let Some(stage) = DemoProcesses::open() else { return };
    let (mut scheduler, mut decisions) = stage.schedule(&["--for", "5s"]);
    stage.wait_for_move(&mut decisions);
    drop(decisions);
    assert_eq!(scheduler.wait().code(), Some(141), "as SIGPIPE would");
    assert!(stage.is_as_it_was());
}

#[test]
fn a_dry_run_decides_and_moves_no_client() {
    let Some(stage) = DemoProcesses::open() else { return };
    let (mut scheduler, mut decisions) = stage.schedule(&["--for", "10m", "--dry-run"]);
    let decision = decisions.wait_for("would move");
    assert_eq!(
        (&decision["client"], &decision["driver"], &decision["to"]),
        (&"client".into(), &"driver".into(), &1.into())
    );
    assert_eq!(mask(stage.client.pid()), [0]);
    scheduler.signal(Signal::INT);
    assert_eq!(scheduler.wait().code(), Some(130));
}

/// Two processes that never deal with each other.
#[test]
fn log_16_that_nothing_could_be_decided_is_said() {
    if !kernel_is_there() || !has_two_processors() {
        return;
    }
    let (driver, client) = (Running::idle(), Running::idle());
    let [driver, client] = [("driver", &driver), ("client", &client)]
        .map(|(name, running)| format!("{name}=pid:{}", running.pid()));
    let arguments = ["schedule", "--for", "300ms", "--driver", &driver, "--client", &client];
    let assert = mete(&arguments).assert().success();
    let text = printed_by(&assert);
    let sentences: Vec<_> = text.lines().filter(|line| line.starts_with("no transactions between")).collect();
    assert!(sentences.len() == 1 && sentences[0].contains("network namespaces"), "{text}");
}

#[test]
fn on_one_processor_there_is_nothing_to_choose_between() {
    let own = std::process::id().to_string();
    let assert = assert_cmd::Command::new("taskset")
        .args(["-c", "0", env!("CARGO_BIN_EXE_mete"), "schedule", "--for", "1s", "--client", "y=pid:1"])
        .args(["--driver".to_owned(), format!("x=pid:{own}")])
        .assert();
    let said = said_by(&assert);
    assert!(assert.get_output().status.code() == Some(1) && said.contains("only one processor"), "{said}");
    mete(&["doctor"]).assert().success();
}

#[test]
fn log_6_a_driver_that_does_not_run_yet_is_waited_for() {
    if !kernel_is_there() || !has_two_processors() {
        return;
    }
    let idle = Running::idle();
    let client = format!("here=pid:{}", idle.pid());
    let arguments =
        ["schedule", "--for", "500ms", "--driver", "later=comm:no-such-name", "--client", &client];
    let assert = mete(&arguments).assert().success();
    says(&assert, "\"later\" is empty so far");
}

#[test]
fn vtrr_7_what_was_given_and_what_was_put_back_is_reported_in_objects() {
    let (Some(one), Some(other)) = (Group::with_weight("given"), Group::with_weight("other")) else { return };
    let [first, second] = [(&one, 3), (&other, 1)].map(|(group, share)| {
        let name = group.0.file_name().unwrap().to_str().unwrap();
        format!("{}=cgroup:{},share={share}", &name[..7], group.0.display())
    });
    let vtrr = ["schedule", "--policy", "vtrr", "--json", "--by", "cgroup", "--for", "100ms"];
    let text =
        stdout(&[&vtrr[..], &["--domain", &format!("a{first}"), "--domain", &format!("b{second}")]].concat());
    let objects = objects(&text);
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["share", "share", "scheduler", "restored"], "{text}");
    assert_eq!([&objects[0]["wanted_percent"], &objects[1]["wanted_percent"]], [75.0, 25.0]);
    assert_eq!((&objects[2]["by"], &objects[2]["because"]), (&"cgroup".into(), &Value::Null));
    assert_eq!(
        (&objects[3]["what"], &objects[3]["restored"]),
        (&"weights of control groups".into(), &2.into())
    );
}

/// A scheduler whose shares are files.
struct Dealing {
    place: tempfile::TempDir,
    process: Running,
}

impl Dealing {
    /// Gives these groups a share of 3 and of 1, as a file says it; `None` where it cannot be.
    fn start(groups: [&Group; 2]) -> Option<Dealing> {
        if !common::fuse_is_there() {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let config = place.path().join("shares.toml");
        let [web, batch] = groups.map(|group| group.0.display());
        let text = format!(
            "by = 'cgroup'\nparameters = '{}'\n\
             [[domain]]\nname = 'web'\nselectors = ['cgroup:{web}']\nshare = 3\n\
             [[domain]]\nname = 'batch'\nselectors = ['cgroup:{batch}']\n",
            place.path().join("tree").display()
        );
        std::fs::write(&config, text).unwrap();
        // As a service manager would listen.
        let manager = UnixDatagram::bind(place.path().join("notify")).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut command = program(&["schedule", "--json", "--config", config.to_str().unwrap()]);
        command.env("NOTIFY_SOCKET", place.path().join("notify"));
        let process = Running::start(command.stdout(Stdio::null()));
        let mut heard = [0; 1000];
        let length = manager.recv(&mut heard).unwrap();
        let heard = String::from_utf8_lossy(&heard[..length]);
        assert!(heard.starts_with("READY=1\nSTATUS=the kernel's own scheduler deals out"), "{heard}");
        let dealing = Dealing { place, process };
        wait_until("its parameters are there", || dealing.file("status").exists());
        Some(dealing)
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join("tree").join(name)
    }

    /// The command, about this scheduler.
    fn asks(&self, arguments: &[&str]) -> assert_cmd::Command {
        let of = format!("--scheduler={}", self.process.pid());
        mete(&[&arguments[..1], &[of.as_str()], &arguments[1..]].concat())
    }
}

#[test]
fn vtrr_7_shares_from_a_file_are_shown_and_set_while_they_are_dealt() {
    let (Some(web), Some(batch)) = (Group::with_weight("web"), Group::with_weight("batch")) else { return };
    let Some(mut dealing) = Dealing::start([&web, &batch]) else { return };
    assert_eq!([web.weight(), batch.weight()], [300, 100]);
    let settings = printed_by(&dealing.asks(&["get"]).assert().success());
    assert_eq!(settings, "shares/web=3\nshares/batch=1\n");
    dealing.asks(&["set", "shares/batch=2"]).assert().success();
    std::fs::write(dealing.file("shares/web"), "0.5").unwrap();
    assert_eq!([web.weight(), batch.weight()], [50, 200]);
    for (wrong, why) in
        [("shares/web=0", "no share"), ("shares/wbe=1", "shares/web"), ("status=1", "read only")]
    {
        let said = said_by(&dealing.asks(&["set", wrong]).assert().code(1));
        assert!(said.contains(why), "{said}");
    }
    assert_eq!([web.weight(), batch.weight()], [50, 200]);
    let status = stdout(&["status"]);
    for line in ["policy: kernel by cgroup", "domain web: share 0.5, 20.00 % wanted", "refused: shares/web=0"]
    {
        assert!(status.contains(line), "{status}");
    }
    // Other tests' recorders may be among them.
    let objects = objects(&stdout(&["status", "--json"]));
    let pid = u64::from(dealing.process.pid());
    common::assert_described(&objects);
    let own = objects.iter().skip_while(|object| object["pid"] != pid);
    let shares: Vec<_> = own.filter(|object| object["kind"] == "share").collect();
    assert_eq!([&shares[0]["domain"], &shares[1]["domain"]], ["web", "batch"]);
    dealing.process.signal(Signal::INT);
    dealing.process.wait();
    assert_eq!([web.weight(), batch.weight()], [100, 100]);
    assert!(!dealing.file("").exists());
}

/// What a group of either version may have in a tenth of a second, in microseconds; `None`: there is no limit.
fn limit(group: &Group) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(group.0.join(name)).ok();
    let text = read("cpu.max").or_else(|| read("cpu.cfs_quota_us")).unwrap();
    text.split_whitespace().next().unwrap().parse().ok()
}

#[test]
fn vtrr_7_a_limit_is_set_beside_a_share_and_while_it_is_kept() {
    if !common::fuse_is_there() {
        return;
    }
    let Some(group) = Group::with_weight("limited") else { return };
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    let domain = format!("web=cgroup:{},limit=0.5,share=3", group.0.display());
    let mut command =
        program(&["schedule", "--policy", "vtrr", "--json", "--domain", &domain, "--parameters"]);
    let mut process = Running::start(command.arg(&tree).stdout(Stdio::null()));
    let file = tree.join("limits/web");
    wait_until("its parameters are there", || file.exists());
    assert_eq!((group.weight(), limit(&group)), (300, Some(50_000)));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "0.5\n");
    std::fs::write(&file, "1.25").unwrap();
    assert_eq!((group.weight(), limit(&group)), (300, Some(125_000)));
    assert_eq!(std::fs::write(&file, "0").unwrap_err().raw_os_error(), Some(libc::EINVAL));
    let status = std::fs::read_to_string(tree.join("status")).unwrap();
    for line in ["domain web: share 3, at most 1.25 processors", "is no limit", "because: limits are kept"] {
        assert!(status.contains(line), "{status}");
    }
    process.signal(Signal::INT);
    process.wait();
    assert_eq!((group.weight(), limit(&group).filter(|limit| *limit > 0)), (100, None));
}

/// The file is read when the machine starts, and its services may start later.
#[test]
fn vtrr_7_a_group_in_a_file_that_is_not_there_yet_has_its_share_when_it_is() {
    let (Some(web), Some(batch)) = (Group::with_weight("soon"), Group::with_weight("later")) else { return };
    std::fs::remove_dir(&batch.0).unwrap();
    let Some(mut dealing) = Dealing::start([&web, &batch]) else { return };
    assert_eq!(web.weight(), 300);
    dealing.asks(&["set", "shares/batch=2"]).assert().success();
    std::fs::create_dir(&batch.0).unwrap();
    wait_until("it has its share", || batch.weight() == 200);
    dealing.process.signal(Signal::INT);
    dealing.process.wait();
    assert_eq!([web.weight(), batch.weight()], [100, 100]);
    // On the command line it is mistyped, as a rule.
    std::fs::remove_dir(&batch.0).unwrap();
    let domain = format!("batch=cgroup:{}", batch.0.display());
    let refused = mete(&["schedule", "--policy", "vtrr", "--by", "cgroup", "--domain", &domain]).assert();
    says(&refused.code(2), "there is no control group");
}

#[test]
fn log_16_that_nothing_is_noted_for_the_next_start_is_said_before_anything_is_moved() {
    let Some(stage) = DemoProcesses::open() else { return };
    let arguments = stage.arguments(&["--for", "200ms"]);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut nowhere = program(&arguments);
    let output = nowhere.env("METE_RUNTIME_DIR", "/proc/nothing-is-made-here").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("changes cannot be noted in a file ("), "{said}");
    let output = program(&arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("cannot be noted"), "{said}");
}

#[test]
fn log_16_an_end_that_is_asked_for_during_the_start_leaves_nothing() {
    let Some(stage) = DemoProcesses::open() else { return };
    let place = tempfile::tempdir().unwrap();
    let arguments = stage.arguments(&["--for", "10m"]);
    for milliseconds in [1, 30, 100, 200, 300, 500, 800] {
        let mut command = program(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("METE_RUNTIME_DIR", place.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut scheduler = Running::start(&mut command);
        std::thread::sleep(Duration::from_millis(milliseconds));
        scheduler.signal(Signal::INT);
        let status = scheduler.wait();
        // While it starts, a signal has its usual effect.
        let is_usual = std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGINT);
        assert!(is_usual || status.code() == Some(130), "{milliseconds} ms: {status}");
        let names = || std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let is_journal = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".masks");
        wait_until("the keepers have ended", || !names().any(|name| is_journal(&name)));
    }
}
