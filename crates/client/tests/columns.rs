//! Calls of the column endpoint over regions that split, move and fail: each row is read once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use bytes::Bytes;
use client::columns::RowRange;
use client::{Error, Table};
use columnar::State;
use proto::grampus::{Aggregate, AggregateRequest, Rows, SelectRequest};
use support::fake::Fake;
use support::put;

const ROWS: usize = 90;

/// A table with rows `00` to `89`, split at `splits`.
async fn filled(servers: usize, splits: &[&'static str]) -> (Fake, Table) {
    let fake = Fake::new(servers, splits).await;
    let table = fake.client().table(fake.table.clone());
    for n in 0..ROWS {
        table.mutate(&put(&format!("{n:02}"), "q", "v")).await.unwrap();
    }
    (fake, table)
}

fn counting() -> AggregateRequest {
    AggregateRequest {
        rows: Some(Rows::default()),
        aggregate: vec![Aggregate::default()],
        ..Default::default()
    }
}

fn range(start: &'static str, stop: &'static str) -> RowRange {
    RowRange { start: start.into(), stop: stop.into() }
}

async fn count(table: &Table, ranges: &[RowRange]) -> u64 {
    let found = table.aggregate::<Error>(&counting(), ranges, 3, |_, _| Ok(())).await.unwrap();
    match &found.groups[..] {
        [] => 0,
        [(_, states)] => match states[..] {
            [State::Count(count)] => count,
            _ => panic!("{states:?}"),
        },
        more => panic!("{more:?}"),
    }
}

async fn keys(table: &Table, request: SelectRequest, range: RowRange) -> Vec<Bytes> {
    let mut selection = table.select(request, range);
    let mut keys = Vec::new();
    while let Some(answer) = selection.next().await.unwrap() {
        keys.extend(answer.vector.into_iter().flat_map(|vector| vector.raw));
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn only_regions_in_the_range_are_queried() {
    let (fake, table) = filled(2, &["30", "60"]).await;
    let mut progress = Vec::new();
    let found = table
        .aggregate::<Error>(&counting(), &[range("", "")], 2, |done, merged| {
            progress.push((done.ranges_done, done.ranges, done.work.rows(), merged.len()));
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(found.groups[0].1, [State::Count(90)]);
    assert_eq!(progress, [(1, 3, 30, 1), (2, 3, 60, 1), (3, 3, 90, 1)]);
    assert_eq!(fake.state().called("ExecService"), 3);
    assert_eq!(count(&table, &[range("35", "45")]).await, 10);
    assert_eq!(fake.state().called("ExecService"), 4);
    assert_eq!(count(&table, &[range("60", "")]).await, 30);
    assert_eq!(fake.state().called("ExecService"), 5);
    assert_eq!(count(&table, &[range("9", "")]).await, 0);
    assert_eq!(count(&table, &[range("5", "4")]).await, 0);
    assert_eq!(fake.state().called("ExecService"), 6);
    // Two in the first region, one across the other two.
    let several = [range("05", "10"), range("20", "22"), range("55", "65")];
    assert_eq!(count(&table, &several).await, 5 + 2 + 10);
    assert_eq!(fake.state().called("ExecService"), 10);
}

#[tokio::test(start_paused = true)]
async fn a_partial_response_is_resumed() {
    let (fake, table) = filled(1, &["45"]).await;
    fake.state().endpoint_rows_max = 7;
    assert_eq!(count(&table, &[range("", "")]).await, 90);
    let all: Vec<Bytes> = (0..ROWS).map(|n| format!("{n:02}").into()).collect();
    assert_eq!(keys(&table, SelectRequest::default(), RowRange::default()).await, all);
    let range = RowRange { start: "10".into(), stop: "80".into() };
    let some = SelectRequest { limit: Some(50), ..SelectRequest::default() };
    assert_eq!(keys(&table, some, range).await, all[10..60]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_ends_the_selection() {
    let (fake, table) = filled(1, &["30", "60"]).await;
    let some = SelectRequest { limit: Some(5), ..SelectRequest::default() };
    assert_eq!(keys(&table, some, RowRange::default()).await.len(), 5);
    assert_eq!(fake.state().called("ExecService"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_region_that_splits_during_the_query_is_counted_once() {
    for rows_max in [usize::MAX, 4] {
        let (fake, table) = filled(2, &["50"]).await;
        fake.state().endpoint_rows_max = rows_max;
        fake.state().split_at_endpoint = Some("20".into());
        assert_eq!(count(&table, &[range("", "")]).await, 90);
        fake.state().split_at_endpoint = Some("70".into());
        assert_eq!(keys(&table, SelectRequest::default(), RowRange::default()).await.len(), 90);
        assert_eq!(fake.state().regions.len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn retryable_failures_are_retried() {
    let (fake, table) = filled(3, &["20", "40", "60"]).await;
    fake.state().endpoint_rows_max = 3;
    fake.state().fault_every = 4;
    for _ in 0..5 {
        assert_eq!(count(&table, &[range("05", "85")]).await, 80);
    }
    fake.state().fault_every = 0;
    assert!(fake.state().called("ExecService") > 5 * 80 / 3);
}

#[tokio::test(start_paused = true)]
async fn the_progress_callback_may_end_the_query() {
    let (fake, table) = filled(1, &["10", "20", "30", "40"]).await;
    let ended = table
        .aggregate::<Error>(&counting(), &[range("", "")], 1, |done, _| match done.ranges_done {
            2 => Err(Error::Malformed("enough".into())),
            _ => Ok(()),
        })
        .await;
    assert!(matches!(ended, Err(Error::Malformed(text)) if text == "enough"));
    assert_eq!(fake.state().called("ExecService"), 2);
}
