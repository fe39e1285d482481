//! What all requests for a table's rows have in common.

use std::sync::Arc;

use client::columns::RowRange;
use datafusion::arrow::datatypes::SchemaRef;
use proto::grampus::{Predicate, Rows};

use crate::declaration::Declaration;
use crate::predicate;
use crate::predicate::shown::Shown;
use crate::source::Source;

/// Ranges of rows that EXPLAIN shows; more are counted.
const RANGES_SHOWN_MAX: usize = 8;

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
    /// Those in here, in order.
    pub ranges: Vec<RowRange>,
    /// What of them is in each region that has some.
    pub regions: Vec<Vec<RowRange>>,
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
    /// The rows in the endpoint's words but for their ranges, with the columns of `places` and those of the condition.
    pub fn rows(&self, mut places: Places) -> Rows {
        let mut predicate = self.predicate.clone();
        if let Some(predicate) = &mut predicate {
            predicate::renumber(predicate, &mut |column| places.of(column));
        }
        let Declaration { columns, .. } = &self.table.declaration;
        Rows {
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

/// A row key for a person, as HBase's shell writes it.
fn key_text(row: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    };
    row.iter().map(shown).collect()
}
