//! The regions with the most requests over the last hour, and the rows with the most recent
//! requests.

use std::sync::Arc;

use base::history::Unit;
use web::section::{Column, HeatMap, HeatRow, Row, Table};
use web::{Value, address};

use super::{REGION, RegionServerPages};

/// Regions and columns of the heat map.
const REGIONS: usize = 15;
const COLUMNS: usize = 60;
/// Rows of the table.
const ROWS: usize = 20;

impl RegionServerPages {
    /// The hottest regions of the last hour.
    pub(super) fn hot_regions(&self) -> HeatMap {
        let map = self.server.hotspots().heat_map(REGIONS, COLUMNS);
        let cell = |rate: &f64| {
            (*rate > 0.0).then(|| (*rate, Value::quantity(*rate, Unit::PerSecond).as_text().to_owned()))
        };
        let row = |(name, rates): &(Arc<str>, Vec<f64>)| {
            // Table and start key, without the region id and encoded name that follow.
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
                "Rows read and written per second, for the regions with the most requests in the last hour."
                    .into(),
            columns: map.ends_ms.iter().map(|end_ms| HeatMap::column(*end_ms)).collect(),
            rows: map.rows.iter().map(row).collect(),
        }
    }

    /// The rows with the most recent requests.
    pub(super) fn hot_rows(&self) -> Table {
        let (hotspots, now) = (self.server.hotspots(), self.context.clock.monotonic());
        let columns = vec![
            Column::text("Row"),
            Column::text("Table"),
            Column::number("Requests per second").titled("Estimated from one of 32 requests"),
            Column::text("Region"),
        ];
        let rows = hotspots.hottest_rows(self.server.regions(), now, ROWS).into_iter().map(|hot| {
            let encoded = cell::region::encoded_name_of(hot.region.as_bytes()).unwrap_or_default();
            Row::Values(vec![
                Value::key(&hot.row),
                Value::key(hot.table.as_bytes()),
                Value::quantity(hot.rate, Unit::PerSecond),
                Value::key(encoded.as_bytes())
                    .linked(address(REGION, "name", encoded))
                    .titled(hot.region.to_string()),
            ])
        });
        let mut table = Table::new("Hot rows", columns);
        table.note = Some(format!(
            "Rows read by gets or changed most often in the last {}. Scans are not counted.",
            self.covered_time()
        ));
        table.rows = rows.collect();
        table.empty_text = "No recent gets or changes.".into();
        table
    }

    /// The time that hot rows cover.
    fn covered_time(&self) -> String {
        let reach = self.server.options().hotspots_period * regionserver::hotspots::ROW_INTERVALS as u32;
        Value::duration(reach.as_millis() as u64).as_text().to_owned()
    }
}
