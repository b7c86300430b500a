//! Charts as SVG texts that need nothing else: no script, no font, no style sheet.
//!
//! - [`lines`] and [`bars`], over logarithmic or linear axes, with intervals;
//! - [`surfaces`] over two axes;
//! - a [`timeline`] of the clients that ran at each time;
//! - for overviews: [`strips`] of points, a [`matrix`], and [`moves`] over time.
//!
//! Each chart has a title and a description for programs that read aloud, is dark where its surroundings are
//! dark, and shrinks with a narrow screen. The same values give the same bytes.

mod canvas;
mod chart;
mod number;
mod overview;
mod scale;
mod surface;
mod timeline;

pub use canvas::escape;
pub use chart::{
    Intervals, Series, bars, bars_with_intervals, lines, lines_on_one_another, lines_with_intervals,
};
pub use number::{grouped, short};
pub use overview::{Matrix, Strip, matrix, moves, strips};
pub use scale::Axis;
pub use surface::{Grid, Surface, surfaces};
pub use timeline::{Lane, Span, timeline};
