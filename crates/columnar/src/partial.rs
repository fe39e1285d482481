//! What was found of all groups by somebody who saw some of the rows, and putting that together.

use std::collections::HashMap;

use crate::aggregate::{Overflow, State};
use crate::value::Value;

/// Groups with their states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partial {
    /// Keys, and states in the order of the aggregates. Each key is there once.
    pub groups: Vec<(Vec<Value>, Vec<State>)>,
}

/// Puts several partial results together.
#[derive(Debug, Default)]
pub struct Merger {
    places: HashMap<Vec<Part>, usize>,
    merged: Partial,
}

/// A value that is the same where group keys are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Null,
    Whole(i64),
    Real(u64),
    Decimal(i128),
    Raw(bytes::Bytes),
}

impl Part {
    fn of(value: &Value) -> Part {
        match value {
            Value::Null => Part::Null,
            Value::Whole(value) => Part::Whole(*value),
            Value::Real(value) if value.is_nan() => Part::Real(f64::NAN.to_bits()),
            Value::Real(value) => Part::Real((value + 0.0).to_bits()),
            Value::Decimal(value) => Part::Decimal(*value),
            Value::Raw(value) => Part::Raw(value.clone()),
        }
    }
}

impl Merger {
    /// Takes one.
    ///
    /// # Errors
    /// [`Overflow`]; what was merged is then of no use.
    pub fn add(&mut self, partial: Partial) -> Result<(), Overflow> {
        for (key, states) in partial.groups {
            let parts: Vec<Part> = key.iter().map(Part::of).collect();
            match self.places.get(&parts) {
                Some(place) => {
                    for (own, other) in self.merged.groups[*place].1.iter_mut().zip(&states) {
                        own.merge(other)?;
                    }
                }
                None => {
                    self.places.insert(parts, self.merged.groups.len());
                    self.merged.groups.push((key, states));
                }
            }
        }
        Ok(())
    }

    /// Groups so far.
    pub fn len(&self) -> usize {
        self.merged.groups.len()
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.merged.groups.is_empty()
    }

    /// All together.
    pub fn finish(self) -> Partial {
        self.merged
    }
}
