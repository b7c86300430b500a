//! Settings from the command line: `key=value`, the key a dotted path.
//!
//! A part of the path names a key of a table, or an element of a list by its `name` or by its number from 0:
//! `host.processors=2`, `task.encoder.share=5`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use toml::{Table, Value};

use super::{Scenario, ScenarioError};

/// A key of a scenario, as a dotted path, and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// As it is shown.
    text: String,
    key: String,
    /// The value as it was written.
    written: String,
    value: Value,
}

impl Setting {
    /// The value as TOML reads it. A text that TOML cannot read is a string, so that names need no quotes.
    pub(crate) fn new(key: &str, written: &str) -> Setting {
        Setting::from_parts(format!("{key}={written}"), key, written)
    }

    /// How long the run is.
    pub fn duration(length: Duration) -> Setting {
        Setting::new("duration_ms", &(length.as_secs_f64() * 1e3).to_string())
    }

    /// The key, by its dotted path.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value, as it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The value, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Value::Integer(whole) => Some(whole as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    }

    fn from_parts(text: String, key: &str, written: &str) -> Setting {
        let (key, written) = (key.trim().to_owned(), written.trim().to_owned());
        let value = value(&written);
        Setting { text, key, written, value }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Setting {
    type Err = ScenarioError;

    /// `key=value`
    fn from_str(text: &str) -> Result<Setting, ScenarioError> {
        match text.split_once('=') {
            Some((key, written)) => Ok(Setting::from_parts(text.to_owned(), key, written)),
            None => {
                let what = "it takes key=value, as in host.processors=2".to_owned();
                Err(ScenarioError::Setting { setting: text.to_owned(), what, unknown: None })
            }
        }
    }
}

/// The scenario after all settings; `None` if there are none. `text` is the scenario without them.
pub(super) fn apply(text: &str, settings: &[Setting]) -> Result<Option<Scenario>, ScenarioError> {
    // Read again after each setting, so that an error names the setting that caused it.
    let mut table: Table = text.parse().unwrap_or_default();
    let mut scenario = None;
    for setting in settings {
        let wrong = |what, unknown| ScenarioError::Setting { setting: setting.to_string(), what, unknown };
        set(&mut table, setting).map_err(|what| wrong(what, None))?;
        let changed = table.to_string();
        scenario = Some(Scenario::read(&changed).map_err(|fault| wrong(fault.what, fault.unknown))?);
    }
    Ok(scenario)
}

fn set(table: &mut Table, Setting { key, value, .. }: &Setting) -> Result<(), String> {
    let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut keys = tables.split('.').filter(|key| !key.is_empty());
    let mut at = table;
    while let Some(key) = keys.next() {
        let found = at.entry(key).or_insert_with(|| Value::Table(Table::new()));
        at = match found {
            Value::Table(table) => table,
            Value::Array(list) => element(list, key, keys.next())?,
            _ => return Err(format!("{key} is a value, not a table")),
        };
    }
    at.insert(last.to_owned(), value.clone());
    Ok(())
}

fn element<'a>(list: &'a mut [Value], key: &str, which: Option<&str>) -> Result<&'a mut Table, String> {
    let names = list.iter().filter_map(name).map(str::to_owned).collect::<Vec<_>>().join(", ");
    let which =
        which.ok_or_else(|| format!("{key} is a list: name one of its elements, as in {key}.NAME.share"))?;
    let place = list.iter().position(|value| name(value) == Some(which));
    // A name takes precedence over a number.
    let place = place.or_else(|| which.parse().ok());
    let found = place.and_then(|place| list.get_mut(place)).and_then(Value::as_table_mut);
    found.ok_or_else(|| format!("there is no {which:?} in {key}; there are {names}"))
}

fn name(value: &Value) -> Option<&str> {
    value.get("name")?.as_str()
}

/// The value as TOML reads it. A text that TOML cannot read is a string, so that names need no quotes.
fn value(text: &str) -> Value {
    let read = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| Value::String(text.to_owned()))
}
