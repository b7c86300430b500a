//! The pictures of a player beside hogs.

use mete_plot::{self as plot, Axis, Series};

use super::Curve;
use super::run::{PlayerResult, Role};
use crate::study::StudyFile;

pub(super) fn share(curves: &[Curve]) -> StudyFile {
    let of = |name, role| series(curves, name, |point| point.share_of(role));
    let series = [of("player", Role::Player), of("display", Role::Display), of("hogs", Role::Hog)].concat();
    drawn("share.svg", "Processor share", "percent of all processors", &series)
}

pub(super) fn frames(curves: &[Curve]) -> StudyFile {
    let series = series(curves, "frames lost", |point| point.frames_lost);
    drawn("frames.svg", "Frames lost", "percent", &series)
}

pub(super) fn migrations(curves: &[Curve]) -> StudyFile {
    let series = series(curves, "migrations", |point| Some(point.migrations_a_second));
    drawn("migrations.svg", "Migrations of the player", "a second", &series)
}

/// A curve for each player that has values.
fn series(curves: &[Curve], name: &str, of: impl Fn(&PlayerResult) -> Option<f64>) -> Vec<Series> {
    let series = curves.iter().map(|curve| Series {
        name: format!("{}, {name}", curve.player),
        points: curve.points.iter().filter_map(|point| Some((point.hogs as f64, of(point)?))).collect(),
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

fn drawn(file: &str, title: &str, unit: &str, series: &[Series]) -> StudyFile {
    let axis = |label: &str| Axis { label: label.into(), is_logarithmic: false };
    (file.to_owned(), plot::lines(title, &axis("hogs"), &axis(unit), series))
}
