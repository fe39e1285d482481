//! Layer 5: endpoints: services of regions beside their reads and writes, which compute where the blocks are.
//!
//! * [`Endpoints`]: which services a region has, and who answers a call of one;
//! * [`columns`]: `ColumnService`, Grampus' own: groups and aggregates over typed columns, and rows of them;
//! * [`multi_row`]: `MultiRowMutationService`, changes of several rows at once.
//!
//! Knows nothing about: connections, quotas, which regions a server has.

pub mod columns;
mod endpoints;
mod error;
pub mod multi_row;

pub use endpoints::{Endpoints, Response};
pub use error::{Error, Result};
