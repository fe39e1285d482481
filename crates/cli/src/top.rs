//! `grampus top`: the equivalent of HBase's hbtop, for any cluster whose master responds as HBase's
//! does.
//!
//! * `cluster`: a sample of the cluster, from the master's status; `rates`: differences between
//!   samples;
//! * `record`, `field`, `value`: lines and their values; `mode`: the kinds of lines; `filter`: the
//!   filters of lines;
//! * `view`: the user's settings of the display; `columns`, `words`: formatting;
//! * `app` with `prompt`: key handling; `screen`: drawing; `terminal`: the terminal;
//! * `batch`: output as plain text.
//!
//! Only `terminal` accesses a terminal, and only `source` the network. All else computes values
//! from values.

mod app;
mod batch;
mod cluster;
mod columns;
mod field;
mod filter;
mod mode;
mod prompt;
mod rates;
mod record;
mod screen;
mod source;
mod terminal;
mod value;
mod view;
mod words;

use std::io::{self, IsTerminal};
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use clap::Args;
use client::ClusterKey;

use app::App;
use field::Field;
use filter::Filter;
use source::Source;
use value::Case;
use view::{Order, View};

pub use mode::Mode;

/// The minimum interval. Servers report every three seconds, so a shorter interval shows little
/// new.
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Options of `grampus top`.
#[derive(Debug, Clone, Args)]
pub struct TopArguments {
    /// Seconds between two updates (0.1 to 86400)
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = delay)]
    pub delay: Duration,
    /// What each line shows; the first letter suffices, s for region servers
    #[arg(short, long, default_value = "region")]
    pub mode: Mode,
    /// Exit after N updates
    #[arg(short = 'n', long, alias = "numberOfIterations", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,
    /// Print plain text, for a pipe or a file
    #[arg(short, long, alias = "batchMode")]
    pub batch: bool,
    /// Field to sort by; a leading - puts low values first
    #[arg(short, long, alias = "sortField", value_name = "FIELD", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Show only these fields, in this order
    #[arg(short, long, value_name = "FIELD,...", value_delimiter = ',')]
    pub fields: Vec<String>,
    /// Show only matching lines, for example TABLE=part, "#REQ/S>100" or !NAMESPACE==hbase
    #[arg(short = 'i', long, alias = "filters", value_name = "FILTER,...", value_delimiter = ',')]
    pub filter: Vec<String>,
    /// Print the names of the mode's fields and exit
    #[arg(short = 'O', long, alias = "outputFieldNames")]
    pub field_names: bool,
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Parses a delay in seconds.
fn delay(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.trim().parse().map_err(|_| format!("'{text}' is not a number of seconds"))?;
    let delay = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    match (DELAY_MIN..=DELAY_MAX).contains(&delay) {
        true => Ok(delay),
        false => Err("the delay must be 0.1 to 86400 seconds".to_string()),
    }
}

/// Shows the cluster until the user quits, `ends` is ready, or the requested updates are done.
///
/// # Errors
/// A one-line message for the user: an invalid argument, or a cluster that is unreachable at the
/// first update. If a later update fails, polling continues.
pub async fn top(env: Env, ends: BoxFuture<'static, ()>, arguments: &TopArguments) -> Result<(), String> {
    let view = view(arguments)?;
    if arguments.field_names {
        return batch::names(&view);
    }
    if !arguments.batch && !io::stdout().is_terminal() {
        return Err("standard output is not a terminal; use --batch for plain text".to_string());
    }
    let mut source = Source::new(env, arguments)?;
    let first = source.sample().await?;
    if arguments.batch {
        return batch::run(source, view, first, arguments).await;
    }
    let app = App::new(view, first, arguments.delay);
    terminal::run(source, app, ends, arguments.iterations).await
}

/// The view that the arguments describe.
fn view(arguments: &TopArguments) -> Result<View, String> {
    let mut view = View::new(arguments.mode);
    let all: Vec<Field> = arguments.mode.fields().into_iter().map(|(field, _)| field).collect();
    if !arguments.fields.is_empty() {
        let chosen = arguments.fields.iter().map(|name| filter::named(name, &all));
        view.show_only(&chosen.collect::<Result<Vec<_>, _>>()?);
    }
    if let Some(sort) = &arguments.sort {
        let (order, name) = match sort.strip_prefix('-') {
            Some(name) => (Order::LowFirst, name),
            None => (Order::HighFirst, sort.strip_prefix('+').unwrap_or(sort)),
        };
        (view.sort, view.order) = (filter::named(name, &all)?, order);
    }
    let filters = arguments.filter.iter().map(|text| Filter::parse(text, &all, Case::Matters));
    view.filters = filters.collect::<Result<Vec<_>, _>>()?;
    Ok(view)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        top: TopArguments,
    }

    fn of(line: &str) -> Result<View, String> {
        let words = std::iter::once("top").chain(line.split_whitespace());
        view(&Line::try_parse_from(words).map_err(|error| error.to_string())?.top)
    }

    #[test]
    fn arguments_choose_the_view() {
        let view = of("-m t --sort -SF --fields TABLE,sf -i #REQ/S>=5,!TABLE=x").unwrap();
        assert_eq!((view.mode, view.sort, view.order), (Mode::Table, Field::StoreFileSize, Order::LowFirst));
        assert_eq!(view.visible_fields(), [Field::Table, Field::StoreFileSize]);
        let filters: Vec<String> = view.filters.iter().map(ToString::to_string).collect();
        assert_eq!(filters, ["#REQ/S>=5", "!TABLE=x"]);
        assert_eq!(of("-m s -s +UHEAP").unwrap().order, Order::HighFirst);
        assert_eq!(of("--mode user").unwrap().sort, Field::Requests);
    }

    #[test]
    fn invalid_arguments_are_reported() {
        for (line, result) in [
            ("-m t --sort SKEY", "unknown field 'SKEY'; expected one of NAMESPACE, TABLE"),
            ("--fields x", "unknown field 'x'"),
            ("--filter SF>big", "SF cannot be 'big'"),
            ("-m z", "invalid value 'z'"),
            ("-d 0", "0.1 to 86400"),
            ("-d NaN", "0.1 to 86400"),
        ] {
            let error = of(line).unwrap_err();
            assert!(error.contains(result), "{line}: {error}");
        }
    }
}
