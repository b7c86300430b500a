//! The parameters of a recording as files (KLogger §4.3, §4.4).

use std::fmt::{Display, Write};
use std::path::Path;

use mete_base::{sentence, size};
use mete_kernel::record::size_log2;
use mete_parameters::{Access, Asker, File, Mounted, Refusal, Request, keeper, refuse_hiding};
use mete_probe::directory;
use mete_trace::Report;

use crate::error::RecordingError;
use crate::session::Session;
use crate::switches::Switches;

const ENABLE: &str = "enable";
const LOW_WATER: &str = "lowwater";
const BUFFER_SIZE: &str = "buffer_size";
const DUMP: &str = "dump";
const STATUS: &str = "status";
const ITERATIONS: &str = "benchmark_iterations";
/// The directory of the events' benchmarks.
const BENCHMARKS: &str = "benchmarks/";
/// KLogger's own default (§4.4).
const DEFAULT_ITERATIONS: u32 = 1000;
/// A bound, because a recorder answers nothing else meanwhile.
const MOST_ITERATIONS: u32 = 10_000_000;

/// The files that do not belong to an event.
const OWN: [(&str, Access); 6] = [
    (ENABLE, Access::Both),
    (BUFFER_SIZE, Access::Both),
    (LOW_WATER, Access::Both),
    (ITERATIONS, Access::Both),
    (DUMP, Access::Write),
    (STATUS, Access::Read),
];

/// Mounts the parameters of a recording.
///
/// # Errors
///
/// [`RecordingError::EventIsParameter`], [`RecordingError::Mount`]
pub fn mount(at: &Path, session: &Session, asker: Asker) -> Result<Mounted, RecordingError> {
    refuse_hiding(at, &directory::all())?;
    let notes = directory::own();
    // Without that directory nothing is noted; the parameters work all the same.
    let notes = directory::prepare(&notes).is_ok().then_some(notes);
    Ok(Mounted::new(notes.as_deref(), at, files(session)?, asker, keeper::this_program)?)
}

/// The file of each event stands beside the others, as in the paper.
fn files(session: &Session) -> Result<Vec<File>, RecordingError> {
    let mut files: Vec<_> = OWN.map(|(path, access)| File::new(path, access)).into();
    for event in session.schema().events() {
        let is_taken = files.iter().any(|file| file.path == event.name);
        if is_taken || BENCHMARKS.strip_suffix('/') == Some(&event.name) {
            return Err(RecordingError::EventIsParameter(event.name.clone()));
        }
        files.push(File::new(&event.name, Access::Both));
    }
    // Only the kernel's events have a benchmark: what programs record themselves costs what their encoders
    // cost, in them.
    let of_kernel = session.schema().events().iter().enumerate();
    let of_kernel = of_kernel.filter(|(nth, _)| session.schema().is_of_kernel(*nth));
    files.extend(of_kernel.map(|(_, event)| File::new(format!("{BENCHMARKS}{}", event.name), Access::Read)));
    Ok(files)
}

/// Answers requests of the files.
pub struct Parameters {
    /// What was refused last, for the status file.
    refused: Option<String>,
    iterations: u32,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { refused: None, iterations: DEFAULT_ITERATIONS }
    }
}

impl Parameters {
    /// Answers a request.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which becomes the error of the system call on the file.
    pub fn answer(&mut self, session: &mut Session, request: &Request) -> Result<String, Refusal> {
        let path = &request.path;
        let (answer, asked) = match &request.value {
            None => (self.get(session, path), path.clone()),
            Some(value) => {
                (self.set(session, path, value).map(|()| String::new()), format!("{path}={value}"))
            }
        };
        // A system call returns no more than the number of an error. The reason stands in the status file.
        answer.inspect_err(|refusal| self.refused = Some(format!("{asked}: {}", refusal.why)))
    }

    fn set(&mut self, session: &mut Session, path: &str, value: &str) -> Result<(), Refusal> {
        if path != ITERATIONS {
            return set(session, path, value);
        }
        let number = value.parse().ok().filter(|number| (1..=MOST_ITERATIONS).contains(number));
        self.iterations =
            number.ok_or_else(|| Refusal::value(format!("it takes a number from 1 to {MOST_ITERATIONS}")))?;
        Ok(())
    }

