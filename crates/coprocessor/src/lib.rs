//! Endpoints. They are services of regions in addition to reads and writes, and compute
//! where the blocks are.
//!
//! * [`Endpoints`]: the services of a region, and dispatch of calls;
//! * [`call`]: input and response of a call;
//! * [`aggregate`]: `AggregateService`, aggregates of a column;
//! * [`columns`]: `ColumnService`, Grampus's own: groups and aggregates over typed columns, and
//!   selection of rows;
//! * [`multi_row`]: `MultiRowMutationService`, atomic changes of several rows;
//! * [`row_count`]: `RowCountService`, HBase's example;
//! * [`scan`]: scans of any duration; [`background`]: low-priority threads for them.
//!
//! Not here: connections, quotas, and the regions of a server.

mod aggregate;
mod background;
mod call;
mod columns;
mod endpoints;
mod error;
mod multi_row;
mod row_count;
mod scan;

pub use call::Response;
pub use endpoints::Endpoints;
pub use error::{Error, Result};
