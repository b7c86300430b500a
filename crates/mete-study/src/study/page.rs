//! Pages and sentences from templates, in the language of Jinja.
//!
//! A page begins with `{% extends "page.md" %}`, which is `studies/page.md` and lays out what all pages have
//! in common: the prose first, then claims, pictures and tables. Filters for numbers:
//!
//! | filter | a number | no value |
//! |---|---|---|
//! | `short` | three significant digits | (not measured) |
//! | `unit("ns")` | the same, and the unit | (not measured) |
//! | `cell` | the same as `short`, for a cell of a table | nothing |
//! | `picture` | a file's name as a picture | |

use std::sync::LazyLock;

use mete_measure::{Reason, Verdict};
use mete_plot::short;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::finding::ClaimResult;
use super::kept::Kept;

/// The layouts that pages extend, by name.
const LAYOUTS: [(&str, &str); 2] = [
    ("page.md", include_str!("../../../../studies/page.md")),
    ("simulated.md", include_str!("../../../../studies/simulated.md")),
];
/// What stands for a value that there is not.
const NONE: &str = "(not measured)";

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // A name that the code does not give is a mistake, and must not become an empty text.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap_or_default(),
    );
    environment.add_filter("short", |value: Value| number(&value).map_or_else(|| NONE.to_owned(), short));
    environment.add_filter("cell", |value: Value| number(&value).map(short).unwrap_or_default());
    environment.add_filter("unit", |value: Value, unit: &str| {
        number(&value).map_or_else(|| NONE.to_owned(), |number| format!("{} {unit}", short(number)))
    });
    environment.add_filter("picture", |name: &str| format!("![]({name})"));
    for (name, text) in LAYOUTS {
        // A layout that is no template makes every page an error, which names the layout.
        let _ = environment.add_template(name, text);
    }
    environment
}

/// The number that a value is; `None` for a value that is not there. JSON has no infinite numbers and keeps
/// them as nothing.
fn number(value: &Value) -> Option<f64> {
    f64::try_from(value.clone()).ok()
}

/// The sentence of a claim with its values.
pub(super) fn sentence(template: &str, values: &serde_json::Value) -> Result<String, Reason> {
    let values = Value::from(Serde(values));
    ENVIRONMENT.render_str(template, values).map_err(|error| Reason::new(format!("{error:#}")))
}

/// The page.
pub(super) fn render(template: &str, kept: &Kept, claim_results: &[ClaimResult]) -> Result<String, Reason> {
    let claims: Vec<Value> = claim_results.iter().map(claim).collect();
    let is_noisy = claim_results.iter().any(|result| result.verdict == Verdict::TooNoisy);
    let all = context! { claims, is_noisy, ..Value::from(Serde(kept)) };
    // Facts are called by their own names.
    let all = context! { ..Value::from(Serde(&kept.facts)), ..all };
    let page = ENVIRONMENT.render_str(template, all).map_err(|error| Reason::new(format!("{error:#}")))?;
    Ok(page.trim_end().to_owned() + "\n")
}

fn claim(result: &ClaimResult) -> Value {
    let ClaimResult { figure, paper, is_own_bar, ours, verdict } = result;
    context! { figure, paper, is_own_bar, ours, verdict => verdict.claim_text() }
}
