//! Where rows come from: the cluster, or in tests something that acts like it.

use std::fmt;

use async_trait::async_trait;
use cell::schema::TableName;
use client::columns::{Progress, RowRange};
use client::{Client, Error};
use columnar::{Merger, Partial};
use datafusion::error::{DataFusionError, Result};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use proto::grampus::{AggregateRequest, SelectRequest, SelectResponse};
use wire::exception::class;

/// Told how far an aggregation is and how many groups there are; its error ends it.
pub type Watch<'a> = Box<dyn FnMut(&Progress, &Merger) -> Result<()> + Send + 'a>;

/// Changes what is asked for, before each answer: which rows are wanted, and how many bytes of them. What is given stays.
pub type Amend = Box<dyn FnMut(&mut SelectRequest) + Send>;

/// Tables that rows are selected and aggregated from.
#[async_trait]
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// What of some ranges, which are in order, is in each region that has some.
    async fn regions(&self, table: &TableName, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>>;

    /// Rows of one range in order, answer by answer.
    fn select(
        &self,
        table: &TableName,
        request: SelectRequest,
        range: RowRange,
        amend: Amend,
    ) -> BoxStream<'static, Result<SelectResponse>>;

    /// Aggregates all rows of a request in some ranges, which are in order.
    async fn aggregate(
        &self,
        table: &TableName,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        watch: Watch<'_>,
    ) -> Result<Partial>;
}

/// Tables of a cluster.
pub struct Cluster(pub Client);

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster")
    }
}

#[async_trait]
impl Source for Cluster {
    async fn regions(&self, table: &TableName, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>> {
        self.0.table(table.clone()).ranges_by_region(ranges).await.map_err(external)
    }

    fn select(
        &self,
        table: &TableName,
        request: SelectRequest,
        range: RowRange,
        amend: Amend,
    ) -> BoxStream<'static, Result<SelectResponse>> {
        let selection = self.0.table(table.clone()).select(request, range);
        futures_util::stream::try_unfold((selection, amend), |(mut selection, mut amend)| async {
            amend(selection.request_mut());
            let answer = selection.next().await.map_err(external)?;
            Ok(answer.map(|answer| (answer, (selection, amend))))
        })
        .boxed()
    }

    async fn aggregate(
        &self,
        table: &TableName,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        mut watch: Watch<'_>,
    ) -> Result<Partial> {
        let table = self.0.table(table.clone());
        let watched = table.aggregate(request, ranges, parallel, |progress, merger| {
            watch(progress, merger).map_err(Stopped::ByWatch)
        });
        watched.await.map_err(|stopped| match stopped {
            Stopped::ByCluster(error) => external(error),
            Stopped::ByWatch(error) => error,
        })
    }
}

enum Stopped {
    ByCluster(Error),
    ByWatch(DataFusionError),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::ByCluster(error)
    }
}

/// A failure of the cluster's, with what to do about it where that is known.
pub fn external(error: Error) -> DataFusionError {
    let advice = match &error {
        Error::TableNotFound(_) => "; it was there when it was declared: DROP TABLE removes the declaration",
        Error::TableNotEnabled(_) => "; enable it in the shell",
        Error::Registry(_) => "; is the server running, and is --zookeeper right?",
        _ if error.is_class(class::UNKNOWN_PROTOCOL) => {
            "; SQL needs the columns' endpoint, which Grampus has and HBase has not"
        }
        _ => "",
    };
    DataFusionError::External(format!("{error}{advice}").into())
}