    fn get(&self, session: &Session, path: &str) -> Result<String, Refusal> {
        let text = match path {
            ENABLE => u8::from(session.switches().enable).to_string(),
            LOW_WATER => session.low_water_percent().to_string(),
            BUFFER_SIZE => mebibytes(session.buffer_bytes()),
            ITERATIONS => self.iterations.to_string(),
            STATUS => return Ok(self.status(session)),
            path if path.starts_with(BENCHMARKS) => self.cost(session, &path[BENCHMARKS.len()..])?,
            event => u8::from(session.switches().events[place(session, event)?]).to_string(),
        };
        Ok(text + "\n")
    }

    fn cost(&self, session: &Session, event: &str) -> Result<String, Refusal> {
        let cost_ns = session.schema().cost_ns(place(session, event)?, self.iterations);
        cost_ns.map(|cost| cost.to_string()).map_err(|error| Refusal::failed(error.to_string()))
    }

    fn status(&self, session: &Session) -> String {
        let reports = session.reports();
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
        let on = session.switches().on();
        let names: Vec<_> = on.iter().map(|event| session.schema().events()[*event].name.as_str()).collect();
        let mut text = String::new();
        let mut line = |name: &str, value: &dyn Display| {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{name}: {value}");
        };
        line("pid", &std::process::id());
        line("trace", &session.directory().display());
        line("events", &if names.is_empty() { "none".to_owned() } else { names.join(" ") });
        line("records", &sum(|report| report.account.records));
        line("lost", &sum(|report| report.account.lost));
        let bytes = sum(|report| report.bytes);
        match session.kept_bytes() {
            Some(most) => line("kept", &size::decimal(bytes.min(most))),
            None => line("written", &size::decimal(bytes)),
        }
        if let Some(why) = reports.iter().find_map(|report| report.write_error.as_ref()) {
            line("not written", why);
        }
        if let Some(refused) = &self.refused {
            line("refused", refused);
        }
        text
    }
}

fn set(session: &mut Session, path: &str, value: &str) -> Result<(), Refusal> {
    match path {
        LOW_WATER => set_low_water(session, value),
        BUFFER_SIZE => resize(session, value),
        DUMP => dump(session),
        _ => switch(session, path, value),
    }
}

fn switch(session: &mut Session, path: &str, value: &str) -> Result<(), Refusal> {
    let mut next: Switches = session.switches().clone();
    match path {
        ENABLE => next.enable = truth(value)?,
        event => next.events[place(session, event)?] = truth(value)?,
    }
    session.switch(next).map_err(|error| Refusal::failed(error.to_string()))
}

fn set_low_water(session: &mut Session, value: &str) -> Result<(), Refusal> {
    session.set_low_water(parse_low_water(value).map_err(Refusal::value)?);
    Ok(())
}

/// A percentage that leaves something on both sides.
///
/// # Errors
///
/// A sentence that says what it takes.
pub fn parse_low_water(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| (1..=99).contains(percent));
    percent.ok_or_else(|| "it takes a percentage from 1 to 99".to_owned())
}

/// A number without a unit counts mebibytes, as in the paper.
fn resize(session: &mut Session, value: &str) -> Result<(), Refusal> {
    let is_bare = value.bytes().all(|letter| letter.is_ascii_digit());
    let text = if is_bare { format!("{value}M") } else { value.to_owned() };
    let bytes = size::parse(&text).map_err(Refusal::value)?;
    size_log2(bytes).map_err(|error| Refusal::value(error.to_string()))?;
    session.resize(bytes).map_err(|error| Refusal::failed(sentence(&error)))
}

fn dump(session: &mut Session) -> Result<(), Refusal> {
    let Some(dumped) = session.dump() else {
        return Err(Refusal::value(
            "everything is in the trace already; only mete record --keep has something to dump",
        ));
    };
    dumped.map(drop).map_err(|error| Refusal::failed(sentence(&error)))
}

fn truth(value: &str) -> Result<bool, Refusal> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Refusal::value("it takes 0 or 1")),
    }
}

fn place(session: &Session, event: &str) -> Result<usize, Refusal> {
    let place = session.schema().events().iter().position(|known| known.name == event);
    place.ok_or_else(|| Refusal::value("there is no such event"))
}

/// In mebibytes, the paper's unit, if it is a whole number of them; else in kibibytes.
fn mebibytes(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { (bytes >> 20).to_string() } else { format!("{}K", bytes >> 10) }
}
