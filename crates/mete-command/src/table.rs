//! Tables that fit the terminal, and the numbers in them.

use std::time::Duration;

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, TableComponent, Width, presets,
};

use crate::terminal;

/// Stands in a cell without a figure.
pub const NOTHING: &str = "·";
/// The blanks after each column's cells.
const PADDING: usize = 2;
/// The width between two columns: the padding, and the blank that separates them.
const GAP: usize = PADDING + 1;
/// How much further right words stand that are below the names of their row.
const INDENT: usize = 6;
/// The least width of a column of words: narrower ones are hard to read.
const LEGIBLE: usize = 18;

/// A table with a line under its head. If it is too wide for the terminal, words are broken into several
/// lines. Columns that still do not fit stand in further tables below, each with the names of the rows.
pub struct Table {
    columns: Vec<Column>,
}

/// The head of a column, and the kind of its cells: numbers stand at the right. A head may have several
/// lines.
#[derive(Clone, Copy)]
pub enum Head<'a> {
    /// Words, which may be broken into several lines.
    Text(&'a str),
    /// Names, which are not broken.
    Name(&'a str),
    /// Numbers.
    Number(&'a str),
}

#[derive(Clone, Copy, PartialEq)]
enum ColumnKind {
    Text,
    Name,
    Number,
}

struct Column {
    kind: ColumnKind,
    head: String,
    cells: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new<'a>(heads: impl IntoIterator<Item = Head<'a>>) -> Table {
        Table { columns: heads.into_iter().map(Column::new).collect() }
    }

    /// An empty table of numbers, with the names of its rows at the left.
    pub fn of_numbers<'a>(names: &'a str, numbers: impl IntoIterator<Item = &'a str>) -> Table {
        Table::new([Head::Name(names)].into_iter().chain(numbers.into_iter().map(Head::Number)))
    }

    /// One more row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.cells.push(cell));
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.cells.is_empty())
    }

    /// The text, without trailing blanks.
    pub fn text(&self) -> String {
        self.text_within(terminal::columns().map(usize::from))
    }

    fn text_within(&self, width: Option<usize>) -> String {
        let tables = self.folded(width).into_iter().map(|columns| match width {
            Some(width) if is_too_wide(&columns, width) => stacked(&columns, width),
            _ => drawn(&columns, width),
        });
        tables.collect::<Vec<_>>().join("\n\n")
    }

    /// Divides the columns into as many tables as it takes. The names at the left stand in each.
    fn folded(&self, width: Option<usize>) -> Vec<Vec<&Column>> {
        let names = self.columns.iter().take_while(|column| column.kind == ColumnKind::Name).count();
        let (names, rest) = self.columns.split_at(names);
        let mut tables: Vec<Vec<&Column>> = vec![names.iter().collect()];
        for column in rest {
            let last = tables.len() - 1;
            let taken: usize = tables[last].iter().map(|column| column.least() + GAP).sum();
            let is_full = width.is_some_and(|width| taken + column.least() > width);
            // A column that is wider than the terminal stands in a table of its own all the same.
            if is_full && tables[last].len() > names.len() {
                tables.push(names.iter().collect());
            }
            let last = tables.len() - 1;
            tables[last].push(column);
        }
        tables
    }
}

impl Column {
    /// An empty column.
    fn new(head: Head<'_>) -> Column {
        let (kind, head) = match head {
            Head::Text(head) => (ColumnKind::Text, head),
            Head::Name(head) => (ColumnKind::Name, head),
            Head::Number(head) => (ColumnKind::Number, head),
        };
        Column { kind, head: head.to_owned(), cells: Vec::new() }
    }

    /// The letters that it needs at least: words may stand below one another, but no word is broken, because
    /// a broken path cannot be pasted.
    fn least(&self) -> usize {
        let head = self.head.lines().map(letters).max().unwrap_or(0);
        let longest = self.cells.iter().map(|cell| letters(cell)).max().unwrap_or(0);
        match self.kind {
            ColumnKind::Text => head.max(longest.min(LEGIBLE.max(self.longest_word()))),
            ColumnKind::Name | ColumnKind::Number => head.max(longest),
        }
    }

    fn longest_word(&self) -> usize {
        self.cells.iter().flat_map(|cell| cell.split_whitespace()).map(letters).max().unwrap_or(0)
    }

