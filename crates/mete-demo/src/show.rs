//! What the demo says while it plays and at its end, as tables or as JSON.

use std::time::{Duration, Instant};

use anyhow::Result;
use mete_command::failure;
use mete_command::lab::DemoOptions;
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::table::{Head, Table, grouped};

use crate::cast::{DRIVERS, DemoStage};
use crate::observe::{Moved, Observed};
use crate::summary::{Stretch, StretchKind, spread};

/// What is kept from stretch to stretch.
pub struct Show {
    pub progress: Progress,
    pub began: Instant,
    pub stretches: Vec<Stretch>,
    /// Requests with logging divided by requests without, pair by pair.
    pub quotients: Vec<f64>,
    pub logged: Observed,
    pub moves: Vec<Moved>,
    pub notes: Vec<String>,
    pub clients: Vec<String>,
    pub drivers: Vec<String>,
}

impl Show {
    /// Of a demo that takes this time.
    pub fn new(options: &DemoOptions, total: Duration) -> Show {
        Show {
            progress: if options.json { Progress::none() } else { Progress::of_time("demo", Some(total)) },
            began: Instant::now(),
            stretches: Vec::new(),
            quotients: Vec::new(),
            logged: Observed::default(),
            moves: Vec::new(),
            notes: Vec::new(),
            clients: (0..options.clients).map(|number| format!("client{number}")).collect(),
            drivers: (0..DRIVERS).map(|number| format!("driver{number}")).collect(),
        }
    }

    pub fn keep(&mut self, stretch: Stretch, observed: Observed) {
        for note in &observed.notes {
            if !self.notes.contains(note) {
                self.progress.aside(|| failure::say(note));
                self.notes.push(note.clone());
            }
        }
        if !observed.moves.is_empty() {
            self.moves = observed.moves.clone();
        }
        if stretch.kind != StretchKind::Off {
            self.logged = observed;
        }
        self.stretches.push(stretch);
    }

    /// The same in the second act.
    pub fn tick_act(&self, ruler: &str) {
        self.progress.show(self.began.elapsed(), ruler.to_owned());
    }

    pub fn tick(&self, kind: StretchKind, message: &str) {
        self.progress.show(self.began.elapsed(), format!("{}  {message}", kind.name()));
    }
}

pub fn announce(options: &DemoOptions, stage: &DemoStage, out: &mut Output) -> Result<()> {
    out.text(format!(
        "{}, nine requests in ten to a favourite of two drivers, beside {}.\n\
         {} of three stretches of {:.1} s each: logging off and on, in turn piece by piece, and scheduler acting.{}\n",
        counted(options.clients, "client", "clients"),
        counted(stage.hogs().len(), "process that only computes", "processes that only compute"),
        counted(options.rounds as usize, "round", "rounds"),
        options.stretch.as_secs_f64(),
        if options.no_kernel { "\nThe kernel is not logged, as asked for." } else { "" }
    ))
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The matrix in one line, as it fills.
pub fn in_short(matrix: &[Vec<u64>], show: &Show) -> String {
    let clients = matrix.iter().zip(&show.clients).map(|(row, client)| {
        let counts: Vec<_> = row.iter().map(u64::to_string).collect();
        format!("{client} {}", counts.join(":"))
    });
    clients.collect::<Vec<_>>().join("  ")
}

pub fn print_stretch(
    round: u32,
    stretch: &Stretch,
    observed: &Observed,
    show: &Show,
    out: &mut Output,
) -> Result<()> {
    let line = format!(
        "round {}  {:<17} {:>9} requests/s  {:>5.1} % crossed  {}",
        round + 1,
        stretch.kind.name(),
        grouped(stretch.throughput.round() as u64),
        100.0 * stretch.crossings,
        in_words(stretch, observed)
    );
    show.progress.aside(|| out.text(line.trim_end()))?;
    out.object(&serde_json::json!({
        "kind": "stretch",
        "round": round + 1,
        "stretch": stretch.kind.name(),
        "throughput": stretch.throughput,
        "crossings": stretch.crossings,
        "latency_median_us": stretch.latency_us[0],
        "latency_p99_us": stretch.latency_us[1],
        "moves": stretch.moves,
        "rows": stretch.rows,
        "lost": stretch.lost,
        "scheduler_share": observed.own_share,
    }))
}

fn in_words(stretch: &Stretch, observed: &Observed) -> String {
    match stretch.kind {
        StretchKind::Off => String::new(),
        StretchKind::Log => format!("{} rows", grouped(stretch.rows)),
        StretchKind::Act => {
            format!("{} rows, {}", grouped(stretch.rows), counted(observed.moves.len(), "move", "moves"))
        }
    }
}

pub fn matrix_table(show: &Show) -> String {
    let mut table = Table::of_numbers("transactions", show.drivers.iter().map(String::as_str));
    for (client, row) in show.clients.iter().zip(&show.logged.matrix) {
        table.row(std::iter::once(client.clone()).chain(row.iter().copied().map(grouped)));
    }
    table.text()
}

pub fn summary_table(stretches: &[Stretch]) -> String {
    let mut table = Table::new([
        Head::Name("stretch"),
        Head::Number("requests/s"),
        Head::Number("least to most"),
        Head::Number("crossed %"),
        Head::Number("least to most"),
    ]);
    for kind in StretchKind::ALL {
        let throughput = spread(stretches, kind, |stretch| stretch.throughput);
        let crossings = spread(stretches, kind, |stretch| 100.0 * stretch.crossings);
        let (Some(throughput), Some(crossings)) = (throughput, crossings) else { continue };
        table.row([
            kind.name().to_owned(),
            grouped(throughput.median.round() as u64),
            format!(
                "{} to {}",
                grouped(throughput.least.round() as u64),
                grouped(throughput.most.round() as u64)
            ),
            format!("{:.1}", crossings.median),
            format!("{:.1} to {:.1}", crossings.least, crossings.most),
        ]);
    }
    table.text()
}

pub fn completeness(stretches: &[Stretch]) -> String {
    let sum = |of: fn(&Stretch) -> u64| stretches.iter().map(of).sum::<u64>();
    let (rows, lost) = (sum(|stretch| stretch.rows), sum(|stretch| stretch.lost));
    match lost {
        0 => format!("Every one of {} log rows was read.", grouped(rows)),
        lost => format!("{} log rows were read, {} were lost.", grouped(rows), grouped(lost)),
    }
}

pub fn sources(show: &Show, options: &DemoOptions) -> String {
    if options.no_kernel {
        return "Only the drivers' own probes were logged, as asked for.".into();
    }
    match show.notes.first() {
        None => "The kernel was logged by eBPF, and the drivers by their own probes.".into(),
        Some(note) => format!("Note: {note}."),
    }
}

pub fn machine(stage: &DemoStage) -> String {
    let name = rustix::system::uname();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} {}, {processors} processors, {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        counted(stage.hogs().len(), "process that only computes", "processes that only compute")
    )
}
