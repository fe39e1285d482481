//! The tests of regions through their public interface.
//!
//! One program, because each further one would compile the generic code of its dependencies again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bulk_load;
mod caching;
mod change;
mod common;
mod crash;
mod families;
mod fencing;
mod filters;
mod full;
mod inventory;
mod large_cells;
mod memstore_size;
mod mob;
mod model;
mod reads;
mod region;
mod replay;
mod second_level_cache;
mod split;
mod split_vectors;
mod storage_policies;
mod stored;
