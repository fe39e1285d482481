//! A line of the table: values by field. Also aggregates several lines into one.

use std::collections::{BTreeMap, BTreeSet};

use super::field::Field;
use super::value::Value;

/// Values of one region, table, server or user.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Record(BTreeMap<Field, Value>);

impl Record {
    pub(super) fn of(values: impl IntoIterator<Item = (Field, Value)>) -> Record {
        Record(values.into_iter().collect())
    }

    pub(super) fn get(&self, field: Field) -> Option<&Value> {
        self.0.get(&field)
    }

    pub(super) fn set(&mut self, field: Field, value: Value) {
        self.0.insert(field, value);
    }

    /// The displayed value; empty if the record lacks the field.
    pub(super) fn text(&self, field: Field) -> String {
        self.get(field).map(Value::text).unwrap_or_default()
    }

    fn add(&mut self, other: &Record) {
        for (field, value) in &other.0 {
            match self.0.get_mut(field) {
                Some(sum) => sum.add(value),
                None => self.set(*field, value.clone()),
            }
        }
    }

    /// A copy with only these fields.
    fn only(&self, fields: &[Field]) -> Record {
        let kept = self.0.iter().filter(|(field, _)| fields.contains(field));
        Record::of(kept.map(|(field, value)| (*field, value.clone())))
    }
}

/// One record per combination of values of `keys`, with the sums of `fields`, ordered by the keys.
pub(super) fn sums(records: &[Record], keys: &[Field], fields: &[Field]) -> Vec<Record> {
    let mut groups: BTreeMap<Vec<String>, Record> = BTreeMap::new();
    for record in records {
        let key = keys.iter().map(|key| record.text(*key)).collect();
        groups.entry(key).or_default().add(&record.only(fields));
    }
    groups.into_values().collect()
}

/// The number of distinct values of `field` for each value of `key`.
pub(super) fn distinct(records: &[Record], key: Field, field: Field) -> BTreeMap<String, u64> {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for record in records {
        seen.entry(record.text(key)).or_default().insert(record.text(field));
    }
    seen.into_iter().map(|(key, values)| (key, values.len() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_equal_keys_are_added_up() {
        let record = |table: &str, server: &str, files, rate| {
            Record::of([
                (Field::Table, Value::Text(table.into())),
                (Field::RegionServer, Value::Text(server.into())),
                (Field::StoreFiles, Value::Count(files)),
                (Field::Requests, Value::Rate(rate)),
            ])
        };
        let records = [record("t", "a", 1, 1.4), record("u", "a", 2, 0.0), record("t", "b", 4, 1.4)];
        let fields = [Field::Table, Field::StoreFiles, Field::Requests];
        let sums = sums(&records, &[Field::Table], &fields);
        let text: Vec<Vec<String>> =
            sums.iter().map(|sum| fields.map(|field| sum.text(field)).to_vec()).collect();
        assert_eq!(text, [["t", "5", "3"], ["u", "2", "0"]]);
        assert_eq!(sums[0].get(Field::RegionServer), None);
        let servers = distinct(&records, Field::Table, Field::RegionServer);
        assert_eq!(servers.into_iter().collect::<Vec<_>>(), [("t".to_string(), 2), ("u".to_string(), 1)]);
    }
}