    fn constraint(&self) -> ColumnConstraint {
        match self.kind {
            ColumnKind::Text => {
                let width = (self.least() + PADDING).try_into().unwrap_or(u16::MAX);
                ColumnConstraint::LowerBoundary(Width::Fixed(width))
            }
            ColumnKind::Name | ColumnKind::Number => ColumnConstraint::ContentWidth,
        }
    }

    fn alignment(&self) -> CellAlignment {
        if self.kind == ColumnKind::Number { CellAlignment::Right } else { CellAlignment::Left }
    }
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// Whether words cannot stand beside the names of their rows.
fn is_too_wide(columns: &[&Column], width: usize) -> bool {
    let least = columns.iter().map(|column| column.least() + GAP).sum::<usize>();
    least > width + GAP && columns.last().is_some_and(|last| last.kind == ColumnKind::Text)
}

/// The words of each row below its other cells, and further right.
fn stacked(columns: &[&Column], width: usize) -> String {
    let Some((words, names)) = columns.split_last() else { return String::new() };
    let row = |(row, words): (usize, &String)| {
        let names = names.iter().filter_map(|column| column.cells.get(row)).filter(|cell| !cell.is_empty());
        let names = names.map(String::as_str).collect::<Vec<_>>().join("  ");
        let words = indented(words, width);
        [names, words].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    };
    words.cells.iter().enumerate().map(row).collect::<Vec<_>>().join("\n")
}

/// Words in lines of this width, further right. No word is broken.
fn indented(words: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut().filter(|line| letters(line) + 1 + letters(word) <= width) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(format!("{:INDENT$}{word}", "")),
        }
    }
    lines.join("\n")
}

fn drawn(columns: &[&Column], width: Option<usize>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width {
        // The padding of the last column is cut off below, so it may stick out.
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width((width + PADDING).try_into().unwrap_or(u16::MAX));
    }
    table
        .set_style(TableComponent::HeaderLines, '─')
        .set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_header(columns.iter().map(|column| Cell::new(&column.head).set_alignment(column.alignment())));
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        table.add_row(columns.iter().filter_map(|column| column.cells.get(row)));
    }
    for (drawn, column) in table.column_iter_mut().zip(columns) {
        drawn.set_padding((0, PADDING as u16)).set_cell_alignment(column.alignment());
        drawn.set_constraint(column.constraint());
    }
    let lines: Vec<_> = table.lines().map(|line| cut(&line, width).to_owned()).collect();
    lines.join("\n")
}

/// Cuts off the padding of the last column: blanks, and the end of the line under the head.
fn cut(line: &str, width: Option<usize>) -> &str {
    let end = width.and_then(|width| line.char_indices().nth(width)).map_or(line.len(), |(end, _)| end);
    let tail = &line[end..];
    let is_empty = tail.chars().all(|letter| letter == ' ' || letter == '─');
    if is_empty { line[..end].trim_end() } else { line.trim_end() }
}

/// Cuts a name that is too long: at its end, or, where it is a path, at its beginning, because paths differ at their ends.
/// There is a `…` then.
pub fn shorten(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    let kept = letters.saturating_sub(1);
    if count <= letters {
        name.to_owned()
    } else if name.starts_with('/') {
        std::iter::once('…').chain(name.chars().skip(count - kept)).collect()
    } else {
        name.chars().take(kept).chain(['…']).collect()
    }
}

/// `title one, two`, in as many lines as needed; no name is broken.
pub fn list(title: &str, names: &[String]) -> String {
    list_within(terminal::columns().map_or(usize::MAX, usize::from), title, names)
}

fn list_within(width: usize, title: &str, names: &[String]) -> String {
    let mut text = title.to_owned();
    let mut column = title.chars().count();
    for (index, name) in names.iter().enumerate() {
        let word = format!(" {name}{}", if index + 1 < names.len() { "," } else { "" });
        let letters = word.chars().count();
        if column + letters > width {
            text.push_str("\n ");
            column = 1;
        }
        text.push_str(&word);
        column += letters;
    }
    text
}

