//! Problems of a schema: what is wrong, where it is, what was expected, and what the author may have meant.

use std::fmt::Write;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::{Source, Span};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{title}")]
pub struct Problem {
    /// What is wrong, in one sentence.
    pub title: String,
    /// Where it is wrong.
    pub span: Span,
    /// The text beside the place: what was expected there.
    pub label: String,
    /// Another place that is involved, and how.
    pub other: Option<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem at `span`.
    pub fn new(span: Span, title: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem { title: title.into(), span, label: label.into(), other: None, help: None }
    }

    /// Adds what to do about the problem, if that is known.
    pub fn help(mut self, help: impl Into<Option<String>>) -> Problem {
        self.help = help.into();
        self
    }

    /// Adds another place that is involved.
    pub fn other(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.other = Some((span, label.into()));
        self
    }

    /// The text for people: the line, the place in it, and the help. `is_coloured` adds the colours of a
    /// terminal.
    pub fn render(&self, sources: &[Source], is_coloured: bool) -> String {
        let mut snippets = Vec::from_iter(self.primary(sources));
        // `primary` shows another place in the same file; one in another file needs a snippet of its own.
        if let Some((span, label)) = &self.other
            && span.file != self.span.file
            && let Some(source) = sources.get(span.file as usize)
        {
            let mark = AnnotationKind::Context.span(within(*span, source)).label(label);
            snippets.push(Snippet::source(&source.text).path(&source.name).annotation(mark));
        }
        let mut group = Group::with_title(Level::ERROR.primary_title(&self.title)).elements(snippets);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if is_coloured { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    /// The lines of the file with the problem; `None` if there is no such file.
    fn primary<'a>(
        &'a self,
        sources: &'a [Source],
    ) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
        let source = sources.get(self.span.file as usize)?;
        let mark = AnnotationKind::Primary.span(within(self.span, source)).label(&self.label);
        let mut snippet = Snippet::source(&source.text).path(&source.name).annotation(mark);
        if let Some((span, label)) = self.other.as_ref().filter(|(span, _)| span.file == self.span.file) {
            snippet = snippet.annotation(AnnotationKind::Context.span(within(*span, source)).label(label));
        }
        Some(snippet)
    }
}

/// The bytes of a span, cut to whole letters of the text.
fn within(span: Span, source: &Source) -> std::ops::Range<usize> {
    let start = letter_begin(&source.text, span.start);
    // A span whose end lies before its start would make the renderer panic.
    start..letter_begin(&source.text, span.end).max(start)
}

/// The last beginning of a letter at or before this byte.
fn letter_begin(text: &str, byte: u32) -> usize {
    let most = text.len().min(byte as usize);
    // Byte 0 is always one.
    (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The problems of a schema, at most [`MAX_PROBLEMS`](crate::limits::MAX_PROBLEMS) of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema has {} problem{}, the first: {}", .0.len(), if .0.len() == 1 { "" } else { "s" },
    .0.first().map_or("", |problem| &problem.title))]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Succeeds if there are no problems.
    ///
    /// # Errors
    ///
    /// The problems, if there are any.
    pub fn unless_none(problems: Vec<Problem>) -> Result<(), Problems> {
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }

    /// The text of all problems for people.
    pub fn render(&self, sources: &[Source], is_coloured: bool) -> String {
        let mut text = String::new();
        for problem in &self.0 {
            let _ = writeln!(text, "{}\n", problem.render(sources, is_coloured));
        }
        text.truncate(text.trim_end().len());
        text
    }
}
