//! The command `aggregate`, which calls Grampus' ColumnService to aggregate columns in the servers.

use bytes::Bytes;
use cell::query::TimeRange;
use client::columns::RowRange;
use client::{Error, Table};
use columnar::predicate::Operator;
use columnar::{Aggregate, Column, ColumnLocation, Encoding, Function, Kind, Partial, Predicate, State};
use proto::grampus::AggregateRequest;
use wire::convert::columns::request::{RowQuery, aggregate_message, rows_message};

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Column as Written, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;
use crate::shell::text::{binary, quoted};
use crate::shell::value::Value;

/// Regions queried concurrently.
const PARALLEL: usize = 16;
/// Maximum number of groups to show. Larger results need SQL.
const GROUPS_MAX: usize = 100_000;

pub(super) const GROUP: Group = Group {
    name: "aggregation",
    commands: &[Command {
        name: "aggregate",
        arity: Arity::between(2, 3),
        aliases: &[],
        summary: "Count, sum and otherwise aggregate columns in the servers, by groups; not in HBase",
        usage: "  grampus> aggregate 't1', 'count(*)'\n  \
                grampus> aggregate 't1', ['count(*)', 'sum(f1:amount:text_long)'], {BY => 'f1:town'}\n  \
                grampus> aggregate 't1', 'max(f1:at:bytes_long)', {BY => ['f1:a', 'f1:b'], ONLY => {'f1:kind' => 'x'}}\n  \
                grampus> aggregate 't1', 'count(f1:q)', {STARTROW => 'a', STOPROW => 'm', TIMERANGE => [1, 1700000000]}\n\n\
                Functions: count, sum, min, max, avg, variance, distinct (approximate count), median (approximate).\n\
                Numbers need an encoding: text_long, text_double, bytes_int, bytes_long, bytes_double or another one\n\
                of grampus.pb.Encoding. Columns without an encoding are bytes. ONLY restricts the rows to those\n\
                whose columns have these values.",
        run: |session, arguments| Box::pin(aggregate(session, arguments)),
    }],
};

async fn aggregate(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    let wanted = arguments.required("an aggregate, for example 'count(*)'")?.into_elements();
    let mut options = arguments.options()?;
    arguments.finish()?;
    let mut query = AggregateQuery::default();
    for value in wanted {
        query.add_aggregate(&value)?;
    }
    query.take(&mut options)?;
    options.finish()?;
    let found = query.run(&session.client.table(table)).await?;
    let headers = (query.groups.join(", "), query.headers.join(", "));
    session.printer.header(if headers.0.is_empty() { "GROUP" } else { &headers.0 }, &headers.1)?;
    let mut groups: Vec<(String, String)> =
        found.groups.iter().map(|(key, states)| query.format_group(key, states)).collect();
    groups.sort();
    for (key, found) in &groups {
        session.printer.pair(key, found)?;
    }
    session.printer.footer(groups.len() as u64)?;
    Ok(Outcome::Done)
}

