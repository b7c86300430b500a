//! Scenario files: hosts, domains, tasks, guests, devices and loads, in TOML (`docs/scenarios.md`).
//!
//! ```text
//!   text ──▶ tables (table.rs: unknown keys refused) ──▶ checked (check.rs) ──▶ Scenario ──▶ Host
//!                      ▲
//!                   --set
//! ```
//!
//! A [`Scenario`] is right as a whole: a text that cannot be run makes no scenario.

mod check;
mod credit;
mod devices;
mod error;
mod names;
mod overrides;
mod ports;
mod shipped;
mod steps;
mod table;
mod value;
mod vcpus;

use std::path::Path;
use std::sync::Arc;

use mete_policy::{
    Bvt, BvtSettings, ClientId, Credit, CreditSettings, DomainIndex, Entry, Nanoseconds, Policy, Setup,
    Share, by_name,
};

use mete_base::unknown_key::UnknownKey;

use crate::host::{Hardware, Host};
use crate::random::Stream;
use crate::recorder::Recorder;
use crate::scene::guest::{Guest, Kernel, KernelCosts};
use crate::scene::{Disk, DriverCosts, Event, Io, Network, Program, Remote, Scene};
use credit::CreditTable;
use error::Fault;
pub use error::ScenarioError;
pub use overrides::Setting;
pub use shipped::{SHIPPED, Shipped};
use table::ScenarioTable;

/// A group of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// The domain that contains it; 0 is the root.
    pub parent: DomainIndex,
    /// Its share of what its parent has.
    pub share: Share,
    /// The longest run that TAVS takes for a short one in this domain; `None`: the policy's own.
    pub io_threshold_ns: Option<Nanoseconds>,
}

impl Domain {
    /// Adds the domain of a guest that names none: a domain of its own, as virtual machines have.
    fn add_own(
        name: &str,
        share: Share,
        io_threshold_ns: Option<Nanoseconds>,
        domains: &mut Vec<Domain>,
    ) -> DomainIndex {
        domains.push(Domain { name: name.to_owned(), parent: DomainIndex::ROOT, share, io_threshold_ns });
        DomainIndex::at(domains.len())
    }
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// The domain that contains it; 0 is the root.
    pub domain: DomainIndex,
    /// Its share.
    pub share: Share,
    /// When it starts.
    pub start_ns: Nanoseconds,
    body: ClientPlan,
}

#[derive(Clone, Debug)]
enum ClientPlan {
    Task(Arc<Program>),
    Guest(GuestPlan),
    /// A virtual processor of the guest whose first client has this number, other than that first one.
    Vcpu {
        of: ClientId,
    },
    Driver(DriverCosts),
}

#[derive(Clone, Debug)]
struct GuestPlan {
    name: String,
    vcpus: u32,
    kernel: Kernel,
    costs: KernelCosts,
    read_depth: usize,
    port_packets: usize,
    tasks: Vec<GuestTask>,
}

/// A task inside a guest.
#[derive(Clone, Debug)]
struct GuestTask {
    name: String,
    nice: i32,
    program: Arc<Program>,
}

/// A change of a share during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    at_ns: Nanoseconds,
    event: Event,
}

/// A host and its load, checked. See the [module](self).
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A description in one line.
    pub about: String,
    /// How long the run is, including the warm-up.
    pub duration_ns: Nanoseconds,
    /// How much of the beginning is not measured.
    pub warm_up_ns: Nanoseconds,
    /// A client that is ready without running for longer than this starves.
    pub starvation_ns: Nanoseconds,
    /// The seed of all random numbers, unless another is asked for.
    pub seed: u64,
    /// The host.
    pub hardware: Hardware,
    /// The policy, unless another is asked for.
    pub policy: &'static Entry,
    /// The policy's quantum.
    pub quantum_ns: Nanoseconds,
    credit: CreditTable,
    bvt: BvtSettings,
    /// The domains from number 1 on; 0 is the root, which is not in the list.
    pub domains: Vec<Domain>,
    /// The clients, by number.
    pub clients: Vec<Client>,
    disks: Vec<Disk>,
    network: Network,
    remotes: Vec<Remote>,
    locks: usize,
    changes: Vec<Change>,
}

