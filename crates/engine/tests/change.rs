//! Changes of a row that depend on its content, one behavior per test: increments, appends,
//! conditional changes, nonces.

use std::sync::Arc;
use std::time::Duration;

use crate::common::world::{Opened, open, options, run, scan};
use base::env::{Env, TaskClass};
use cell::cell::CellType;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::{CompareOp, Filter};
use cell::mutation::{Durability, Mutation};
use cell::query::TimeRange;
use cell::{KeyValue, LATEST_TIMESTAMP, tags};
use engine::region::{Changed, RegionOptions};
use engine::{Error, Region};
use fs::memory::MemoryFs;

const ROW: &[u8] = b"r";

async fn fresh(options: RegionOptions) -> (Opened, MemoryFs, Env) {
    let (env, memory) = (base::testing::env(7), MemoryFs::new());
    (open(&env, Arc::new(memory.clone()), options).await.unwrap(), memory, env)
}

fn cell(family: &str, qualifier: &str, timestamp: i64, value: &[u8]) -> KeyValue {
    KeyValue::new(ROW, family.as_bytes(), qualifier.as_bytes(), timestamp, CellType::Put, value)
}

fn put(qualifier: &str, timestamp: i64, value: &[u8]) -> Mutation {
    Mutation::put(ROW, vec![cell("g", qualifier, timestamp, value)])
}

fn increment(qualifier: &str, by: i64) -> Mutation {
    Mutation::increment(ROW, vec![cell("g", qualifier, LATEST_TIMESTAMP, &by.to_be_bytes())])
}

fn append(qualifier: &str, suffix: &[u8]) -> Mutation {
    Mutation::append(ROW, vec![cell("g", qualifier, LATEST_TIMESTAMP, suffix)])
}

fn with_nonce(nonce: u64, mutation: Mutation) -> Mutation {
    Mutation { nonce: (3, nonce), ..mutation }
}

async fn change(region: &Region, mutation: Mutation) -> Result<Vec<KeyValue>, Error> {
    let changed = region.change(None, vec![mutation]).await?;
    assert!(changed.matched);
    Ok(changed.results.into_iter().next().unwrap().unwrap_or_default())
}

/// The number that an increment of one column returns.
async fn number(region: &Region, mutation: Mutation) -> i64 {
    let cells = change(region, mutation).await.unwrap();
    assert_eq!(cells.len(), 1);
    i64::from_be_bytes(cells[0].view(0).value.try_into().unwrap())
}

/// `family:qualifier@timestamp=value` of each cell. Eight-byte values are shown as numbers, the
/// current time as `now`.
fn text(cells: &[KeyValue], now: i64) -> String {
    let one = |cell: &KeyValue| {
        let view = cell.view(0);
        let value = match <[u8; 8]>::try_from(view.value) {
            Ok(bytes) => i64::from_be_bytes(bytes).to_string(),
            Err(_) => view.value.escape_ascii().to_string(),
        };
        let timestamp = match view.timestamp() - now {
            0 => "now".to_string(),
            1 => "now+1".to_string(),
            _ => view.timestamp().to_string(),
        };
        let (family, qualifier) = (view.family().escape_ascii(), view.qualifier().escape_ascii());
        format!("{family}:{qualifier}@{timestamp}={value}")
    };
    cells.iter().map(one).collect::<Vec<_>>().join(" ")
}

async fn stored(region: &Region, env: &Env) -> String {
    let now = env.clock.now_ms() as i64;
    let cells: Vec<KeyValue> = scan(region)
        .await
        .unwrap()
        .iter()
        .map(|(row, family, qualifier, timestamp, value)| {
            KeyValue::new(row, family, qualifier, *timestamp, CellType::Put, value)
        })
        .collect();
    text(&cells, now)
}

#[test]
fn increments_add_to_the_newest_version_and_come_after_it() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let (region, now) = (&opened.region, env.clock.now_ms() as i64);
        assert_eq!(number(region, increment("n", 5)).await, 5);
        assert_eq!(number(region, increment("n", -7)).await, -2);
        assert_eq!(stored(region, &env).await, "g:n@now+1=-2 g:n@now=5");
        region.flush().await.unwrap();
        assert_eq!(number(region, increment("n", i64::MIN)).await, i64::MAX - 1, "numbers wrap");
        change(region, put("future", now + 500_000, &1i64.to_be_bytes())).await.unwrap();
        let cells = change(region, increment("future", 1)).await.unwrap();
        assert_eq!(text(&cells, now), format!("g:future@{}=2", now + 500_001));
    });
}

