//! The thesis' figures 5.4 to 5.6: trials and times over the size of the file.

use mete_plot::{self as plot, Axis, Series};

use super::result::{self, ReaderResult};
use super::setting::{Load, Scheme};
use crate::study::StudyFile;

pub(super) fn of(found: &[ReaderResult]) -> Vec<StudyFile> {
    let file = |name: &str, text| (format!("figure-{name}.svg"), text);
    vec![
        file("5.4-5.5-thesis-pace", trials(found, Load::ThesisPace)),
        file("5.4-5.5-full-speed", trials(found, Load::FullSpeed)),
        file("5.6-thesis-pace", times(found, Load::ThesisPace)),
        file("5.6-full-speed", times(found, Load::FullSpeed)),
    ]
}

fn trials(found: &[ReaderResult], load: Load) -> String {
    let all = Scheme::ALL
        .map(|scheme| series(found, scheme.name().into(), (scheme, load), ReaderResult::mean_trials));
    let title = format!("Trials of a reader, {} (thesis, figures 5.4 and 5.5)", load.name());
    plot::lines(&title, &axis("log file, bytes"), &axis("trials an analysis, mean"), &all)
}

fn times(found: &[ReaderResult], load: Load) -> String {
    let writer = Scheme::ALL.map(|scheme| (scheme.name().to_owned(), scheme, load));
    let quiet = [Scheme::Ours, Scheme::Restart]
        .map(|scheme| (format!("{}, no writer", scheme.name()), scheme, Load::NoWriter));
    let all: Vec<_> = writer
        .into_iter()
        .chain(quiet)
        .map(|(name, scheme, load)| series(found, name, (scheme, load), ReaderResult::median_ns))
        .collect();
    let title = format!("Time of an analysis, {} (thesis, figure 5.6)", load.name());
    plot::lines(&title, &axis("log file, bytes"), &axis("an analysis, ns, median"), &all)
}

fn axis(label: &str) -> Axis {
    Axis { label: label.into(), is_logarithmic: true }
}

fn series(
    found: &[ReaderResult],
    name: String,
    (scheme, load): (Scheme, Load),
    value: fn(&ReaderResult) -> f64,
) -> Series {
    let points = result::of(found, scheme, load).map(|result| (result.bytes as f64, value(result)));
    Series { name, points: points.collect() }
}
