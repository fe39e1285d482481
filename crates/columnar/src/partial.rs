//! Partial results over some of the rows, and merging them.

use std::collections::HashMap;

use crate::aggregate::{Overflow, State};
use crate::value::Value;

/// Groups and their states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partial {
    /// Keys, and states in the order of the aggregates. Keys are distinct.
    pub groups: Vec<(Vec<Value>, Vec<State>)>,
}

/// Merges partial results.
#[derive(Debug, Default)]
pub struct Merger {
    positions: HashMap<Vec<KeyPart>, usize>,
    merged: Partial,
}

/// A key value that is equal if the group keys are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum KeyPart {
    Null,
    Whole(i64),
    Real(u64),
    Decimal(i128),
    Raw(bytes::Bytes),
}

impl KeyPart {
    fn new(value: &Value) -> KeyPart {
        match value {
            Value::Null => KeyPart::Null,
            Value::Whole(value) => KeyPart::Whole(*value),
            Value::Real(value) if value.is_nan() => KeyPart::Real(f64::NAN.to_bits()),
            Value::Real(value) => KeyPart::Real((value + 0.0).to_bits()),
            Value::Decimal(value) => KeyPart::Decimal(*value),
            Value::Raw(value) => KeyPart::Raw(value.clone()),
        }
    }
}

impl Merger {
    /// Adds a partial result.
    ///
    /// # Errors
    /// [`Overflow`]; the merger must not be used afterwards.
    pub fn add(&mut self, partial: Partial) -> Result<(), Overflow> {
        for (key, states) in partial.groups {
            let parts: Vec<KeyPart> = key.iter().map(KeyPart::new).collect();
            match self.positions.get(&parts) {
                Some(position) => {
                    let own = &mut self.merged.groups[*position].1;
                    debug_assert_eq!(own.len(), states.len(), "all parts have the same aggregates");
                    for (own, other) in own.iter_mut().zip(&states) {
                        own.merge(other)?;
                    }
                }
                None => {
                    self.positions.insert(parts, self.merged.groups.len());
                    self.merged.groups.push((key, states));
                }
            }
        }
        Ok(())
    }

    /// Number of groups so far.
    pub fn len(&self) -> usize {
        self.merged.groups.len()
    }

    /// Whether there are no groups yet.
    pub fn is_empty(&self) -> bool {
        self.merged.groups.is_empty()
    }

    /// The merged result.
    pub fn finish(self) -> Partial {
        self.merged
    }
}
