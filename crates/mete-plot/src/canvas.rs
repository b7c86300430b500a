//! The sheet that all charts are drawn on.

use std::fmt::Write as _;

/// Colours that can be told apart with every kind of colour vision (Okabe and Ito).
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// The colour of the `nth` series.
pub(crate) fn colour(nth: usize) -> &'static str {
    COLOURS[nth % COLOURS.len()]
}

/// The sheet is dark where its surroundings are. Rules of a style take precedence over attributes.
const STYLE: &str = "<style>@media(prefers-color-scheme:dark){rect[fill=\"white\"]{fill:#16181c}text{fill:#e6e8eb}\
[stroke=\"black\"]{stroke:#e6e8eb}[stroke=\"#ddd\"],[stroke=\"#bbb\"],[stroke=\"#999\"]{stroke:#444b55}\
[fill=\"#f4f4f4\"]{fill:#20242a}[stroke=\"#0072b2\"]{stroke:#4aa8e8}[fill=\"#0072b2\"]{fill:#4aa8e8}\
[stroke=\"#555555\"]{stroke:#a8aeb8}[fill=\"#555555\"]{fill:#a8aeb8}}</style>\n";

/// A sheet with a title, no wider than asked for. A place on it is `(x, y)` from the upper left corner.
pub(crate) struct Canvas {
    svg: String,
    /// Where the description goes, for programs that read aloud: behind the title.
    description_at: usize,
    /// The texts of the chart without numbers, from which the description is made.
    said: Vec<String>,
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

// Writing to a string cannot fail.
impl Canvas {
    /// A chart that stands alone: a file with a background and its title above.
    pub(crate) fn new(title: &str, size: (f64, f64)) -> Canvas {
        let mut canvas = Canvas::begin(title, size, " xmlns=\"http://www.w3.org/2000/svg\"");
        let title = escape(title);
        canvas.svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
        let _ = writeln!(canvas.svg, "<text x=\"8\" y=\"24\" font-size=\"15\">{title}</text>");
        canvas
    }

    /// A part of an HTML page, which has a background and a heading of its own and knows what SVG is.
    pub(crate) fn bare(title: &str, size: (f64, f64)) -> Canvas {
        Canvas::begin(title, size, "")
    }

    fn begin(title: &str, (width, height): (f64, f64), namespace: &str) -> Canvas {
        let title = escape(title);
        let mut svg = format!(
            "<svg{namespace} viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             style=\"max-width:100%;height:auto\" font-family=\"sans-serif\" font-size=\"14\" role=\"img\">\n<title>{title}</title>\n"
        );
        let description_at = svg.len();
        svg += STYLE;
        Canvas { svg, description_at, said: Vec::new() }
    }

    fn say(&mut self, text: &str) {
        // Numbers at the axes would bury the names when the description is read aloud. Large ones end with k
        // or M.
        if text.trim_end_matches(['k', 'M']).parse::<f64>().is_err() {
            self.said.push(text.to_owned());
        }
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        self.say(text);
        let (text, anchor) = (escape(text), anchor.name());
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    /// A text that is read upwards.
    pub(crate) fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        self.say(text);
        let text = escape(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\">{text}</text>"
        );
    }

    /// A line through places in SVG's path language.
    pub(crate) fn path(&mut self, path: &str, stroke: &str) {
        let _ = writeln!(self.svg, "<path d=\"{path}\" stroke=\"{stroke}\" fill=\"none\"/>");
    }

    /// The line of the `nth` series: dashed once all colours are used up.
    pub(crate) fn dashed(&mut self, places: &[(f64, f64)], nth: usize, width: f64) {
        let dashes = ["none", "7 3", "2 3"][nth / COLOURS.len() % 3];
        self.places(
            "polyline",
            places,
            "none",
            (colour(nth), width),
            &format!(" stroke-dasharray=\"{dashes}\""),
        );
    }

    pub(crate) fn polyline(&mut self, places: &[(f64, f64)], stroke: &str, width: f64) {
        self.places("polyline", places, "none", (stroke, width), "");
    }

    pub(crate) fn polygon(&mut self, places: &[(f64, f64)], stroke: &str, fill: &str) {
        self.places("polygon", places, fill, (stroke, 0.7), "");
    }

    /// An element through places, with more attributes.
    fn places(
        &mut self,
        element: &str,
        places: &[(f64, f64)],
        fill: &str,
        (stroke, width): (&str, f64),
        more: &str,
    ) {
        let places: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = places.join(" ");
        let _ = writeln!(
            self.svg,
            "<{element} points=\"{points}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{width}\"{more}/>"
        );
    }

    pub(crate) fn dot(&mut self, (x, y): (f64, f64), fill: &str) {
        let _ = writeln!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\"/>");
    }

    /// A larger dot that lets others be seen through it.
    pub(crate) fn disc(&mut self, (x, y): (f64, f64), fill: &str) {
        let _ = writeln!(
            self.svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{fill}\" fill-opacity=\"0.55\"/>"
        );
    }

    /// A rectangle shaded by a part of one.
    pub(crate) fn shaded(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str, opacity: f64) {
        self.rect(corner, size, fill, &format!(" fill-opacity=\"{opacity:.2}\""));
    }

    pub(crate) fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str) {
        self.rect(corner, size, fill, "");
    }

    /// A bar that is not filled, for a value that is not above zero.
    pub(crate) fn hollow(&mut self, corner: (f64, f64), size: (f64, f64), stroke: &str) {
        self.rect(corner, size, "none", &format!(" stroke=\"{stroke}\" stroke-dasharray=\"2 2\""));
    }

    /// A rectangle by its upper left corner, with more attributes.
    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, more: &str) {
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"{more}/>"
        );
    }

    /// The SVG text, described by the texts in it.
    pub(crate) fn end(self) -> String {
        let description = format!("It shows: {}.", self.said.join("; "));
        self.end_described(&description)
    }

    /// The SVG text, described in these words.
    pub(crate) fn end_described(mut self, description: &str) -> String {
        // Readers that read aloud take the description from behind the title, before anything is drawn.
        self.svg.insert_str(self.description_at, &format!("<desc>{}</desc>\n", escape(description)));
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Text that is safe between tags.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
