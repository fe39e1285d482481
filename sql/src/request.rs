//! The common parts of all requests for a table's rows.

use std::sync::Arc;

use client::columns::RowRange;
use datafusion::arrow::datatypes::SchemaRef;
use proto::grampus::{Predicate, Rows};

use crate::declaration::Declaration;
use crate::predicate;
use crate::predicate::display::PredicateDisplay;
use crate::source::Source;

/// Maximum number of row ranges that EXPLAIN shows; further ones are counted.
const RANGES_SHOWN_MAX: usize = 8;

/// A declared table and the source of its rows.
#[derive(Debug)]
pub struct Declared {
    /// The declaration.
    pub declaration: Declaration,
    /// The Arrow schema of its rows.
    pub schema: SchemaRef,
    /// The source of its rows.
    pub source: Arc<dyn Source>,
}

/// The rows of a table that a plan node needs.
#[derive(Debug, Clone)]
pub struct RowSelection {
    /// The table.
    pub table: Arc<Declared>,
    /// The condition that rows must meet; its columns are indexes into the declaration.
    pub predicate: Option<Predicate>,
    /// The row ranges, in order.
    pub ranges: Vec<RowRange>,
    /// The parts of the ranges in each region; regions without any are omitted.
    pub regions: Vec<Vec<RowRange>>,
}

/// The distinct columns of a request.
#[derive(Default)]
pub struct ColumnIndexes(Vec<u32>);

impl ColumnIndexes {
    /// The index of a declared column in the request, which is added if it is missing.
    pub fn index_of(&mut self, column: u32) -> u32 {
        let index = self.0.iter().position(|listed| *listed == column).unwrap_or_else(|| {
            self.0.push(column);
            self.0.len() - 1
        });
        u32::try_from(index).expect("a table has fewer than 2^32 columns")
    }
}

impl RowSelection {
    /// The request's rows without their ranges, with the columns of `indexes` and of the condition.
    pub fn rows(&self, mut indexes: ColumnIndexes) -> Rows {
        let mut predicate = self.predicate.clone();
        if let Some(predicate) = &mut predicate {
            predicate::renumber(predicate, &mut |column| indexes.index_of(column));
        }
        let Declaration { columns, .. } = &self.table.declaration;
        Rows {
            // The set of rows must not depend on the requested columns.
            family: self.table.declaration.families(),
            column: indexes.0.iter().map(|column| columns[*column as usize].to_proto()).collect(),
            predicate,
            ..Rows::default()
        }
    }

    /// For EXPLAIN: the condition, the rows, the number of regions.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        if let Some(predicate) = &self.predicate {
            text.push_str(&format!(", predicate={}", PredicateDisplay(predicate, &self.table.declaration)));
        }
        let range =
            |RowRange { start, stop }: &RowRange| format!("[{}..{})", key_text(start), key_text(stop));
        let mut shown: Vec<String> = self.ranges.iter().take(RANGES_SHOWN_MAX).map(range).collect();
        if let Some(more) = self.ranges.len().checked_sub(RANGES_SHOWN_MAX).filter(|more| *more > 0) {
            shown.push(format!("{more} more"));
        }
        text.push_str(&format!(", rows={}, regions={}", shown.join(" "), self.regions.len()));
        text
    }

    /// The name of a declared column.
    pub fn name(&self, column: usize) -> &str {
        &self.table.declaration.columns[column].name
    }
}

/// A row key for display, formatted as in HBase's shell.
fn key_text(row: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    };
    row.iter().map(shown).collect()
}
