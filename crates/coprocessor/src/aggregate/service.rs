//! The service's methods and their responses.

use std::sync::Arc;

use cell::query::Scan;
use engine::Region;
use prost::Message;

use super::big_decimal::BigDecimal;
use super::double::Double;
use super::fold::{Count, Deviation, Extreme, Fold, Median, Sum};
use super::interpreter::Interpreter;
use super::long::Long;
use super::request::{self, Interpreters};
use super::rows::Rows;
use crate::call::{Call, Response, decode, unknown_method};
use crate::error::{Error, Result};
use crate::scan::EndpointScan;

pub(crate) const SERVICE: &str = "AggregateService";

const RESPONSE: &str = "org.apache.hadoop.hbase.protobuf.generated.AggregateProtos$AggregateResponse";

/// A numeric aggregate.
#[derive(Clone, Copy)]
enum Aggregate {
    Max,
    Min,
    Sum,
    Avg,
    Std,
    Median,
}

/// Handles a call of the service.
pub(crate) async fn call(region: &Arc<Region>, call: Call<'_>) -> Result<Response> {
    let aggregate = match &call.call.method_name[..] {
        "GetMax" => Aggregate::Max,
        "GetMin" => Aggregate::Min,
        "GetSum" => Aggregate::Sum,
        "GetAvg" => Aggregate::Avg,
        "GetStd" => Aggregate::Std,
        "GetMedian" => Aggregate::Median,
        "GetRowNum" => return row_num(region, call).await,
        _ => return Err(unknown_method(call.call).into()),
    };
    let request = decode(call.call)?;
    let interpreter = request::interpreter(&request)?;
    let scan = request::scan(&request)?;
    match interpreter {
        Interpreters::Long => aggregate_by::<Long>(aggregate, region, call, scan).await,
        Interpreters::Double => aggregate_by::<Double>(aggregate, region, call, scan).await,
        Interpreters::BigDecimal => aggregate_by::<BigDecimal>(aggregate, region, call, scan).await,
    }
}

async fn row_num(region: &Arc<Region>, call: Call<'_>) -> Result<Response> {
    let scan = request::scan(&decode(call.call)?)?;
    fold(Count(0), region, call, request::of_rows(scan)).await
}

async fn aggregate_by<I: Interpreter>(
    aggregate: Aggregate,
    region: &Arc<Region>,
    call: Call<'_>,
    mut scan: Scan,
) -> Result<Response> {
    match aggregate {
        Aggregate::Max => fold(Extreme::<I>::largest(), region, call, scan).await,
        Aggregate::Min => fold(Extreme::<I>::smallest(), region, call, scan).await,
        Aggregate::Sum => fold(Sum::<I>::plain(), region, call, scan).await,
        Aggregate::Avg => fold(Sum::<I>::average(), region, call, scan).await,
        Aggregate::Std => fold(Deviation::<I>::new(), region, call, scan).await,
        Aggregate::Median => {
            let median = Median::<I>::new(request::has_weights(&mut scan));
            fold(median, region, call, scan).await
        }
    }
}

/// Folds the results of a scan, on a low-priority thread.
async fn fold<F: Fold>(fold: F, region: &Arc<Region>, call: Call<'_>, scan: Scan) -> Result<Response> {
    let mut scanning = EndpointScan::open(region, &scan, call)?;
    let work = async move {
        let mut rows = Rows::new(fold);
        match scanning.drive(&mut rows).await {
            Ok(()) => Ok(rows.finish(scanning.scanner())?),
            Err(error) => Err(rows.failed().map_or(error, Error::Refused)),
        }
    };
    let response = call.background.run(work).await?;
    Ok(Response { class: RESPONSE, message: response.encode_to_vec() })
}
