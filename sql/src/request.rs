//! What all requests for a table's rows have in common.

use std::sync::Arc;

use client::columns::RowRange;
use datafusion::arrow::datatypes::SchemaRef;
use proto::grampus::{Predicate, Rows};

use crate::declaration::Declaration;
use crate::predicate;
use crate::predicate::shown::Shown;
use crate::source::Source;

/// A declared table and where its rows come from.
#[derive(Debug)]
pub struct Declared {
    /// What was declared.
    pub declaration: Declaration,
    /// Arrow's schema of its rows.
    pub schema: SchemaRef,
    /// Where they come from.
    pub source: Arc<dyn Source>,
}

/// Which rows of a table.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Of which table.
    pub table: Arc<Declared>,
    /// Those that meet this; its columns are those of the declaration.
    pub predicate: Option<Predicate>,
    /// Those in here.
    pub range: RowRange,
    /// The same range in parts that can be worked on side by side.
    pub parts: Vec<RowRange>,
}

/// The columns of a request, each once.
#[derive(Default)]
pub struct Places(Vec<u32>);

impl Places {
    /// The place of a declared column in the request.
    pub fn of(&mut self, column: u32) -> u32 {
        let place = self.0.iter().position(|known| *known == column).unwrap_or_else(|| {
            self.0.push(column);
            self.0.len() - 1
        });
        u32::try_from(place).expect("no table has so many columns")
    }
}

impl Wanted {
    /// The rows in the endpoint's words, with the columns of `places` and those of the condition.
    pub fn rows(&self, mut places: Places) -> Rows {
        let mut predicate = self.predicate.clone();
        if let Some(predicate) = &mut predicate {
            predicate::renumber(predicate, &mut |column| places.of(column));
        }
        let Declaration { columns, .. } = &self.table.declaration;
        Rows {
            start_row: Some(self.range.start.clone()),
            stop_row: Some(self.range.stop.clone()),
            // Which rows there are does not depend on which columns are asked for.
            family: self.table.declaration.families(),
            column: places.0.iter().map(|column| columns[*column as usize].to_proto()).collect(),
            predicate,
            ..Rows::default()
        }
    }

    /// For EXPLAIN: which condition, which rows, how many regions.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        if let Some(predicate) = &self.predicate {
            text.push_str(&format!(", predicate={}", Shown(predicate, &self.table.declaration)));
        }
        let key = |row: &[u8]| String::from_utf8_lossy(row).escape_debug().to_string();
        let RowRange { start, stop } = &self.range;
        text.push_str(&format!(", rows=[{}..{})", key(start), key(stop)));
        text.push_str(&format!(", regions={}", self.parts.len()));
        text
    }

    /// The name of a declared column.
    pub fn name(&self, column: usize) -> &str {
        &self.table.declaration.columns[column].name
    }
}