#[test]
fn several_columns_of_several_families_are_one_change_with_ordered_results() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let now = env.clock.now_ms() as i64;
        let delta = |family, qualifier, by: i64| cell(family, qualifier, LATEST_TIMESTAMP, &by.to_be_bytes());
        let all = Mutation::increment(ROW, vec![delta("g", "b", 1), delta("f", "z", 2), delta("g", "a", 3)]);
        let cells = change(&opened.region, all.clone()).await.unwrap();
        assert_eq!(text(&cells, now), "f:z@now=2 g:a@now=3 g:b@now=1");
        let cells = change(&opened.region, Mutation { return_results: false, ..all }).await.unwrap();
        assert_eq!(text(&cells, now), "", "not requested");
        assert_eq!(
            stored(&opened.region, &env).await,
            "f:z@now+1=4 g:a@now+1=6 g:a@now=3 g:b@now+1=2 g:b@now=1"
        );
    });
}

#[test]
fn values_that_are_not_numbers_are_not_incremented() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        change(&opened.region, put("t", 1, b"text")).await.unwrap();
        let by_text = Mutation::increment(ROW, vec![cell("g", "t", 1, b"")]);
        for (mutation, wide) in [(increment("t", 1), 4), (by_text, 0)] {
            let error = change(&opened.region, with_nonce(1, mutation)).await.unwrap_err();
            assert_eq!(error.to_string(), format!("Field is not a long, it's {wide} bytes wide"));
        }
        assert_eq!(stored(&opened.region, &env).await, "g:t@1=text");
    });
}

#[test]
fn appends_put_the_new_value_after_the_old() {
    run(async {
        let (opened, _, env) = fresh(RegionOptions { cell_bytes_max: 100, ..options() }).await;
        let now = env.clock.now_ms() as i64;
        let first = change(&opened.region, append("q", b"one")).await.unwrap();
        let second = change(&opened.region, append("q", b"two")).await.unwrap();
        assert_eq!(
            (text(&first, now), text(&second, now)),
            ("g:q@now=one".into(), "g:q@now+1=onetwo".into())
        );
        let error = change(&opened.region, append("q", &[b'x'; 70])).await.unwrap_err();
        assert!(error.to_string().contains("exceeds limit of 100 bytes"), "{error}");
    });
}

#[test]
fn only_versions_in_the_time_range_are_changed() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        change(&opened.region, put("n", 5, &50i64.to_be_bytes())).await.unwrap();
        change(&opened.region, put("n", 15, &150i64.to_be_bytes())).await.unwrap();
        let between = |from, to| Mutation { time_range: TimeRange { from, to }, ..increment("n", 1) };
        assert_eq!(number(&opened.region, between(0, 10)).await, 51);
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(number(&opened.region, between(6, 10)).await, 1);
        assert_eq!(stored(&opened.region, &env).await.matches("g:n@").count(), 3, "the versions kept");
    });
}

#[test]
fn tags_are_carried_over_and_a_new_ttl_replaces_the_old_one() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let region = &opened.region;
        let own_tag = [0, 2, 65, 1];
        let with_tag =
            KeyValue::with_tags(ROW, b"g", b"n", LATEST_TIMESTAMP, CellType::Put, &[0; 8], &own_tag);
        let first = Mutation { ttl_ms: Some(50_000), ..Mutation::put(ROW, vec![with_tag]) };
        change(region, first).await.unwrap();
        let kept = change(region, increment("n", 1)).await.unwrap();
        assert_eq!(kept[0].view(0).tags, tags::joined(&[&own_tag], Some(50_000)).unwrap());
        let shorter = Mutation { ttl_ms: Some(300), ..increment("n", 1) };
        let replaced = change(region, shorter).await.unwrap();
        assert_eq!(replaced[0].view(0).tags, tags::joined(&[&own_tag], Some(300)).unwrap());
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert_eq!(number(region, increment("n", 10)).await, 11, "the longer-lived version is back");
    });
}

