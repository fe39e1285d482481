//! Shared code of the tests of column scans.

pub mod columns;
#[path = "../../../engine/tests/common/mod.rs"]
pub mod regions;
