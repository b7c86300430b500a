//! What is wrong with a schema, where, what was expected, and what may have been meant.

use std::fmt::Write;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::{Source, Span};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{title}")]
pub struct Problem {
    /// In one sentence.
    pub title: String,
    /// Where.
    pub span: Span,
    /// What stands beside the place: what was expected there.
    pub label: String,
    /// Another place that has to do with it, and how.
    pub other: Option<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// Something wrong at `span`.
    pub fn new(span: Span, title: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem { title: title.into(), span, label: label.into(), other: None, help: None }
    }

    /// With what to do about it, if anybody knows.
    pub fn help(mut self, help: impl Into<Option<String>>) -> Problem {
        self.help = help.into();
        self
    }

    /// With another place that has to do with it.
    pub fn other(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.other = Some((span, label.into()));
        self
    }

    /// As people read it: the line, the place in it, the help. `is_coloured` is for terminals.
    pub fn render(&self, sources: &[Source], is_coloured: bool) -> String {
        let mut snippets = Vec::from_iter(self.primary(sources));
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
    let floor = |byte: u32| {
        (0..=source.text.len().min(byte as usize)).rev().find(|at| source.text.is_char_boundary(*at))
    };
    let start = floor(span.start).unwrap_or(0);
    start..floor(span.end).unwrap_or(start).max(start)
}

/// All that is wrong with a schema, at most [`MAX_PROBLEMS`](crate::limits::MAX_PROBLEMS) of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema has {} problem{}, the first: {}", .0.len(), if .0.len() == 1 { "" } else { "s" },
    .0.first().map_or("", |problem| &problem.title))]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Nothing was wrong, or all of this.
    pub fn unless_none(problems: Vec<Problem>) -> Result<(), Problems> {
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }

    /// All of them as people read them.
    pub fn render(&self, sources: &[Source], is_coloured: bool) -> String {
        let mut text = String::new();
        for problem in &self.0 {
            let _ = writeln!(text, "{}\n", problem.render(sources, is_coloured));
        }
        text.truncate(text.trim_end().len());
        text
    }
}