/// `1 thread`, `2 threads`.
pub fn number(number: u64, of: &str) -> String {
    format!("{} {of}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `1,234,567`; a dot for 0, so that other numbers stand out.
pub fn count(number: u64) -> String {
    if number == 0 { NOTHING.into() } else { grouped(number) }
}

pub use mete_plot::grouped;

/// Nanoseconds as milliseconds.
pub fn milliseconds(ns: u64) -> String {
    // Half of a tenth of a millisecond is added, so that the division rounds to the nearest tenth.
    let tenths = ns.saturating_add(50_000) / 100_000;
    if ns == 0 { NOTHING.into() } else { format!("{}.{}", grouped(tenths / 10), tenths % 10) }
}

/// A length of time, to the millisecond: a program may end after a few of them.
pub fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// A share (0 to 1) as percent.
pub fn percent(share: f64) -> String {
    if share == 0.0 { NOTHING.into() } else { format!("{:.1}", 100.0 * share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_long_are_visibly_short() {
        assert_eq!((shorten("abc", 3), shorten("abcd", 3)), ("abc".into(), "ab…".into()));
        let groups = ["/box/docker-0123456789ab01.scope", "/box/docker-0123456789ab02.scope"];
        assert_eq!(groups.map(|group| shorten(group, 12)), ["…9ab01.scope", "…9ab02.scope"]);
        assert_eq!(shorten("/a/b", 4), "/a/b");
    }

    #[test]
    fn numbers_read_at_a_glance() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!((number(1, "thread"), number(2, "thread")), ("1 thread".into(), "2 threads".into()));
        assert_eq!(
            (milliseconds(1_250_000), milliseconds(1_249_999), count(0)),
            ("1.3".into(), "1.2".into(), "·".into())
        );
    }

    #[test]
    fn no_path_is_broken() {
        let mut table = Table::new([Head::Text("found"), Head::Text("needed for")]);
        let path = "/sys/bus/event_source/devices/kprobe/type";
        table.row([format!("there is no {path}"), "something that takes many words to say ".repeat(3)]);
        for width in [80, 100] {
            let text = table.text_within(Some(width));
            assert!(text.contains(path) && fits(&text, width), "{text}");
        }
    }

    fn fits(text: &str, width: usize) -> bool {
        text.lines().all(|line| letters(line) <= width)
    }

    #[test]
    fn a_list_fits_the_terminal_and_keeps_names_whole() {
        let names: Vec<_> = (0..40).map(|number| format!("a name {number}")).collect();
        for width in [80, 120] {
            let text = list_within(width, "nothing was logged in:", &names);
            assert!(text.lines().count() > 1 && fits(&text, width), "{text}");
            assert!(names.iter().all(|name| text.contains(name.as_str())), "{text}");
        }
        assert_eq!(list_within(80, "in:", &names[..2]), "in: a name 0, a name 1");
    }

    #[test]
    fn a_table_fits_the_terminal_and_is_as_wide_as_it_is_without_one() {
        let mut table = Table::new([Head::Name("name"), Head::Number("n"), Head::Text("note")]);
        table.row(["a".repeat(30), "1".into(), "word ".repeat(40)]);
        for width in [60, 80, 120] {
            let text = table.text_within(Some(width));
            assert!(fits(&text, width), "{text}");
        }
        assert_eq!(table.text_within(None).lines().count(), 3);
    }

    #[test]
    fn words_that_do_not_fit_beside_the_names_of_their_row_stand_below_them() {
        let mut table = Table::new([Head::Name(""), Head::Name("what"), Head::Text("found")]);
        table.row(
            ["yes", "performance monitoring", "some words that take more than one line"].map(str::to_owned),
        );
        table.row(["", "THE KERNEL", ""].map(str::to_owned));
        let expected =
            "yes  performance monitoring\n      some words that take\n      more than one line\nTHE KERNEL";
        assert_eq!(table.text_within(Some(30)), expected);
    }

    #[test]
    fn columns_that_do_not_fit_stand_below_beside_the_names_of_their_rows() {
        let numbers: Vec<_> = (0..12).map(|number| format!("policy-{number}")).collect();
        let heads = numbers.iter().map(|number| Head::Number(number));
        let mut table = Table::new([Head::Name("client")].into_iter().chain(heads));
        table.row(["a client".to_owned()].into_iter().chain(numbers.clone()));
        let text = table.text_within(Some(80));
        assert!(fits(&text, 80) && text.matches("a client").count() == 2, "{text}");
        assert!(numbers.iter().all(|number| text.contains(number)), "{text}");
        assert_eq!(table.text_within(None).matches("a client").count(), 1);
    }

    #[test]
    fn a_head_of_two_lines_is_as_wide_as_the_longer_one() {
        let mut table = Table::new([Head::Name("domain"), Head::Number("memory\nat end")]);
        table.row(["web".into(), "7 KiB".into()]);
        assert_eq!(
            table.text_within(Some(80)),
            "domain   memory\n         at end\n─────────────────\nweb       7 KiB"
        );
    }
}