/// The number of rows of a table, counted by its servers; `None` if the servers are HBase's and do
/// not support it.
pub(super) async fn count_by_servers(table: &Table) -> Result<Option<u64>> {
    let mut query = AggregateQuery::default();
    query.add_aggregate(&Value::Text(b"count(*)".to_vec()))?;
    match query.run(table).await {
        Ok(found) => Ok(Some(found.groups.first().map_or(0, |(_, states)| match states.first() {
            Some(State::Count(rows)) => *rows,
            _ => 0,
        }))),
        Err(ShellError::Client(error)) if is_unknown_service(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_unknown_service(error: &Error) -> bool {
    match error {
        Error::Remote(refused) => refused.class.ends_with("UnknownProtocolException"),
        Error::Exhausted { last, .. } => is_unknown_service(last),
        _ => false,
    }
}

/// The query: aggregates, groups, and restrictions of the rows.
#[derive(Default)]
struct AggregateQuery {
    columns: Vec<Column>,
    aggregates: Vec<Aggregate>,
    headers: Vec<String>,
    group_by: Vec<u32>,
    groups: Vec<String>,
    only: Vec<Predicate>,
    range: RowRange,
    time_range: Option<TimeRange>,
}

impl AggregateQuery {
    /// Parses `function(column)` and adds it to the query.
    fn add_aggregate(&mut self, value: &Value) -> Result<()> {
        let written = value.string().unwrap_or_default();
        let parts = written.strip_suffix(')').and_then(|inner| inner.split_once('('));
        let Some((name, column)) = parts else {
            return usage(format!(
                "{value} is not an aggregate; write 'count(*)' or 'sum(family:qualifier:text_long)'"
            ));
        };
        let function = match name.trim().to_ascii_lowercase().as_str() {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "min" => Function::Min,
            "max" => Function::Max,
            "avg" => Function::Average,
            "variance" => Function::Variance,
            "distinct" => Function::Distinct,
            "median" => Function::Quantiles,
            _ => return usage(format!("there is no function {name}; see: help 'aggregate'")),
        };
        let column = match column.trim() {
            "*" => None,
            column => Some(self.column(column.as_bytes())?),
        };
        self.aggregates.push(Aggregate { function, column });
        self.headers.push(written);
        Ok(())
    }

    fn take(&mut self, options: &mut Options) -> Result<()> {
        for value in options.take("BY").map(Value::into_elements).unwrap_or_default() {
            let written = column_text(&value)?;
            let at = self.column(&written)?;
            self.group_by.push(at as u32);
            self.groups.push(binary(&written));
        }
        match options.take("ONLY") {
            None => {}
            Some(Value::Hash(pairs)) => {
                for (column, value) in pairs {
                    let at = self.column(&column_text(&column)?)?;
                    let value = self.comparison_value(at, &value)?;
                    self.only.push(Predicate::Compare(at, Operator::Equal, value));
                }
            }
            Some(other) => return usage(format!("ONLY must be {{column => value}}, not {other}")),
        }
        self.range.start = options.bytes("STARTROW")?.unwrap_or_default().into();
        self.range.stop = options.bytes("STOPROW")?.unwrap_or_default().into();
        self.time_range = Some(options.time_range()?);
        Ok(())
    }

    /// The index of a column, given as `family:qualifier` and optionally `:encoding`. Adds the
    /// column if it is new.
    fn column(&mut self, written: &[u8]) -> Result<usize> {
        let (name, encoding) = parse_encoding(written)?;
        let Written { family, qualifier } = Written::parse(name)?;
        let Some(qualifier) = qualifier else {
            return usage(format!("{} is no column; write 'family:qualifier'", quoted(written)));
        };
        let column = Column { location: ColumnLocation::Cell { family, qualifier }, encoding, scale: 0 };
        let known = self.columns.iter().position(|known| *known == column);
        Ok(known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        }))
    }

    /// Converts a value to the type of a column, to compare the column with it.
    fn comparison_value(&self, at: usize, value: &Value) -> Result<columnar::Value> {
        let compared = match self.columns[at].kind() {
            Kind::Whole => value.integer().map(columnar::Value::Whole),
            Kind::Real => value.string().and_then(|text| text.parse().ok()).map(columnar::Value::Real),
            Kind::Raw => value.bytes().map(|bytes| columnar::Value::Raw(bytes.into())),
            Kind::Decimal { .. } => None,
        };
        compared.ok_or_else(|| {
            ShellError::Usage(format!("{value} is not a valid value of {}", self.columns[at].location))
        })
    }

    async fn run(&self, table: &Table) -> Result<Partial> {
        let predicate = match &self.only[..] {
            [] => None,
            only => Some(Predicate::All(only.to_vec())),
        };
        let rows = RowQuery {
            range: (Bytes::new(), Bytes::new()),
            time_range: self.time_range.unwrap_or(TimeRange::ALL),
            versions: 1,
            families: Vec::new(),
            columns: self.columns.clone(),
            predicate,
        };
        let request = AggregateRequest {
            rows: Some(rows_message(&rows)),
            group_by: self.group_by.clone(),
            aggregate: self.aggregates.iter().map(aggregate_message).collect(),
            ..AggregateRequest::default()
        };
        let ranges = std::slice::from_ref(&self.range);
        table
            .aggregate(&request, ranges, PARALLEL, |_, merger| match merger.len() > GROUPS_MAX {
                true => usage(format!(
                    "the result has more than {GROUPS_MAX} groups; use SQL to sort and limit them: grampus sql"
                )),
                false => Ok(()),
            })
            .await
    }

    /// Formats a group as two columns: its key and its results.
    fn format_group(&self, key: &[columnar::Value], states: &[State]) -> (String, String) {
        let key: Vec<String> = key.iter().map(format_value).collect();
        let of = |(aggregate, state): (&Aggregate, &State)| match (aggregate.function, state) {
            (Function::Average, State::Sum(count, sum)) if *count > 0 => format_mean(*count, sum),
            _ => format_state(state),
        };
        let found: Vec<String> = self.aggregates.iter().zip(states).map(of).collect();
        (if key.is_empty() { "all".into() } else { key.join(", ") }, found.join(", "))
    }
}

fn format_mean(count: u64, sum: &columnar::Value) -> String {
    let sum = match sum {
        columnar::Value::Real(sum) => *sum,
        columnar::Value::Decimal(sum) => *sum as f64,
        columnar::Value::Whole(sum) => *sum as f64,
        other => return format_value(other),
    };
    (sum / count as f64).to_string()
}

fn column_text(value: &Value) -> Result<Vec<u8>> {
    value.bytes().ok_or_else(|| ShellError::Usage(format!("{value} is not a column")))
}

/// Splits off the encoding after the last colon, if there is one.
fn parse_encoding(written: &[u8]) -> Result<(&[u8], Encoding)> {
    let colon = written.iter().rposition(|byte| *byte == b':');
    let named = colon.and_then(|at| {
        let name = std::str::from_utf8(&written[at + 1..]).ok()?;
        Some((&written[..at], Encoding::from_name(&name.to_ascii_lowercase())?))
    });
    match named {
        Some((column, _)) if !column.contains(&b':') => Ok((written, Encoding::Raw)),
        Some((_, encoding)) if matches!(encoding.kind(0), Kind::Decimal { .. }) => {
            usage("decimals need a scale, which only SQL can declare; see: grampus sql")
        }
        Some(named) => Ok(named),
        None => Ok((written, Encoding::Raw)),
    }
}

fn format_value(value: &columnar::Value) -> String {
    match value {
        columnar::Value::Null => "nil".into(),
        columnar::Value::Whole(number) => number.to_string(),
        columnar::Value::Real(number) => number.to_string(),
        columnar::Value::Decimal(number) => number.to_string(),
        columnar::Value::Raw(bytes) => binary(bytes),
    }
}

fn format_state(state: &State) -> String {
    let real = |number: Option<f64>| number.map_or("nil".into(), |number| number.to_string());
    match state {
        State::Count(count) => count.to_string(),
        State::Sum(0, _) => "nil".into(),
        State::Sum(_, sum) => format_value(sum),
        State::Min(value) | State::Max(value) => format_value(value),
        State::Variance(moments) => real(moments.sample_variance()),
        State::Distinct(distinct) => distinct.estimate().to_string(),
        State::Quantiles(quantiles) => real(quantiles.at(0.5)),
    }
}
