//! A dealer's shares as files (KLogger §4.3: parameters that can be set while a program runs), and how it is.
//!
//! ```text
//!   shares/web    the share of the domain web: read, or set
//!   limits/web    what it may have at most, in processors, if it has a limit: read, or set
//!   policy        the policy that rules: read, and set where another one can take over
//!   quantum_ms    how long a task runs at a time: read and set, by sched_ext
//!   status        what each domain was to have and has, what was done, in words
//!   report        the same in objects, a line each, as mete schedule --json prints them at its end
//! ```

use std::fmt::Write;
use std::path::Path;

use mete_parameters::client::{REFUSED, STATUS};
use mete_parameters::{Access, Asker, File, MountError, Mounted, Refusal, Request, keeper, refuse_hiding};
use mete_probe::directory;
use serde::Serialize;

use crate::{Dealer, Did, Given};

/// The folder of the domains' shares.
const SHARES: &str = "shares/";
/// And of the limits of those that have one.
const LIMITS: &str = "limits/";
/// The file with the policy.
const POLICY: &str = "policy";
/// The file with the quantum.
const QUANTUM_FILE: &str = "quantum_ms";
/// What stands there where the kernel's own scheduler decides.
const KERNELS: &str = "kernel";
/// The file with objects.
pub const REPORT: &str = "report";

/// Mounts a dealer's parameters.
///
/// # Errors
///
/// [`MountError`]
pub fn mount(at: &Path, dealer: &Dealer, asker: Asker) -> Result<Mounted, MountError> {
    refuse_hiding(at, &directory::all())?;
    let notes = directory::own();
    // Without that directory nothing is noted; the parameters work all the same.
    let notes = directory::prepare(&notes).is_ok().then_some(notes);
    let shares = dealer.domains().iter().map(|domain| format!("{SHARES}{}", domain.spec.name));
    let limited = dealer.domains().iter().filter(|domain| domain.limit.is_some());
    let limits = limited.map(|domain| format!("{LIMITS}{}", domain.spec.name));
    let files = shares.chain(limits).map(|path| File::new(path, Access::Both));
    let policy = if dealer.can_replace_policy() { Access::Both } else { Access::Read };
    let quantum = dealer.quantum_ms().map(|_| File::new(QUANTUM_FILE, Access::Both));
    let files = files.chain([File::new(POLICY, policy)]).chain(quantum);
    let reports = [STATUS, REPORT].map(|path| File::new(path, Access::Read));
    Mounted::new(notes.as_deref(), at, files.chain(reports).collect(), asker, keeper::this_program)
}

/// Answers requests of the files.
#[derive(Debug, Default)]
pub struct ShareParameters {
    /// What was refused last, and why.
    refused: Option<String>,
}

impl ShareParameters {
    /// Answers a request.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which becomes the error of the system call on the file.
    pub fn answer(&mut self, dealer: &mut Dealer, request: &Request) -> Result<String, Refusal> {
        if let Some(domain) = request.path.strip_prefix(LIMITS) {
            return self.answer_limit(dealer, domain, request);
        }
        let domain = request.path.strip_prefix(SHARES);
        match (domain, &request.value, request.path.as_str()) {
            (Some(domain), Some(share), _) => {
                let set = dealer.set_share(domain, share).map(|()| String::new());
                set.map_err(|error| self.refuse(&request.path, share, error.to_string()))
            }
            (Some(domain), None, _) => share_of(dealer, domain),
            (None, Some(name), POLICY) => {
                let set = dealer.set_policy(name).map(|()| String::new());
                set.map_err(|error| self.refuse(POLICY, name, error.to_string()))
            }
            (None, Some(milliseconds), QUANTUM_FILE) => {
                let set = dealer.set_quantum_ms(milliseconds).map(|()| String::new());
                set.map_err(|error| self.refuse(QUANTUM_FILE, milliseconds, error.to_string()))
            }
            (None, None, QUANTUM_FILE) => {
                Ok(dealer.quantum_ms().map_or_else(String::new, |quantum| format!("{quantum}\n")))
            }
            (None, None, POLICY) => Ok(format!("{}\n", dealer.did().policy.unwrap_or(KERNELS))),
            (None, None, STATUS) => Ok(self.status(dealer)),
            (None, None, REPORT) => Ok(report(dealer)),
            _ => Err(Refusal::value("there is no such file")),
        }
    }

