//! `RowCountService`: number of rows and number of cells of a region.
//!
//! Source: HBase's example `RowCountEndpoint`.

use std::sync::Arc;

use cell::Cell;
use cell::filter::Filter;
use cell::query::Scan;
use engine::Region;
use engine::scanner::{ResultEnd, ResultSink};
use prost::Message;

use crate::call::{Call, Response, decode, unknown_method};
use crate::error::Result;
use crate::scan::EndpointScan;

pub(crate) const SERVICE: &str = "RowCountService";

const RESPONSE: &str = "org.apache.hadoop.hbase.coprocessor.example.generated.ExampleProtos$CountResponse";

/// Handles a call of the service.
pub(crate) async fn call(region: &Arc<Region>, call: Call<'_>) -> Result<Response> {
    let mut scan = Scan::default();
    // No value is read from a MOB file, because only cells are counted.
    scan.selection.mob.raw = true;
    match &call.call.method_name[..] {
        // One cell of each row is sufficient.
        "getRowCount" => scan.selection.filter = Some(Filter::FirstKeyOnly.into()),
        "getKeyValueCount" => {}
        _ => return Err(unknown_method(call.call).into()),
    }
    decode::<proto::CountRequest>(call.call)?;
    let mut scanning = EndpointScan::open(region, &scan, call)?;
    let work = async move {
        let mut cells = Cells::default();
        scanning.drive(&mut cells).await?;
        Ok(cells.count)
    };
    let count = call.background.run(work).await?;
    Ok(Response { class: RESPONSE, message: proto::CountResponse { count }.encode_to_vec() })
}

/// Result sink that counts cells.
#[derive(Default)]
struct Cells {
    count: i64,
    // Count before the current row.
    row_start: i64,
}

impl ResultSink for Cells {
    fn begin_result(&mut self, continues_row: bool) {
        if !continues_row {
            self.row_start = self.count;
        }
    }

    fn cell(&mut self, _cell: &Cell<'_>) {
        self.count += 1;
    }

    fn end_result(&mut self, _end: ResultEnd) {}

    fn rollback_row(&mut self) {
        self.count = self.row_start;
    }

    /// Nothing is sent to the client.
    fn bytes(&self) -> usize {
        0
    }
}