#[test]
fn cells_with_a_ttl_expire_and_are_dropped_by_a_flush() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let region = &opened.region;
        let brief = Mutation { ttl_ms: Some(300), ..put("brief", LATEST_TIMESTAMP, b"v") };
        let long = Mutation { ttl_ms: Some(600_000), ..put("long", LATEST_TIMESTAMP, b"v") };
        region.batch(vec![brief, long]).await.into_iter().for_each(|result| result.unwrap());
        assert_eq!(stored(region, &env).await, "g:brief@now=v g:long@now=v");
        tokio::time::advance(Duration::from_millis(301)).await;
        assert_eq!(scan(region).await.unwrap().len(), 1);
        region.flush().await.unwrap();
        assert_eq!(region.metrics().stores[1].file_cells, 1);
        assert_eq!(scan(region).await.unwrap().len(), 1);
    });
}

fn if_value(qualifier: &str, operator: CompareOp, value: &'static str) -> Condition {
    let test = ColumnTest {
        family: "g".into(),
        qualifier: qualifier.to_string().into(),
        operator,
        value: value.into(),
    };
    Condition { row: ROW.into(), time_range: TimeRange::ALL, test: Test::Column(test) }
}

async fn check(region: &Region, condition: &Condition, mutations: Vec<Mutation>) -> Changed {
    region.change(Some(condition), mutations).await.unwrap()
}

#[test]
fn a_change_is_applied_if_its_condition_holds() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let region = &opened.region;
        change(region, put("q", 10, b"5")).await.unwrap();
        let made = check(region, &if_value("q", CompareOp::Equal, "5"), vec![put("hit", 1, b"v")]).await;
        assert_eq!(made, Changed { matched: true, results: vec![None] });
        let not = check(region, &if_value("q", CompareOp::Equal, "6"), vec![put("miss", 1, b"v")]).await;
        assert_eq!(not, Changed { matched: false, results: vec![] });
        let early =
            Condition { time_range: TimeRange { from: 0, to: 10 }, ..if_value("q", CompareOp::Equal, "5") };
        assert!(!check(region, &early, vec![put("miss", 1, b"v")]).await.matched);
        region.flush().await.unwrap();
        let absent = if_value("none", CompareOp::Equal, "");
        let both = vec![append("none", b"x"), put("with", 1, b"v")];
        let made = check(region, &absent, both.clone()).await;
        assert!(made.matched && made.results[0].is_some() && made.results[1].is_none());
        assert!(!check(region, &absent, both).await.matched, "no longer absent");
        assert_eq!(stored(region, &env).await, "g:hit@1=v g:none@now=x g:q@10=5 g:with@1=v");
    });
}

#[test]
fn a_checked_put_is_not_older_than_the_cell_it_was_compared_with() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let later = env.clock.now_ms() as i64 + 100_000;
        change(&opened.region, put("q", later, b"5")).await.unwrap();
        let condition = if_value("q", CompareOp::Equal, "5");
        assert!(check(&opened.region, &condition, vec![put("q", LATEST_TIMESTAMP, b"6")]).await.matched);
        assert_eq!(stored(&opened.region, &env).await, format!("g:q@{later}=6"));
    });
}

#[test]
fn a_filter_condition_holds_if_a_cell_passes() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let region = &opened.region;
        change(region, put("q", 7, b"5")).await.unwrap();
        let passes = |prefix: &'static str| Condition {
            row: "r".into(),
            time_range: TimeRange::ALL,
            test: Test::Filter(Arc::new(Filter::ColumnPrefix(prefix.into()))),
        };
        assert!(!check(region, &passes("x"), vec![put("miss", 1, b"v")]).await.matched);
        assert!(check(region, &passes("q"), vec![put("hit", 1, b"v")]).await.matched);
        let early = Condition { time_range: TimeRange { from: 0, to: 7 }, ..passes("q") };
        assert!(!check(region, &early, vec![put("miss", 1, b"v")]).await.matched, "not in the range");
        assert_eq!(stored(region, &env).await, "g:hit@1=v g:q@7=5");
    });
}