    fn answer_limit(
        &mut self,
        dealer: &mut Dealer,
        domain: &str,
        request: &Request,
    ) -> Result<String, Refusal> {
        match &request.value {
            Some(processors) => {
                let set = dealer.set_limit(domain, processors).map(|()| String::new());
                set.map_err(|error| self.refuse(&request.path, processors, error.to_string()))
            }
            None => {
                let found = dealer.domains().iter().find(|known| known.spec.name == domain);
                let limit = found.and_then(|domain| domain.limit);
                let limit = limit.ok_or_else(|| Refusal::value("there is no such domain with a limit"))?;
                Ok(format!("{}\n", limit.processors()))
            }
        }
    }

    fn refuse(&mut self, path: &str, value: &str, why: String) -> Refusal {
        self.refused = Some(format!("{path}={value}: {why}"));
        Refusal::value(why)
    }

    fn status(&self, dealer: &Dealer) -> String {
        let did = dealer.did();
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{name}: {value}");
        };
        line("pid", &std::process::id().to_string());
        line("policy", &format!("{} by {}", did.policy.unwrap_or(KERNELS), did.by));
        did.next.iter().for_each(|policy| line("next", policy));
        did.because.iter().for_each(|why| line("because", why));
        for (domain, given) in dealer.domains().iter().zip(dealer.given()) {
            line(&format!("domain {}", domain.spec.name), &in_words(&given));
        }
        line(
            "since",
            &format!("{:.1} s ago the last change was made", dealer.passed_since_change().as_secs_f64()),
        );
        counted(&did).into_iter().for_each(|(name, value)| line(name, &value));
        did.failed.iter().for_each(|why| line("failed", why));
        did.restarts
            .iter()
            .filter(|number| **number > 0)
            .for_each(|number| line("restarts", &number.to_string()));
        did.ended.iter().for_each(|why| line("ended", why));
        self.refused.iter().for_each(|refused| {
            let _ = writeln!(text, "{REFUSED}{refused}");
        });
        text
    }
}

fn share_of(dealer: &Dealer, domain: &str) -> Result<String, Refusal> {
    let given = dealer.given().into_iter().find(|given| given.domain == domain);
    let given = given.ok_or_else(|| Refusal::value("there is no such domain"))?;
    Ok(format!("{}\n", given.share))
}

fn in_words(given: &Given) -> String {
    let Given { share, limit, wanted_percent, given_percent, ran_ns, .. } = given;
    let given = match (given_percent, ran_ns) {
        (Some(percent), Some(ran)) => format!("{percent:.2} % given, ran {:.3} s", *ran as f64 / 1e9),
        (_, Some(_)) => "none ran yet".into(),
        (_, None) => {
            "what it ran is not known: the group is gone, or the kernel does not account for it".into()
        }
    };
    let limit = limit.map_or_else(String::new, |limit| format!(", at most {limit} processors"));
    format!("share {share}{limit}, {wanted_percent:.2} % wanted, {given}")
}

/// What was counted, as far as the means counts it.
fn counted(did: &Did) -> Vec<(&'static str, String)> {
    let per_second = |number: u64| format!("{number}, {:.0} a second", number as f64 / did.rules_s.max(1e-3));
    let milliseconds = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
    let all = [
        ("decisions", did.decisions.map(per_second)),
        ("taken from other processors", did.stolen.map(per_second)),
        ("chosen when they had just left", did.missed.map(per_second)),
        ("gave way at once", did.preempted.map(per_second)),
        ("pauses", did.pauses.map(per_second)),
        ("continued by others", did.continued.filter(|number| *number > 0).map(|number| number.to_string())),
        ("hastened", did.hastened.map(|number| number.to_string())),
        ("too late", did.late.map(per_second)),
        ("without a decision", did.undecided.map(per_second)),
        (
            "lost from sight and found again",
            did.found.filter(|number| *number > 0).map(|number| number.to_string()),
        ),
        ("left out", did.left_out.filter(|number| *number > 0).map(|number| number.to_string())),
        ("latest end of a slice", did.late_ns.map(milliseconds)),
        ("own time", Some(format!("{:.2} %", did.process_ns as f64 / 1e7 / did.rules_s.max(1e-3)))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The objects that are printed at the end, a line each.
fn report(dealer: &Dealer) -> String {
    let mut lines: Vec<_> = dealer.given().iter().map(object).collect();
    lines.push(object(&dealer.did()));
    lines.join("\n") + "\n"
}

fn object(object: &impl Serialize) -> String {
    // Neither has a key that is no text, so this cannot fail.
    serde_json::to_string(object).unwrap_or_default()
}
