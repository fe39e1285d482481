//! Helpers shared by the client's tests.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod columns;
pub mod fake;
pub mod os;
pub mod silent;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::Row;

pub const FAMILY: &[u8] = b"f";

pub fn put(row: &str, qualifier: &str, value: &str) -> Mutation {
    let cell = KeyValue::new(
        row.as_bytes(),
        FAMILY,
        qualifier.as_bytes(),
        LATEST_TIMESTAMP,
        CellType::Put,
        value.as_bytes(),
    );
    Mutation::put(Bytes::copy_from_slice(row.as_bytes()), vec![cell])
}

pub fn get(row: &str) -> Get {
    Get {
        row: Bytes::copy_from_slice(row.as_bytes()),
        selection: CellSelection::default().into(),
        existence_only: false,
    }
}

pub fn keys(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| String::from_utf8_lossy(row.key()).into_owned()).collect()
}