impl Scenario {
    /// The scenario in a file, or the shipped scenario of that name, with settings applied in their order.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`]: what is wrong, where, and what is allowed.
    pub fn load(name: &str, settings: &[Setting]) -> Result<Scenario, ScenarioError> {
        if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == name) {
            return Scenario::parse(shipped.name, shipped.text, settings);
        }
        if !Path::new(name).exists() {
            let known = SHIPPED.iter().map(|shipped| shipped.name).collect::<Vec<_>>().join(", ");
            return Err(ScenarioError::Unknown { name: name.into(), known });
        }
        let text = std::fs::read_to_string(name)
            .map_err(|error| ScenarioError::Unreadable { file: name.into(), reason: error.to_string() })?;
        Scenario::parse(name, &text, settings)
    }

    /// The scenario in this text. Errors use `file` as its name.
    ///
    /// # Errors
    ///
    /// As [`Scenario::load`].
    pub fn parse(file: &str, text: &str, settings: &[Setting]) -> Result<Scenario, ScenarioError> {
        // Without the settings first: a mistake in the file is reported with its line.
        let plain = Scenario::read(text).map_err(|fault| fault.in_file(file, text))?;
        overrides::apply(text, settings)?.map_or(Ok(plain), Ok)
    }

    fn read(text: &str) -> Result<Scenario, Fault> {
        let table: ScenarioTable = toml::from_str(text).map_err(|error| unread(text, &error))?;
        check::scenario(table)
    }

    /// What a policy for this scenario has to be made for.
    pub fn setup(&self, seed: u64) -> Setup {
        Setup {
            clients: self.clients.len() as u32,
            domains: self.domains.len() as u16 + 1,
            processors: self.hardware.processors,
            quantum_ns: self.quantum_ns,
            seed,
        }
    }

    /// A policy by its name, made for this scenario; `None` if no policy has that name.
    pub fn policy(&self, name: &str, seed: u64) -> Option<Box<dyn Policy + Send>> {
        by_name(name).map(|entry| self.make(entry, seed))
    }

    /// A policy of the catalog, made for this scenario with the scenario's settings of that policy.
    pub fn make(&self, policy: &Entry, seed: u64) -> Box<dyn Policy + Send> {
        let setup = self.setup(seed);
        match policy.name {
            "credit" => Box::new(self.credit(&setup, CreditSettings::XEN)),
            "credit-tavs" => Box::new(self.credit(&setup, CreditSettings::TAVS)),
            "bvt" => Box::new(Bvt::new(&setup, self.bvt)),
            _ => (policy.make)(&setup),
        }
    }

    /// The credit scheduler, with the scenario's settings over `base`.
    pub fn credit(&self, setup: &Setup, base: CreditSettings) -> Credit {
        // They were tried over every base when the scenario was checked.
        let mut policy = Credit::new(setup, self.credit.settings(base).unwrap_or(base));
        for (index, domain) in self.domains.iter().enumerate() {
            if let Some(threshold_ns) = domain.io_threshold_ns {
                policy.set_io_threshold(DomainIndex::at(index + 1), threshold_ns);
            }
        }
        policy
    }

    /// The scenario's host under a policy, at time 0.
    pub fn host<P: Policy, R: Recorder>(&self, mut policy: P, recorder: R, seed: u64) -> Host<P, Scene, R> {
        for (index, domain) in self.domains.iter().enumerate() {
            policy.add_domain(DomainIndex::at(index + 1), domain.parent, domain.share);
        }
        // The policy knows all domains now, so that clients can be added to them.
        let mut host = Host::new(self.hardware, policy, self.scene(seed), recorder);
        for (number, client) in self.clients.iter().enumerate() {
            host.add(ClientId::at(number), client.domain, client.share, client.start_ns);
        }
        host.prepare(|scene, context| {
            scene.start(context);
            for change in &self.changes {
                context.after(change.at_ns, change.event);
            }
        });
        host
    }

    fn scene(&self, seed: u64) -> Scene {
        let mut io = Io::new(self.disks.clone(), self.network, seed);
        for &remote in &self.remotes {
            io.add_remote(remote);
        }
        let mut scene = Scene::new(io, self.locks);
        for client in &self.clients {
            match &client.body {
                ClientPlan::Task(program) => {
                    scene.add_task(Arc::clone(program), Stream::new(seed, &client.name));
                }
                ClientPlan::Guest(plan) => {
                    scene.add_guest(plan.guest(seed));
                }
                // They come with their guest.
                ClientPlan::Vcpu { .. } => {}
                ClientPlan::Driver(costs) => {
                    scene.add_driver(*costs);
                }
            }
        }
        scene
    }

    /// The names of the tasks inside a client, or inside the guest whose virtual processor it is. There are
    /// none if the client is a task itself.
    pub fn guest_tasks(&self, client: ClientId) -> impl Iterator<Item = &str> {
        let tasks = self.plan(client).map_or(&[][..], |plan| plan.tasks.as_slice());
        tasks.iter().map(|task| task.name.as_str())
    }

    /// The name of a client. A guest's virtual processors have the guest's name.
    pub fn called(&self, client: ClientId) -> Option<&str> {
        let own = self.clients.get(client.index()).map(|client| client.name.as_str());
        self.plan(client).map(|plan| plan.name.as_str()).or(own)
    }

    fn plan(&self, client: ClientId) -> Option<&GuestPlan> {
        match &self.clients.get(client.index())?.body {
            ClientPlan::Guest(plan) => Some(plan),
            ClientPlan::Vcpu { of } => self.plan(*of),
            ClientPlan::Task(_) | ClientPlan::Driver(_) => None,
        }
    }
}

