//! Layer 5: endpoints: services of regions beside their reads and writes, which compute where the blocks are.
//!
//! * [`Endpoints`]: which services a region has, and who answers a call of one;
//! * [`call`]: what a call is given, and what it is answered with;
//! * [`aggregate`]: `AggregateService`, numbers of a column in one;
//! * [`columns`]: `ColumnService`, Grampus' own: groups and aggregates over typed columns, and rows of them;
//! * [`multi_row`]: `MultiRowMutationService`, changes of several rows at once;
//! * [`row_count`]: `RowCountService`, HBase's example;
//! * [`reading`]: a scan that takes as long as it takes; [`background`]: threads that it does not hold up others on.
//!
//! Knows nothing about: connections, quotas, which regions a server has.

mod aggregate;
mod background;
mod call;
mod columns;
mod endpoints;
mod error;
mod multi_row;
mod reading;
mod row_count;

pub use call::Response;
pub use endpoints::Endpoints;
pub use error::{Error, Result};
