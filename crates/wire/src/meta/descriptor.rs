//! The families and attributes of `hbase:meta` itself.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};

use crate::meta::{INFO, REPLICATION_BARRIER, TABLE};

/// The descriptor of `hbase:meta` with exactly the attributes that HBase 2.5.10 gives it.
pub fn descriptor() -> TableDescriptor {
    let mut table = TableDescriptor::new(TableName::meta())
        .with_family(family(INFO, "3", "8192"))
        .with_family(family(REPLICATION_BARRIER, "2147483647", "65536"))
        .with_family(family(TABLE, "3", "8192"));
    let attributes = [
        ("IS_META", "true"),
        ("coprocessor$1", "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|"),
        ("hbase.store.file-tracker.impl", "DEFAULT"),
    ];
    for (name, value) in attributes {
        table.attributes.insert(Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes()));
    }
    table
}

fn family(name: &'static [u8], versions: &str, block_bytes: &str) -> FamilyDescriptor {
    FamilyDescriptor::new(name)
        .with("INDEX_BLOCK_ENCODING", "NONE")
        .with("VERSIONS", versions)
        .with("KEEP_DELETED_CELLS", "FALSE")
        .with("DATA_BLOCK_ENCODING", "ROW_INDEX_V1")
        .with("TTL", "2147483647")
        .with("MIN_VERSIONS", "0")
        .with("REPLICATION_SCOPE", "0")
        .with("BLOOMFILTER", "ROWCOL")
        .with("IN_MEMORY", "true")
        .with("COMPRESSION", "NONE")
        .with("BLOCKCACHE", "true")
        .with("BLOCKSIZE", block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::magic::without_magic;

    /// The descriptor file of `hbase:meta` in a root directory that HBase 2.5.10 created.
    #[test]
    fn meta_is_that_of_hbase() {
        let file = Bytes::from_static(include_bytes!("../../tests/vectors/meta.tableinfo"));
        let schema: proto::TableSchema = without_magic(&file).unwrap();
        assert_eq!(descriptor(), TableDescriptor::try_from(&schema).unwrap());
    }
}
