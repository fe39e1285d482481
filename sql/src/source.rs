//! The source of rows: the cluster, or a fake one in tests.

use std::fmt;

use async_trait::async_trait;
use cell::schema::TableName;
use client::columns::{Progress, RowRange};
use client::{Client, Error};
use columnar::{Merger, Partial};
use datafusion::error::{DataFusionError, Result};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use proto::exception::class;
use proto::grampus::{AggregateRequest, SelectRequest, SelectResponse};

/// Observes the progress and the number of groups of an aggregation; its error aborts the
/// aggregation.
pub type ProgressCallback<'a> = Box<dyn FnMut(&Progress, &Merger) -> Result<()> + Send + 'a>;

/// Changes a request before each response: the condition on rows, and the maximum number of bytes.
/// The output columns stay.
pub type RequestUpdater = Box<dyn FnMut(&mut SelectRequest) + Send>;

/// Tables whose rows can be selected and aggregated.
#[async_trait]
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// The parts of sorted ranges in each region; regions without any are omitted.
    async fn regions(&self, table: &TableName, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>>;

    /// Selects the rows of one range in order, one response at a time.
    fn select(
        &self,
        table: &TableName,
        request: SelectRequest,
        range: RowRange,
        update_request: RequestUpdater,
    ) -> BoxStream<'static, Result<SelectResponse>>;

    /// Aggregates all rows of a request in some sorted ranges.
    async fn aggregate(
        &self,
        table: &TableName,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        on_progress: ProgressCallback<'_>,
    ) -> Result<Partial>;
}

/// The tables of a cluster.
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
        update_request: RequestUpdater,
    ) -> BoxStream<'static, Result<SelectResponse>> {
        let selection = self.0.table(table.clone()).select(request, range);
        futures_util::stream::try_unfold(
            (selection, update_request),
            |(mut selection, mut update_request)| async {
                update_request(selection.request_mut());
                let response = selection.next().await.map_err(external)?;
                Ok(response.map(|response| (response, (selection, update_request))))
            },
        )
        .boxed()
    }

    async fn aggregate(
        &self,
        table: &TableName,
        request: &AggregateRequest,
        ranges: &[RowRange],
        parallel: usize,
        mut on_progress: ProgressCallback<'_>,
    ) -> Result<Partial> {
        let table = self.0.table(table.clone());
        let result = table.aggregate(request, ranges, parallel, |progress, merger| {
            on_progress(progress, merger).map_err(AggregateError::ByCallback)
        });
        result.await.map_err(|stopped| match stopped {
            AggregateError::ByCluster(error) => external(error),
            AggregateError::ByCallback(error) => error,
        })
    }
}

enum AggregateError {
    ByCluster(Error),
    ByCallback(DataFusionError),
}

impl From<Error> for AggregateError {
    fn from(error: Error) -> AggregateError {
        AggregateError::ByCluster(error)
    }
}

/// Converts an error of the cluster, and adds advice for known causes.
pub fn external(error: Error) -> DataFusionError {
    let advice = match &error {
        Error::TableNotFound(_) => "; it existed when it was declared: DROP TABLE removes the declaration",
        Error::TableNotEnabled(_) => "; enable it in the shell",
        Error::Registry(_) => "; is the server running, and is --zookeeper right?",
        _ if error.is_class(class::UNKNOWN_PROTOCOL) => {
            "; SQL needs the column endpoint of Grampus, which HBase lacks"
        }
        _ => "",
    };
    DataFusionError::External(format!("{error}{advice}").into())
}
