//! `ColumnService` of a real server: truncated responses can be resumed, invalid requests are
//! rejected with a reason, and the benchmark `records` reads what it generated, with every kind of
//! query.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, reached through real sockets"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../hostile/connection.rs"]
mod connection;
#[path = "../hostile/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use common::{PORTS, Server, TempDir, text};
use connection::Connection;
use prost::Message;
use proto::grampus::aggregate::Function;
use proto::grampus::predicate::{Comparison, In, List, Operator};
use proto::grampus::{
    Aggregate, AggregateRequest, AggregateResponse, Column, Encoding, Predicate, Rows, SelectRequest,
    SelectResponse, Value,
};
use records::RecordsArguments;
use table::Table;

const ROWS: i64 = 3000;
const TEXT_LONG: i32 = Encoding::TextLong as i32;

struct World {
    table: Table,
    connection: Connection,
    server: Server,
    _dir: TempDir,
}

impl World {
    /// Creates a table whose row `n` has `n` modulo 7 in `f:q`. Half of the rows are in a store
    /// file.
    fn begin() -> World {
        let dir = TempDir::new();
        let server = Server::start(&dir.join("data"));
        assert!(server.shell("create 't', 'f'").status.success());
        let table = Table::find(PORTS[3] + server.offset);
        // The row that `Table::find` writes gets its own store file.
        assert!(server.shell("flush 't'").status.success());
        let mut connection = Connection::open(table.port).unwrap();
        for number in 0..ROWS {
            let (message, cells) =
                table.put(format!("r{number:05}").as_bytes(), b"q", (number % 7).to_string().as_bytes());
            connection.call("Mutate", &message, &cells).unwrap().unwrap();
            if number == ROWS / 2 {
                assert!(server.shell("flush 't'").status.success());
            }
        }
        World { table, connection, server, _dir: dir }
    }

    fn exec<R: Message + Default>(&mut self, method: &str, request: &impl Message) -> Result<R, String> {
        let request = proto::CoprocessorServiceRequest {
            region: self.table.specifier(),
            call: proto::CoprocessorServiceCall {
                row: Bytes::new(),
                service_name: "grampus.pb.ColumnService".into(),
                method_name: method.into(),
                request: request.encode_to_vec().into(),
            },
        };
        match self.connection.call("ExecService", &request, &[]).unwrap() {
            Ok((message, _)) => {
                let response = proto::CoprocessorServiceResponse::decode(message).unwrap();
                Ok(R::decode(response.value.value.unwrap()).unwrap())
            }
            Err(exception) => Err(format!("{exception:?}")),
        }
    }
}

fn column() -> Column {
    Column {
        family: Some("f".into()),
        qualifier: Some("q".into()),
        encoding: Some(TEXT_LONG),
        ..Column::default()
    }
}

fn rows() -> Rows {
    Rows { column: vec![column()], start_row: Some("r".into()), ..Rows::default() }
}

fn count_and_sum() -> Vec<Aggregate> {
    let count = Aggregate { function: Some(Function::Count as i32), column: None };
    vec![count, Aggregate { function: Some(Function::Sum as i32), column: Some(0) }]
}

fn whole(value: i64) -> Value {
    Value { whole: Some(value), ..Value::default() }
}

#[test]
fn groups_continue_after_the_previous_response() {
    let mut world = World::begin();
    for (groups_bytes_max, time_ms_max) in [(None, None), (Some(1), None), (None, Some(0))] {
        let mut found: BTreeMap<i64, (u64, Vec<u8>)> = BTreeMap::new();
        let (mut rows, mut answers, mut rows_read) = (rows(), 0, 0);
        loop {
            let request = AggregateRequest {
                rows: Some(rows.clone()),
                group_by: vec![0],
                aggregate: count_and_sum(),
                groups_bytes_max,
                time_ms_max,
            };
            let answer: AggregateResponse = world.exec("Aggregate", &request).unwrap();
            for group in &answer.group {
                let state = found.entry(group.key[0].whole()).or_default();
                state.0 += group.state[0].count();
                state.1 = group.state[1].value.as_ref().unwrap().decimal().to_vec();
            }
            rows_read += answer.work.unwrap().rows();
            answers += 1;
            match answer.resume_row {
                Some(row) => rows.start_row = Some(row),
                None => break,
            }
        }
        assert_eq!(rows_read, ROWS as u64);
        let counts: Vec<(i64, u64)> = found.iter().map(|(key, (count, _))| (*key, *count)).collect();
        let expected: Vec<(i64, u64)> =
            (0..7).map(|key| (key, (0..ROWS).filter(|number| number % 7 == key).count() as u64)).collect();
        assert_eq!(counts, expected);
        // All units may already be running when the first groups exceed the limit. When the time is
        // up, one unit is done.
        if groups_bytes_max.is_none() {
            assert_eq!(answers > 1, time_ms_max.is_some(), "{answers} answers within {time_ms_max:?} ms");
        }
    }
}

