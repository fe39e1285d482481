//! The ways to run the query: ColumnService, a scan, and HBase's AggregateService.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::query::{CellSelection, FamilyColumns, Scan};
use client::columns::RowRange;
use client::{Endpoint, Error, ScanOptions, Table};
use columnar::predicate::Operator;
use columnar::{Aggregate, Column, ColumnLocation, Encoding, Function, Merger, Predicate, State, Value};
use futures_util::future::try_join_all;
use proto::{AggregateRequest, AggregateResponse};
use wire::convert::columns::request::{RowQuery, aggregate_message, rows_message};
use wire::convert::columns::state::partial;
use wire::convert::to_proto;

use super::generator::{FAMILY, Records, RecordsQuery};

/// Sum and count of each group.
pub(super) type Groups = BTreeMap<i64, (i128, u64)>;

/// Rows per scan response.
const CACHING: u32 = 1_000;

/// Queries Grampus' ColumnService, `parallel` regions at a time.
pub(super) async fn columns(
    table: &Table,
    query: &RecordsQuery,
    parallel: usize,
) -> Result<(Groups, proto::grampus::Work), Error> {
    let column = |attribute| Column {
        location: ColumnLocation::Cell {
            family: Bytes::from_static(FAMILY),
            qualifier: Records::qualifier(attribute),
        },
        encoding: Encoding::BytesLong,
        scale: 0,
    };
    let mut columns = vec![column(query.sum)];
    let predicate = query.condition.map(|(attribute, value)| {
        columns.push(column(attribute));
        Predicate::Compare(columns.len() - 1, Operator::Equal, Value::Whole(value))
    });
    let mut group_by = Vec::new();
    if let Some(attribute) = query.group_by {
        group_by.push(columns.len() as u32);
        columns.push(column(attribute));
    }
    let rows = RowQuery {
        range: (Bytes::new(), Bytes::new()),
        time_range: cell::query::TimeRange::ALL,
        versions: 1,
        families: Vec::new(),
        columns,
        predicate,
    };
    let aggregates = [
        Aggregate { function: Function::Sum, column: Some(0) },
        Aggregate { function: Function::Count, column: None },
    ];
    let request = proto::grampus::AggregateRequest {
        rows: Some(rows_message(&rows)),
        group_by,
        aggregate: aggregates.iter().map(aggregate_message).collect(),
        ..proto::grampus::AggregateRequest::default()
    };
    let (mut merger, mut work) = (Merger::default(), proto::grampus::Work::default());
    table
        .aggregate_parts(&request, &[RowRange::default()], parallel, |answer, progress| {
            let malformed = |error: String| Error::Malformed(error);
            let part = partial(&answer.group, &aggregates).map_err(|error| malformed(error.to_string()))?;
            work = progress.work;
            merger.add(part).map_err(|error| malformed(error.to_string()))
        })
        .await?;
    Ok((merger.finish().groups.iter().map(group).collect(), work))
}

fn group((key, states): &(Vec<Value>, Vec<State>)) -> (i64, (i128, u64)) {
    let key = if let Some(Value::Whole(key)) = key.first() { *key } else { 0 };
    let sum = if let State::Sum(_, Value::Decimal(sum)) = &states[0] { *sum } else { 0 };
    let count = if let State::Count(count) = &states[1] { *count } else { 0 };
    (key, (sum, count))
}

/// Scans the columns that the query needs, `parallel` regions at a time, and adds up here.
pub(super) async fn scan(table: &Table, query: &RecordsQuery, parallel: usize) -> Result<Groups, Error> {
    let mut ranges = table.ranges(&RowRange::default()).await?.into_iter();
    let mut groups = Groups::new();
    loop {
        let some: Vec<_> =
            ranges.by_ref().take(parallel).map(|range| scan_range(table, query, range)).collect();
        if some.is_empty() {
            return Ok(groups);
        }
        for part in try_join_all(some).await? {
            for (key, (sum, count)) in part {
                let own = groups.entry(key).or_default();
                *own = (own.0 + sum, own.1 + count);
            }
        }
    }
}

async fn scan_range(table: &Table, query: &RecordsQuery, range: RowRange) -> Result<Groups, Error> {
    let attributes = [Some(query.sum), query.condition.map(|(attribute, _)| attribute), query.group_by];
    let mut qualifiers: Vec<Bytes> = attributes.into_iter().flatten().map(Records::qualifier).collect();
    qualifiers.sort();
    qualifiers.dedup();
    let columns = vec![FamilyColumns { family: Bytes::from_static(FAMILY), qualifiers: Some(qualifiers) }];
    let scan = Scan {
        start_row: range.start,
        stop_row: range.stop,
        selection: CellSelection { columns, ..CellSelection::default() },
        ..Scan::default()
    };
    let mut scanner = table.scan_with(scan, ScanOptions { caching: CACHING, ..ScanOptions::default() });
    let mut groups = Groups::new();
    while let Some(row) = scanner.next().await? {
        let value = |attribute: u64| {
            let qualifier = Records::qualifier(attribute);
            let cell =
                row.cells.iter().map(|cell| cell.view(0)).find(|cell| cell.qualifier() == &qualifier[..])?;
            Some(i64::from_be_bytes(cell.value.try_into().ok()?))
        };
        if query.condition.is_none_or(|(attribute, wanted)| value(attribute) == Some(wanted)) {
            let key = query.group_by.and_then(value).unwrap_or_default();
            let own = groups.entry(key).or_default();
            *own = (own.0 + i128::from(value(query.sum).unwrap_or_default()), own.1 + 1);
        }
    }
    Ok(groups)
}

/// Queries HBase's AggregateService for the sum of all records. Calls all regions concurrently, as
/// HBase's AggregationClient does.
pub(super) async fn endpoint(table: &Table, query: &RecordsQuery) -> Result<Groups, Error> {
    let ranges = table.ranges(&RowRange::default()).await?;
    let sums = try_join_all(ranges.into_iter().map(|range| endpoint_sum(table, query, range))).await?;
    Ok(Groups::from([(0, (sums.into_iter().sum(), 0))]))
}

async fn endpoint_sum(table: &Table, query: &RecordsQuery, range: RowRange) -> Result<i128, Error> {
    let qualifiers = Some(vec![Records::qualifier(query.sum)]);
    let columns = vec![FamilyColumns { family: Bytes::from_static(FAMILY), qualifiers }];
    let scan = Scan {
        start_row: range.start.clone(),
        stop_row: range.stop,
        selection: CellSelection { columns, ..CellSelection::default() },
        ..Scan::default()
    };
    let request = AggregateRequest {
        interpreter_class_name: "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter".into(),
        scan: to_proto::scan(&scan),
        interpreter_specific_bytes: Some(Bytes::new()),
    };
    let sum = Endpoint { service: "AggregateService", method: "GetSum" };
    let response: AggregateResponse = table.call_endpoint(&range.start, sum, |_| request.clone()).await?;
    let Some(first) = response.first_part.first() else { return Ok(0) };
    let message = <proto::LongMsg as prost::Message>::decode(&first[..])
        .map_err(|error| Error::Malformed(format!("invalid sum: {error}")))?;
    Ok(i128::from(message.long_msg))
}
