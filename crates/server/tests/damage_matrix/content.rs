//! The content of a cluster, as a client reads it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::query::{Get, Scan};
use cell::schema::{TableDescriptor, TableName};
use client::columns::RowRange;
use client::{Client, ClientOptions, Error, Registry, Row, Table};
use proto::grampus::aggregate::Function;
use proto::grampus::{Aggregate, AggregateRequest, Column, Encoding, Rows};

/// The cells of a row: family, qualifier, timestamp, value.
pub type Cells = Vec<(Vec<u8>, Vec<u8>, i64, Vec<u8>)>;

/// The data read, or the class of the exception.
pub type Read<T> = Result<T, String>;

/// The content of a table, read in three ways.
#[derive(Clone, Debug, PartialEq)]
pub struct TableContent {
    pub gets: BTreeMap<Vec<u8>, Read<Cells>>,
    pub scan: Read<BTreeMap<Vec<u8>, Cells>>,
    /// Row count, and the sum of the numeric values of `f:n`, from server-side aggregation.
    pub count: Read<String>,
}

/// Everything that is compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    pub tables: BTreeMap<String, TableContent>,
    /// Descriptors of all user tables.
    pub schema: BTreeMap<String, String>,
    pub schema_error: Option<String>,
    pub namespaces: List,
    pub snapshots: List,
}

/// A list as text, or an error.
pub type List = Option<Read<String>>;

/// How long a client waits for regions to open.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

/// A client with short timeouts.
pub fn client(env: &Env, zookeeper: &str) -> Client {
    let options = ClientOptions {
        rpc_timeout: Duration::from_secs(5),
        operation_timeout: Duration::from_secs(5),
        procedure_timeout: Duration::from_secs(10),
        retries_max: 2,
        pause: Duration::from_millis(10),
        overloaded_pause: Duration::from_millis(10),
        ..ClientOptions::default()
    };
    Client::new(env.clone(), Registry::zookeeper(zookeeper, "/hbase"), options)
}

/// Reads all of `rows` (by table) until nothing fails, or until regions had enough time to open.
pub async fn read(env: &Env, client: &Client, rows: &BTreeMap<String, Vec<Vec<u8>>>) -> Content {
    let begun = env.clock.monotonic();
    loop {
        let content = read_once(client, rows).await;
        if !content.may_change() || env.clock.monotonic() - begun > SETTLED_WITHIN {
            return content;
        }
        env.clock.sleep(POLL).await;
    }
}

impl Content {
    /// Whether some error may disappear when a region opens.
    fn may_change(&self) -> bool {
        let passes = |class: &String| !class.contains("Corrupt") && !class.contains("DoNotRetry");
        let of_table = |table: &TableContent| {
            let gets = table.gets.values().filter_map(|get| get.as_ref().err()).any(&passes);
            gets || table.scan.as_ref().err().is_some_and(&passes)
                || table.count.as_ref().err().is_some_and(&passes)
        };
        self.tables.values().any(of_table) || self.schema_error.is_some()
    }
}

async fn read_once(client: &Client, rows: &BTreeMap<String, Vec<Vec<u8>>>) -> Content {
    let mut content = Content::default();
    for (name, rows) in rows {
        let table = client.table(TableName::parse(name).unwrap());
        content.tables.insert(name.clone(), read_table(&table, rows).await);
    }
    let admin = client.admin();
    match admin.list_descriptors(None, false).await {
        Ok(tables) => {
            content.schema.extend(tables.iter().map(|table| (table.name.to_string(), in_words(table))))
        }
        Err(error) => content.schema_error = Some(class_of(&error)),
    }
    content.namespaces = Some(in_lines(admin.list_namespaces().await));
    let snapshots = admin.list_snapshots().await;
    let named = snapshots.map(|all| all.iter().map(|snapshot| snapshot.name.clone()).collect::<Vec<_>>());
    content.snapshots = Some(in_lines(named));
    content
}

fn in_words(table: &TableDescriptor) -> String {
    format!("{table:?}")
}

fn in_lines<T: Debug>(list: Result<Vec<T>, Error>) -> Read<String> {
    list.map(|all| format!("{all:?}")).map_err(|error| class_of(&error))
}

/// Reads a table with gets, a scan, and aggregation.
pub async fn read_table(table: &Table, rows: &[Vec<u8>]) -> TableContent {
    let mut gets = BTreeMap::new();
    for row in rows {
        let get = Get { row: row.clone().into(), selection: Arc::default(), existence_only: false };
        let read = table.get(&get).await.map(|row| cells_of(&row)).map_err(|error| class_of(&error));
        gets.insert(row.clone(), read);
    }
    let scan = table.scan(Scan::default()).collect().await;
    let scan = scan.map(|rows| rows.iter().map(|row| (row.key().to_vec(), cells_of(row))).collect());
    let count = count(table).await.map_err(|error| class_of(&error));
    TableContent { gets, scan: scan.map_err(|error| class_of(&error)), count }
}

async fn count(table: &Table) -> Result<String, Error> {
    let column = Column {
        family: Some("f".into()),
        qualifier: Some("n".into()),
        encoding: Some(Encoding::TextLong as i32),
        ..Column::default()
    };
    let of = |function: Function, column| Aggregate { function: Some(function as i32), column };
    let request = AggregateRequest {
        rows: Some(Rows { column: vec![column], versions: Some(1), ..Rows::default() }),
        aggregate: vec![of(Function::Count, None), of(Function::Sum, Some(0))],
        ..AggregateRequest::default()
    };
    let all = [RowRange { start: Bytes::new(), stop: Bytes::new() }];
    let found = table.aggregate(&request, &all, 2, |_, _| Ok::<(), Error>(())).await?;
    Ok(format!("{:?}", found.groups))
}

fn cells_of(row: &Row) -> Cells {
    let of = |cell: cell::Cell<'_>| {
        (cell.family().to_vec(), cell.qualifier().to_vec(), cell.timestamp(), cell.value.to_vec())
    };
    row.cells.iter().map(|cell| of(cell.view(0))).collect()
}

/// The simple class name of the exception.
pub fn class_of(error: &Error) -> String {
    match error {
        Error::Remote(exception) => {
            let class = exception.class.rsplit(['.', '$']).next().unwrap().to_string();
            match exception.message.contains("Corrupt") && !class.contains("Corrupt") {
                true => format!("{class} caused by corruption"),
                false => class,
            }
        }
        Error::Exhausted { last, .. } => class_of(last),
        Error::NoRegion { .. } => "no region is open".into(),
        Error::TableNotFound(_) => "TableNotFoundException".into(),
        Error::TableNotEnabled(_) => "TableNotEnabledException".into(),
        // `hbase:meta` has the address of the region's last server, which used another port.
        Error::Connection { .. } => "region closed".into(),
        other => {
            let text = other.to_string();
            text.split(':').next().unwrap_or_default().to_string()
        }
    }
}