#[test]
fn several_rows_change_together_if_all_conditions_hold() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let region = &opened.region;
        let of = |row: &'static str, value: &'static str| {
            let cell =
                KeyValue::new(row.as_bytes(), b"g", b"q", LATEST_TIMESTAMP, CellType::Put, value.as_bytes());
            Mutation::put(row, vec![cell])
        };
        let both = [of("a", "1"), of("b", "2")];
        assert!(region.change_rows(&[], &both).await.unwrap().matched);
        let rows = scan(region).await.unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].3, rows[1].3, "at one moment");
        let holds = |row: &'static str, value| Condition {
            row: row.into(),
            ..if_value("q", CompareOp::Equal, value)
        };
        let change = [of("c", "3"), Mutation::delete("a", Vec::new())];
        let one_fails = [holds("a", "1"), holds("b", "1")];
        assert!(!region.change_rows(&one_fails, &change).await.unwrap().matched);
        assert_eq!(scan(region).await.unwrap(), rows);
        let all_hold = [holds("a", "1"), holds("b", "2"), holds("d", "")];
        assert!(region.change_rows(&all_hold, &change).await.unwrap().matched);
        let left = scan(region).await.unwrap();
        assert_eq!(left.iter().map(|cell| &cell.0[..]).collect::<Vec<_>>(), [b"b", b"c"]);
        let bad = Mutation::put("d", vec![KeyValue::new(b"d", b"x", b"q", 1, CellType::Put, b"v")]);
        let error = region.change_rows(&[], &[of("d", "4"), bad]).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchFamily { .. }), "{error}");
        assert_eq!(scan(region).await.unwrap(), left);
        assert!(region.change_rows(&[], &[]).await.unwrap().matched);
    });
}

#[test]
fn changes_of_several_rows_are_rejected_as_a_whole() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let other = Mutation::put("s", vec![KeyValue::new(b"s", b"g", b"q", 1, CellType::Put, b"v")]);
        let condition = if_value("q", CompareOp::Equal, "");
        let cases = [
            (None, vec![put("q", 1, b"v"), other.clone()]),
            (Some(&condition), vec![other]),
            (
                None,
                vec![
                    put("q", 1, b"v"),
                    Mutation::increment(
                        ROW,
                        vec![KeyValue::new(b"s", b"g", b"q", 1, CellType::Put, &[0; 8])],
                    ),
                ],
            ),
        ];
        for (condition, mutations) in cases {
            let error = opened.region.change(condition, mutations).await.unwrap_err();
            assert!(matches!(error, Error::BadRequest { .. }), "{error}");
        }
        let bad_family = Mutation::append(ROW, vec![cell("x", "q", 1, b"v")]);
        let error = opened.region.change(None, vec![put("q", 1, b"v"), bad_family]).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchFamily { .. }));
        let error = opened.region.batch(vec![increment("n", 1)]).await.remove(0).unwrap_err();
        assert!(matches!(error, Error::BadRequest { .. }), "{error}");
        assert!(scan(&opened.region).await.unwrap().is_empty());
    });
}

#[test]
fn a_nonce_runs_once_and_a_retry_gets_the_first_response() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let region = &opened.region;
        assert_eq!(number(region, with_nonce(1, increment("n", 5))).await, 5);
        assert_eq!(number(region, with_nonce(2, increment("n", 10))).await, 15);
        assert_eq!(number(region, with_nonce(1, increment("n", 5))).await, 5, "as before");
        assert_eq!(number(region, with_nonce(2, increment("n", 10))).await, 15);
        let silent = Mutation { return_results: false, ..with_nonce(2, increment("n", 10)) };
        assert_eq!(change(region, silent).await.unwrap(), []);
        assert_eq!(number(region, increment("n", 0)).await, 15);
        let condition = if_value("n", CompareOp::NotEqual, "never");
        let checked = || vec![with_nonce(3, append("t", b"x")), with_nonce(3, increment("n", 1))];
        let first = check(region, &condition, checked()).await;
        let again = check(region, &if_value("n", CompareOp::Equal, "not any more"), checked()).await;
        assert_eq!(first, again, "it matched when it was applied");
    });
}

