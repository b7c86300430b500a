//! By what means shares of processor time can be dealt out here, beside sched_ext.

use std::fs;
use std::path::{Path, PathBuf};

use mete_kernel::{Capability, Need, check_capabilities, check_pid_namespace};
use mete_sched::domains::controller_mount;
use rustix::fs::{Access, access};
use rustix::io::Errno;

/// The controller of processor time.
const CPU: &str = "cpu";

pub fn capabilities() -> Vec<Capability> {
    vec![weights(), dispatcher(), pauses()]
}

fn weights() -> Capability {
    let (finding, remedy) = groups();
    Capability {
        name: "weights of groups",
        finding,
        needed_for: Need::For("mete schedule --by cgroup: shares of control groups"),
        remedy,
    }
}

/// Whether groups can be given weights; if not, why, and what helps.
fn groups() -> (Result<String, String>, &'static str) {
    let Some(mount) = mount() else {
        let absent = "there is no control group with processor time: the controller cpu is not mounted";
        return (Err(absent.into()), "mount control groups: mount -t cgroup2 none /sys/fs/cgroup");
    };
    let mount_point = mount.display();
    match access(&mount, Access::WRITE_OK) {
        Ok(()) => (Ok(format!("groups below {mount_point} may be given weights and limits")), ""),
        Err(Errno::ROFS) => (
            Err(format!("{mount_point} is mounted read-only")),
            "run outside the container, or start it with control groups that can be written",
        ),
        Err(_) => (
            Err(format!(
                "{mount_point} is another user's: only groups that were delegated to this one may be given weights"
            )),
            "run as root, or have the group delegated (systemd: Delegate=yes)",
        ),
    }
}

/// Where control groups have processor time: in version 1, or else in version 2.
fn mount() -> Option<PathBuf> {
    let has_it = |mount: &PathBuf| {
        let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
        controllers.split_whitespace().any(|controller| controller == CPU)
    };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = mounts.lines().map(|line| line.split(' ').skip(1));
    let second = fields.filter_map(|mut fields| Some((fields.next()?, fields.next()?)));
    let mut second = second.filter(|(_, kind)| *kind == "cgroup2").map(|(path, _)| PathBuf::from(path));
    controller_mount(CPU).or_else(|| second.find(has_it))
}

fn dispatcher() -> Capability {
    Capability {
        name: "dispatcher",
        finding: match check_capabilities().and_then(|()| check_pid_namespace()) {
            Ok(()) => Ok(format!("threads may be put in front{}", bounds().unwrap_or_default())),
            Err(error) => Err(error.to_string()),
        },
        needed_for: Need::For("mete schedule --by dispatcher: shares of any processes, and low latency"),
        remedy: "run as root and outside of containers (docker run --pid=host), on Linux 5.18 or later with type information",
    }
}

/// Where the kernel bounds the real time of groups, those bounds would be the shares.
fn bounds() -> Option<String> {
    let mount = controller_mount(CPU).filter(|mount| mount.join("cpu.rt_runtime_us").exists())?;
    let group = fs::read_dir(&mount).ok()?.flatten().find(|entry| entry.path().is_dir());
    let of = |path: &Path| fs::read_to_string(path.join("cpu.rt_runtime_us")).unwrap_or_default();
    let example = group.map_or(String::new(), |group| {
        format!(", {} has {}", group.file_name().display(), of(&group.path()).trim())
    });
    Some(format!(
        "; control groups have bounds of real time (cpu.rt_runtime_us: the topmost one has {}{example}), and those below \
         nine tenths are refused",
        of(&mount).trim()
    ))
}

fn pauses() -> Capability {
    Capability {
        name: "pauses",
        finding: Ok(
            "processes of this user may be paused and continued; jobs of a shell are left alone".into()
        ),
        needed_for: Need::For("mete schedule --by pauses: shares of this user's processes, without rights"),
        remedy: "",
    }
}
