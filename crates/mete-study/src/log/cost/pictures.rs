//! The thesis' figures 5.1 and 5.3.

use mete_plot::{self as plot, Axis};

use super::line::CostLine;
use super::processors::PerProcessor;
use super::setting::{Setting, line_name};
use crate::study::StudyFile;

/// What each setting adds to a message.
pub(super) fn added(lines: &[CostLine]) -> StudyFile {
    let groups: Vec<_> = Setting::ALL[1..].iter().map(|setting| setting.name().to_owned()).collect();
    // A cost that was not measured has a bar without height.
    let bars = |line: &CostLine| line.ns[1..].iter().map(|ns| ns.unwrap_or(0.0)).collect();
    let series: Vec<_> =
        lines.iter().map(|line| (line_name(line.source, line.partner), bars(line))).collect();
    let title = "A log operation on the path of a message (thesis, figures 5.1 and 5.2)";
    let axis = axis("added to a message, ns (dashed: not above zero)");
    ("figure-5.1.svg".to_owned(), plot::bars(title, &axis, &groups, &series))
}

/// What a message takes on each processor while all are busy.
pub(super) fn processors(figure: &PerProcessor) -> StudyFile {
    let groups: Vec<_> = figure.processors.iter().map(|number| format!("processor {number}")).collect();
    let series: Vec<_> =
        figure.ns.iter().map(|(setting, ns)| (setting.name().to_owned(), ns.clone())).collect();
    let name = line_name(figure.source, figure.partner);
    let title = format!("All processors busy (thesis, figure 5.3): {name}");
    let file = format!("figure-5.3-{}.svg", name.replace(", ", "-").replace(' ', "-").to_lowercase());
    (file, plot::bars(&title, &axis("a message, ns"), &groups, &series))
}

fn axis(label: &str) -> Axis {
    Axis { label: label.into(), is_logarithmic: false }
}
