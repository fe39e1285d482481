//! The content of the status pages of both roles: current metrics and those of the last hour, as
//! values that `web` renders.
//!
//! A page is built on request, by a thread of low priority. Client requests never run this code.

mod common;
mod master;
mod plots;
mod region_server;
mod standby;

pub(crate) use common::PageContext;
pub use common::Peers;
pub use master::MasterPages;
pub use region_server::RegionServerPages;
pub use standby::{StandbyPages, StandbyState};