impl GuestPlan {
    fn guest(&self, seed: u64) -> Guest {
        let mut guest = Guest::new(self.vcpus as usize, self.kernel.clone(), self.costs);
        guest.set_read_depth(self.read_depth);
        guest.set_port_packets(self.port_packets);
        for task in &self.tasks {
            let stream = Stream::new(seed, &format!("{}/{}", self.name, task.name));
            guest.add_task(Arc::clone(&task.program), task.nice, stream);
        }
        guest
    }
}

/// The TOML reader's error, with the line that it is about: that line names the key.
fn unread(text: &str, error: &toml::de::Error) -> Fault {
    let span = error.span().unwrap_or(0..0);
    let line = text.get(span.start..).and_then(|rest| {
        let begin = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let length = rest.find('\n').unwrap_or(rest.len());
        text.get(begin..span.start + length)
    });
    let quoted = line.map(str::trim).filter(|line| !line.is_empty());
    let message = in_words(key_before(text, span.start), error.message());
    let what = quoted.map_or(message.clone(), |line| format!("`{line}`: {message}"));
    Fault { unknown: UnknownKey::in_message(error.message()), ..Fault::new(span, what) }
}

/// The key whose value begins at this place.
fn key_before(text: &str, value: usize) -> &str {
    let before = text.get(..value).unwrap_or("").trim_end();
    let key = before.strip_suffix('=').unwrap_or("").trim_end();
    key.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or("")
}

/// Keys whose range is smaller than their type's.
const RANGES: [(&str, &str); 2] =
    [("share", "a whole number, 1 to 1048576"), ("processors", "a whole number, 1 to 4096")];

/// Rust's names of the keys' types, and what a person may write for them.
const TYPES: [(&str, &str); 10] = [
    ("u8", "a whole number, 0 to 255"),
    ("u16", "a whole number, 0 to 65535"),
    ("u32", "a whole number, 0 to 4294967295"),
    ("u64", "a whole number, 0 to 9223372036854775807"),
    ("usize", "a whole number, 0 to 9223372036854775807"),
    ("i16", "a whole number, -32768 to 32767"),
    ("i32", "a whole number, -2147483648 to 2147483647"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "a list: [ … ]"),
];

/// The reader's message with ranges in the place of type names.
fn in_words(key: &str, message: &str) -> String {
    let message =
        message.replace(" as i128", "").replace(" as u128", "").replace("unknown variant", "there is no");
    let Some((before, expected)) = message.rsplit_once("expected ") else { return message };
    let (name, rest) = expected.split_once('\n').unwrap_or((expected, ""));
    let range = RANGES.iter().find(|(known, _)| *known == key);
    match TYPES.iter().find(|(known, _)| *known == name) {
        Some(of_type) => format!("{before}expected {}{rest}", range.unwrap_or(of_type).1),
        None => message,
    }
}