#[test]
fn a_nonce_that_failed_or_did_not_match_is_free() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let region = &opened.region;
        change(region, put("t", 1, b"text")).await.unwrap();
        change(region, with_nonce(1, increment("t", 1))).await.unwrap_err();
        assert_eq!(number(region, with_nonce(1, increment("n", 1))).await, 1);
        let condition = if_value("q", CompareOp::Equal, "5");
        assert!(!check(region, &condition, vec![with_nonce(2, increment("n", 1))]).await.matched);
        assert_eq!(number(region, with_nonce(2, increment("n", 1))).await, 2);
    });
}

/// A client that gets no response sends its change again while the first one may still be running.
/// No change is lost or applied twice.
#[test]
fn a_call_abandoned_after_publishing_does_not_run_again() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let region = &opened.region;
        for polls in 0..4 {
            let mut first = Box::pin(region.change(None, vec![with_nonce(100 + polls, increment("n", 1))]));
            for _ in 0..polls {
                let _ = futures_poll(&mut first).await;
            }
            drop(first);
            assert_eq!(number(region, with_nonce(100 + polls, increment("n", 1))).await, polls as i64 + 1);
        }
    });
}

/// Polls once.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
    })
    .await
}

#[test]
fn replay_restores_the_nonces_that_were_logged() {
    run(async {
        let (opened, memory, env) = fresh(options()).await;
        assert_eq!(number(&opened.region, with_nonce(1, increment("n", 5))).await, 5);
        let unlogged = Mutation { durability: Durability::SkipWal, ..with_nonce(2, increment("u", 1)) };
        assert_eq!(number(&opened.region, unlogged.clone()).await, 1);
        opened.region.abandon();
        opened.log.close().await;
        let opened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
        assert_eq!(number(&opened.region, with_nonce(1, increment("n", 5))).await, 5);
        assert_eq!(number(&opened.region, increment("n", 0)).await, 5);
        assert_eq!(number(&opened.region, unlogged).await, 1, "the edit is lost with its nonce");
        // The old version is flushed and compacted away, so the response has the current one.
        assert_eq!(number(&opened.region, increment("n", 1)).await, 6);
        opened.region.flush().await.unwrap();
        assert!(number(&opened.region, with_nonce(1, increment("n", 5))).await >= 5);
    });
}

/// The flush of a family with one version drops what an increment wrote if there is a newer value.
/// The value before it may be in an older file, and is not the response.
#[test]
fn a_retry_never_gets_a_value_from_before_its_change() {
    run(async {
        let (opened, ..) = fresh(options()).await;
        let region = &opened.region;
        let by_one = |family: &str, nonce| {
            let cell = cell(family, "n", LATEST_TIMESTAMP, &1i64.to_be_bytes());
            with_nonce(nonce, Mutation::increment(ROW, vec![cell]))
        };
        for (family, dropped, first_nonce) in [("f", true, 10), ("g", false, 20)] {
            assert_eq!(number(region, by_one(family, first_nonce)).await, 1);
            region.flush().await.unwrap();
            assert_eq!(number(region, by_one(family, first_nonce + 1)).await, 2);
            assert_eq!(number(region, by_one(family, first_nonce + 2)).await, 3);
            assert_eq!(number(region, by_one(family, first_nonce + 1)).await, 2, "still in the memstore");
            region.flush().await.unwrap();
            let expected = if dropped { 3 } else { 2 };
            assert_eq!(number(region, by_one(family, first_nonce + 1)).await, expected);
        }
    });
}

#[test]
fn concurrent_increments_lose_nothing() {
    run(async {
        let (opened, _, env) = fresh(options()).await;
        let region = &opened.region;
        let tasks: Vec<_> = (0..50u64)
            .map(|task| {
                let region = region.clone();
                env.spawn(TaskClass::Service, async move {
                    for round in 0..10 {
                        // Each is sent twice concurrently.
                        let mutation = with_nonce(1 + task * 10 + round, increment("n", 1));
                        let (first, again) = tokio::join!(
                            number(&region, mutation.clone()),
                            number(&region, mutation.clone())
                        );
                        assert_eq!(first, again);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(number(region, increment("n", 0)).await, 500);
    });
}
