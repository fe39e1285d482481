//! What is asked for most: regions over the last hour, rows lately.

use std::sync::Arc;

use base::history::Unit;
use web::section::{Column, HeatMap, HeatRow, Row, Table};
use web::{Value, address};

use super::{REGION, RegionServerPages};

/// Regions in the map, and its columns.
const REGIONS: usize = 15;
const COLUMNS: usize = 60;
/// Rows in the table.
const ROWS: usize = 20;

impl RegionServerPages {
    /// The hottest regions over the last hour.
    pub(super) fn hot_regions(&self) -> HeatMap {
        let map = self.server.hotspots().heat_map(REGIONS, COLUMNS);
        let cell = |rate: &f64| {
            (*rate > 0.0).then(|| (*rate, Value::figure(*rate, Unit::PerSecond).as_text().to_owned()))
        };
        let row = |(name, rates): &(Arc<str>, Vec<f64>)| {
            // Table and start key; not the number and the encoded name behind them.
            let begins = name.rsplit_once(',').map_or(&**name, |(begins, _)| begins);
            let label = Value::printed_key(begins.to_owned()).titled(name.to_string());
            let encoded = cell::region::encoded_name_of(name.as_bytes());
            HeatRow {
                label: encoded
                    .map_or(label.clone(), |encoded| label.linked(address(REGION, "name", encoded))),
                cells: rates.iter().map(cell).collect(),
            }
        };
        HeatMap {
            heading: "Hot regions".into(),
            note:
                "Rows read and written in a second, of the regions that were asked for most in the last hour."
                    .into(),
            columns: map.ends_ms.iter().map(|end_ms| HeatMap::column(*end_ms)).collect(),
            rows: map.rows.iter().map(row).collect(),
        }
    }

    /// The rows that were asked for most lately.
    pub(super) fn hot_rows(&self) -> Table {
        let (hotspots, now) = (self.server.hotspots(), self.common.clock.monotonic());
        let columns = vec![
            Column::text("Row"),
            Column::text("Table"),
            Column::number("Requests a second")
                .titled("One request of thirty-two is counted, for all of them."),
            Column::text("Region"),
        ];
        let rows = hotspots.hottest_rows(self.server.regions(), now, ROWS).into_iter().map(|hot| {
            let encoded = cell::region::encoded_name_of(hot.region.as_bytes()).unwrap_or_default();
            Row::Values(vec![
                Value::key(&hot.row),
                Value::key(hot.table.as_bytes()),
                Value::figure(hot.rate, Unit::PerSecond),
                Value::key(encoded.as_bytes())
                    .linked(address(REGION, "name", encoded))
                    .titled(hot.region.to_string()),
            ])
        });
        let mut table = Table::new("Hot rows", columns);
        table.note = Some(format!(
            "Rows that were got or changed most often in the last {}. Scans are not counted here.",
            self.lately()
        ));
        table.rows = rows.collect();
        table.nothing = "No row was got or changed lately.".into();
        table
    }

    /// How far back hot rows reach.
    fn lately(&self) -> String {
        let reach = self.server.options().hotspots_period * regionserver::hotspots::ROW_INTERVALS as u32;
        Value::duration(reach.as_millis() as u64).as_text().to_owned()
    }
}