#[test]
fn rows_are_selected() {
    let mut world = World::begin();
    let is_three = Comparison {
        column: Some(0),
        operator: Some(Operator::Equal as i32),
        value: Some(whole(3)),
        other_column: None,
    };
    let predicate = Some(Predicate { comparison: Some(is_three), ..Predicate::default() });
    let key = Column { encoding: Some(Encoding::Raw as i32), ..Column::default() };
    let rows = Rows { column: vec![column(), key], predicate, ..rows() };
    for (limit, bytes_max) in [(None, None), (Some(10), None), (None, Some(0)), (None, Some(1))] {
        let (mut rows, mut keys, mut left) = (rows.clone(), Vec::new(), limit);
        loop {
            let request = SelectRequest {
                rows: Some(rows.clone()),
                give: vec![1, 0],
                limit: left,
                bytes_max,
                time_ms_max: None,
            };
            let answer: SelectResponse = world.exec("Select", &request).unwrap();
            assert!(answer.vector[1].whole.iter().all(|value| *value == 3));
            assert_eq!(answer.vector[0].raw.len() as u64, answer.rows());
            left = left.map(|left| left - answer.rows());
            keys.extend(answer.vector[0].raw.iter().map(|key| text(key)));
            match answer.resume_row {
                Some(row) if left != Some(0) => rows.start_row = Some(row),
                _ => break,
            }
        }
        let all = (0..ROWS).filter(|number| number % 7 == 3).map(|number| format!("r{number:05}"));
        let expected: Vec<String> = all.take(limit.unwrap_or(u64::MAX) as usize).collect();
        assert_eq!(keys, expected);
    }
}

#[test]
fn invalid_requests_are_refused() {
    let mut world = World::begin();
    let request = |rows: Rows| AggregateRequest {
        rows: Some(rows),
        aggregate: count_and_sum(),
        ..AggregateRequest::default()
    };
    let mut deep = Predicate { is_null: Some(0), ..Predicate::default() };
    for _ in 0..40 {
        let list = List { predicate: vec![deep] };
        deep = Predicate { all: Some(list), ..Predicate::default() };
    }
    let other =
        |encoding: i32, scale: u32| Column { encoding: Some(encoding), scale: Some(scale), ..column() };
    let of_text = In { column: Some(0), value: vec![Value { raw: Some("x".into()), ..Value::default() }] };
    let cases = [
        (AggregateRequest::default(), "does not say which rows"),
        (request(Rows::default()), "which is not there"),
        (request(Rows { column: vec![other(1_000, 0)], ..rows() }), "no encoding of number 1000"),
        (request(Rows { column: vec![other(TEXT_LONG, 99)], ..rows() }), "at most 38 digits"),
        (request(Rows { column: vec![other(Encoding::Raw as i32, 0)], ..rows() }), "is of numbers"),
        // Regions are read concurrently, so the row in the first error varies.
        (
            request(Rows { column: vec![other(Encoding::BytesLong as i32, 0)], ..rows() }),
            ": f:q: no bytes_long",
        ),
        (
            AggregateRequest {
                rows: Some(Rows { family: vec!["none".into()], ..Rows::default() }),
                ..AggregateRequest::default()
            },
            "NoSuchColumnFamilyException",
        ),
        (
            request(Rows {
                predicate: Some(Predicate { r#in: Some(of_text), ..Predicate::default() }),
                ..rows()
            }),
            "another kind",
        ),
        (request(Rows { predicate: Some(Predicate::default()), ..rows() }), "a condition is empty"),
        (AggregateRequest { group_by: vec![7], ..request(rows()) }, "groups are by column 7"),
        (AggregateRequest { group_by: vec![0; 65], ..request(rows()) }, "more than 64 columns"),
        (request(Rows { start_row: Some(vec![b'r'; 40_000].into()), ..rows() }), "a row is of more than"),
        (request(Rows { family: vec!["g".into()], ..rows() }), "not among those that make rows"),
    ];
    for (request, message) in cases {
        let error = world.exec::<AggregateResponse>("Aggregate", &request).unwrap_err();
        assert!(error.contains(message), "{error} instead of {message}");
    }
    let error = world.exec::<AggregateResponse>("Multiply", &request(rows())).unwrap_err();
    assert!(error.contains("UnknownProtocolException"), "{error}");
    // A deep predicate that is within the limit works, and the server still responds.
    let nested = request(Rows { predicate: Some(deep), ..rows() });
    let answer: AggregateResponse = world.exec("Aggregate", &nested).unwrap();
    assert_eq!(answer.group[0].state[0].count(), 0);
    drop(world.server);
}

#[test]
fn all_aggregates_are_computed() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let offset = server.offset.to_string();
    let arguments =
        "records load columns scan --rows 4000 --attributes 12 --regions 3 --only 6=3 --group-by 1";
    let arguments = arguments.split(' ').chain(["--port-offset", &offset]);
    let arguments = RecordsArguments::try_parse_from(arguments).unwrap();
    let env = os::env(Arc::new(os::Runtimes::start(1, 1).unwrap()));
    let mut output = Vec::new();
    os::block_on(records::records(env, &arguments, &mut output)).unwrap();
    let message = text(&output);
    assert_eq!(message.matches(" 98 groups").count(), 6, "{message}");
    assert!(message.contains("4000 rows in vectors, 0 merged, 0 vectors built"), "{message}");
}
