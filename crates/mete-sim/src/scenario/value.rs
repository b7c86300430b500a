//! The numbers of a scenario: fixed or random, in the unit that the key names.

use std::fmt;

use mete_policy::Nanoseconds;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use toml::Spanned;

use super::error::Fault;
use crate::random::Distribution;

pub(super) const NS_PER_MS: f64 = 1e6;
pub(super) const NS_PER_US: f64 = 1e3;

/// A number as it is written, in its key's unit: `5`, `0.5`, or a table that says how it varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Varying {
    Fixed(f64),
    Shape(Shape),
}

/// The tables that a [`Varying`] may be.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Shape {
    Uniform(Pair),
    Exponential(f64),
    Normal { mean: f64, deviation: f64 },
    Pareto { least: f64, shape: f64 },
}

/// Two numbers. Not an array, because that would accept more of them and ignore the others silently.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Vec<f64>")]
pub(super) struct Pair(f64, f64);

impl TryFrom<Vec<f64>> for Pair {
    type Error = String;

    fn try_from(numbers: Vec<f64>) -> Result<Pair, String> {
        match numbers[..] {
            [low, high] => Ok(Pair(low, high)),
            _ => Err(format!("it takes two numbers, not {}", numbers.len())),
        }
    }
}

impl Varying {
    /// The distribution in whole smaller units, of which `per_unit` make one of the key's. An error says what
    /// is wrong.
    pub(super) fn distribution(self, per_unit: f64) -> Result<Distribution, String> {
        let whole = |number| whole(number, per_unit);
        Ok(match self {
            Varying::Fixed(number) => Distribution::Fixed(whole(number)?),
            Varying::Shape(Shape::Uniform(Pair(low, high))) if low <= high => {
                Distribution::Uniform(whole(low)?, whole(high)?)
            }
            Varying::Shape(Shape::Uniform(Pair(low, high))) => {
                return Err(format!(
                    "a uniform number goes from the smaller to the larger, not from {low} to {high}"
                ));
            }
            Varying::Shape(Shape::Exponential(mean)) => Distribution::Exponential { mean: whole(mean)? },
            Varying::Shape(Shape::Normal { mean, deviation }) => {
                Distribution::Normal { mean: whole(mean)?, deviation: whole(deviation)? }
            }
            Varying::Shape(Shape::Pareto { least, shape }) if shape > 0.0 && shape.is_finite() => {
                Distribution::Pareto { least: whole(least)?, shape }
            }
            Varying::Shape(Shape::Pareto { shape, .. }) => {
                return Err(format!("the shape of a pareto number is more than 0, not {shape}"));
            }
        })
    }
}

/// A number of the key's units as a whole number of smaller ones.
pub(super) fn whole(number: f64, per_unit: f64) -> Result<u64, String> {
    const MOST: f64 = (1u64 << 60) as f64;
    let scaled = libm::round(number * per_unit);
    // A value that is not a number is in no range.
    if (0.0..=MOST).contains(&scaled) {
        Ok(scaled as u64)
    } else {
        Err(format!("{} is out of range: 0 to {}", readable(number), readable((MOST / per_unit).floor())))
    }
}

/// A time, of which `per_unit` nanoseconds make one of the key's. An error names the key.
pub(super) fn ns(key: &str, value: &Spanned<f64>, per_unit: f64) -> Result<Nanoseconds, Fault> {
    small(key, value, per_unit).map(Nanoseconds::new)
}

/// As [`ns`], of a key that may be missing.
pub(super) fn ns_if(
    key: &str,
    value: &Option<Spanned<f64>>,
    per_unit: f64,
) -> Result<Option<Nanoseconds>, Fault> {
    value.as_ref().map(|value| ns(key, value, per_unit)).transpose()
}

/// As [`ns`], of a key in whose place `usual` counts if it is missing.
pub(super) fn ns_or(
    key: &str,
    value: &Option<Spanned<f64>>,
    per_unit: f64,
    usual: Nanoseconds,
) -> Result<Nanoseconds, Fault> {
    Ok(ns_if(key, value, per_unit)?.unwrap_or(usual))
}

/// A number in whole small units, of which `per_unit` make one of the key's. An error names the key.
pub(super) fn small(key: &str, value: &Spanned<f64>, per_unit: f64) -> Result<u64, Fault> {
    // A time's key ends in its unit, as in `start_ms`.
    let unit = key.rsplit_once('_').map_or("", |(_, unit)| unit);
    whole(*value.get_ref(), per_unit)
        .map_err(|what| Fault::new(value.span(), format!("{key}: {what} {unit}")))
}

/// A number with all its digits, unless there are too many to read.
fn readable(number: f64) -> String {
    if number.abs() < 1e18 { number.to_string() } else { format!("{number:e}") }
}

impl<'de> Deserialize<'de> for Varying {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Varying, D::Error> {
        deserializer.deserialize_any(VaryingVisitor)
    }
}

struct VaryingVisitor;

impl<'de> Visitor<'de> for VaryingVisitor {
    type Value = Varying;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a number, or one of { uniform = [1, 2] }, { exponential = 1 }, ")?;
        text.write_str("{ normal = { mean = 2, deviation = 1 } }, { pareto = { least = 1, shape = 2 } }")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Varying, E> {
        Ok(Varying::Fixed(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Varying, E> {
        Ok(Varying::Fixed(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Varying, E> {
        Ok(Varying::Fixed(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Varying, A::Error> {
        Shape::deserialize(MapAccessDeserializer::new(map)).map(Varying::Shape)
    }
}
