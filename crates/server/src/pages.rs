//! What the pages of both roles show: figures of this moment and of the last hour, as values.
//!
//! A page is made when somebody asks for it, by a thread of low priority; nothing here is asked by a request of a
//! client.

mod common;
mod master;
mod plots;
mod region_server;

pub(crate) use common::{Common, Peers};
pub(crate) use master::MasterPages;
pub(crate) use region_server::RegionServerPages;
