//! The rows of `hbase:meta`, as clients read them.
//!
//! ```text
//! row of a region:  table,start key,region id.encoded.   row of a table:  table
//!   info:regioninfo         PBUF + RegionInfo              table:state  TableState, without PBUF
//!   info:server             host:port, kept when closed
//!   info:serverstartcode    8 bytes
//!   info:seqnumDuringOpen   8 bytes
//!   info:sn                 host,port,start code: the server that is to open it
//!   info:state              OPEN, CLOSED, ...
//!   info:splitA, splitB     PBUF + RegionInfo: the daughters, in the row of a split region
//!   info:merge0000, ...     PBUF + RegionInfo: the parents, in the row of a merged region
//! ```
//!
//! * [`row`]: parses rows ([`MetaRow`]) and builds their mutations;
//! * [`state`]: states of regions and tables;
//! * [`descriptor`](mod@descriptor): the families of `hbase:meta` itself.
//!
//! Source: HBase `MetaTableAccessor`, `CatalogFamilyFormat`, `RegionStateStore`.

pub mod descriptor;
pub mod row;
pub mod state;

pub use descriptor::descriptor;
pub use row::{MetaRow, parse_region};
pub use state::{MetaRegionState, TableState};

use bytes::{BufMut, Bytes, BytesMut};
use cell::region::RegionInfo;
use cell::schema::TableName;

/// The family of regions.
pub const INFO: &[u8] = b"info";
/// The family of tables.
pub const TABLE: &[u8] = b"table";
/// The family of serial replication.
pub const REPLICATION_BARRIER: &[u8] = b"rep_barrier";

/// `info:regioninfo`.
pub const REGION_INFO: &[u8] = b"regioninfo";
/// `info:server`.
pub const SERVER: &[u8] = b"server";
/// `info:serverstartcode`.
pub const START_CODE: &[u8] = b"serverstartcode";
/// `info:seqnumDuringOpen`.
pub const OPEN_SEQ_NUM: &[u8] = b"seqnumDuringOpen";
/// `info:sn`.
pub const SERVER_NAME: &[u8] = b"sn";
/// `info:state` and `table:state`.
pub const STATE: &[u8] = b"state";
/// `info:splitA`, in the row of a split parent.
pub const SPLIT_A: &[u8] = b"splitA";
/// `info:splitB`, in the row of a split parent.
pub const SPLIT_B: &[u8] = b"splitB";

/// The prefix of the columns that name the parents of a merged region; four digits follow.
pub const MERGE_PREFIX: &[u8] = b"merge";

/// The row key of a region: its name, or for a replica the name of the region that owns the files.
pub fn region_row(region: &RegionInfo) -> Bytes {
    match region.replica_id {
        0 => region.name(),
        _ => RegionInfo { replica_id: 0, ..region.clone() }.name(),
    }
}

/// The row key of a table: its name.
pub fn table_row(table: &TableName) -> Bytes {
    Bytes::from(table.to_string().into_bytes())
}

/// The range of rows of all regions of a table: the first row, and the first row after the range.
pub fn region_rows(table: &TableName) -> (Bytes, Bytes) {
    // A space sorts before every character of a table name, so no other table is in between.
    (table_with(table, b",,"), table_with(table, b" ,,"))
}

/// The greatest row key that the region of `table` containing `row` can have. A reversed scan from
/// here returns that region first.
pub fn lookup_row(table: &TableName, row: &[u8]) -> Bytes {
    let mut key = BytesMut::from(&*table_with(table, b","));
    key.put_slice(row);
    // Greater than every region id, as HBase's clients write it.
    key.put_slice(b",99999999999999");
    key.freeze()
}

fn table_with(table: &TableName, suffix: &[u8]) -> Bytes {
    let mut row = table.to_string().into_bytes();
    row.extend_from_slice(suffix);
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::CellOrder;
    use cell::schema::TableName;

    fn region(table: &str, start: &'static str) -> RegionInfo {
        RegionInfo::new(TableName::parse(table).unwrap(), start.into(), Bytes::new(), 1_700_000_000_000)
    }

    #[test]
    fn the_row_ranges_of_tables_do_not_overlap() {
        let table = TableName::parse("t1").unwrap();
        let (first, end) = region_rows(&table);
        let inside = |row: &[u8]| {
            CellOrder::Meta.compare_rows(&first, row).is_le()
                && CellOrder::Meta.compare_rows(row, &end).is_lt()
        };
        for start in ["", "a", "a,b", "\u{7f}"] {
            assert!(inside(&region_row(&region("t1", start))), "{start}");
        }
        for other in ["t", "t10", "t1-", "t1.a", "t0", "t1_", "ns:t1", "u"] {
            assert!(!inside(&region_row(&region(other, ""))), "{other}");
            assert!(!inside(&table_row(&TableName::parse(other).unwrap())), "{other}");
        }
        assert!(!inside(&table_row(&table)));
    }

    #[test]
    fn a_reversed_lookup_finds_the_region_first() {
        let table = TableName::parse("t1").unwrap();
        let lookup = lookup_row(&table, b"m");
        let before = |start| CellOrder::Meta.compare_rows(&region_row(&region("t1", start)), &lookup).is_lt();
        assert!(before("") && before("a") && before("m"));
        assert!(!before("m\0") && !before("n"));
    }

    #[test]
    fn replicas_share_the_row_of_their_region() {
        let replica = RegionInfo { replica_id: 1, ..region("tbl", "") };
        assert_eq!(region_row(&replica), "tbl,,1700000000000.a2331f8e4bb5d76a5eee741e708341a5.");
    }
}
