//! Markers: edits that record events in a region's life and carry no user data.
//!
//! A marker is one cell of family `METAFAMILY`. Its qualifier names the event, and its value is a
//! message. It has a sequence id like any edit, but is never added to a memstore.
//!
//! Source: HBase `WALEdit`; values are compared with markers that HBase wrote.

use bytes::Bytes;
use cell::cell::CellType;
use cell::region::ServerName;
use cell::{Cell, KeyValue};
use prost::Message;
use proto::flush_descriptor::{FlushAction, StoreFlushDescriptor};
use proto::region_event_descriptor::EventType;
use proto::{
    BulkLoadDescriptor, CompactionDescriptor, FlushDescriptor, RegionEventDescriptor, StoreDescriptor,
};

/// The family of all markers (`WALEdit.METAFAMILY`).
pub const FAMILY: &[u8] = b"METAFAMILY";

const COMPACTION: &[u8] = b"HBASE::COMPACTION";
const FLUSH: &[u8] = b"HBASE::FLUSH";
const BULK_LOAD: &[u8] = b"HBASE::BULK_LOAD";
const REGION_OPEN: &[u8] = b"HBASE::REGION_EVENT::REGION_OPEN";
const REGION_CLOSE: &[u8] = b"HBASE::REGION_EVENT::REGION_CLOSE";

/// The region of a marker.
#[derive(Clone, Debug)]
pub struct MarkedRegion {
    /// The table, `namespace:name` or `name`.
    pub table: Bytes,
    /// The encoded name.
    pub encoded: Bytes,
    /// The full name.
    pub name: Bytes,
    /// The region's first row, which is also the row of its markers.
    pub start_key: Bytes,
}

/// A step of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushStep {
    /// The memstores are frozen. Their cells are not in durable store files yet.
    Start,
    /// The store files are in place.
    Commit,
}

/// A family and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyFiles {
    /// The family, whose name is also that of its directory.
    pub family: Bytes,
    /// File names.
    pub files: Vec<String>,
    /// Total bytes of these files.
    pub bytes: u64,
}

/// A compaction: `outputs` replace `inputs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The encoded name of the region.
    pub region: Bytes,
    /// The family.
    pub family: Bytes,
    /// Names of the merged files.
    pub inputs: Vec<String>,
    /// Names of the new files.
    pub outputs: Vec<String>,
}

/// A bulk load: files that were added to stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkLoad {
    /// The sequence id that the cells of the files got; `None` if they got none.
    pub seq_id: Option<u64>,
    /// The files of each family, under their final names.
    pub stores: Vec<FamilyFiles>,
    /// Ids of the clusters that have loaded the files, including this one.
    pub cluster_ids: Vec<String>,
    /// Whether the load is to be replicated.
    pub replicate: bool,
}

/// A decoded marker, with what replay needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A compaction replaced store files.
    Compaction(Compaction),
    /// A bulk load added store files. Replay skips it; replication applies it.
    BulkLoad(BulkLoad),
    /// Only for replicas and tools; replay skips it.
    Other,
}

impl MarkedRegion {
    /// The marker of a compaction.
    pub fn compaction(&self, compaction: &Compaction, now_ms: u64) -> KeyValue {
        let message = CompactionDescriptor {
            table_name: self.table.clone(),
            encoded_region_name: self.encoded.clone(),
            family_name: compaction.family.clone(),
            compaction_input: compaction.inputs.clone(),
            compaction_output: compaction.outputs.clone(),
            store_home_dir: directory_of(&compaction.family),
            region_name: Some(self.name.clone()),
        };
        self.cell(COMPACTION, &message, now_ms)
    }

    /// The marker of a step of a flush. `files` are the files that the flush wrote; none at the
    /// start.
    pub fn flush(&self, step: FlushStep, flush_seq_id: u64, files: &[FamilyFiles], now_ms: u64) -> KeyValue {
        let action = match step {
            FlushStep::Start => FlushAction::StartFlush,
            FlushStep::Commit => FlushAction::CommitFlush,
        };
        let store_flushes = files.iter().map(|store| StoreFlushDescriptor {
            family_name: store.family.clone(),
            store_home_dir: directory_of(&store.family),
            flush_output: store.files.clone(),
        });
        let message = FlushDescriptor {
            action: action.into(),
            table_name: self.table.clone(),
            encoded_region_name: self.encoded.clone(),
            flush_sequence_number: Some(flush_seq_id),
            store_flushes: store_flushes.collect(),
            region_name: Some(self.name.clone()),
        };
        self.cell(FLUSH, &message, now_ms)
    }

    /// The marker of a region that was opened with `seq_id` as its first free sequence id.
    pub fn open(
        &self,
        seq_id: u64,
        files: &[FamilyFiles],
        server: Option<&ServerName>,
        now_ms: u64,
    ) -> KeyValue {
        self.event(EventType::RegionOpen, REGION_OPEN, seq_id, files, server, now_ms)
    }

    /// The marker of a region that was closed with all its edits in store files.
    pub fn close(
        &self,
        seq_id: u64,
        files: &[FamilyFiles],
        server: Option<&ServerName>,
        now_ms: u64,
    ) -> KeyValue {
        self.event(EventType::RegionClose, REGION_CLOSE, seq_id, files, server, now_ms)
    }

    /// The value of the marker of a bulk load.
    pub fn bulk_load_value(&self, load: &BulkLoad) -> Bytes {
        let (namespace, qualifier) = match self.table.iter().position(|byte| *byte == b':') {
            Some(colon) => (self.table.slice(..colon), self.table.slice(colon + 1..)),
            None => (Bytes::from_static(b"default"), self.table.clone()),
        };
        let message = BulkLoadDescriptor {
            table_name: proto::TableName { namespace, qualifier },
            encoded_region_name: self.encoded.clone(),
            stores: load.stores.iter().map(store_descriptor).collect(),
            bulkload_seq_num: load.seq_id.map_or(-1, |seq_id| seq_id as i64),
            cluster_ids: load.cluster_ids.clone(),
            replicate: Some(load.replicate),
        };
        message.encode_to_vec().into()
    }

    /// The marker of a bulk load with this [value](MarkedRegion::bulk_load_value).
    pub fn bulk_load(&self, value: &[u8], now_ms: u64) -> KeyValue {
        self.cell_of(BULK_LOAD, value, now_ms)
    }

    fn event(
        &self,
        event: EventType,
        qualifier: &[u8],
        seq_id: u64,
        files: &[FamilyFiles],
        server: Option<&ServerName>,
        now_ms: u64,
    ) -> KeyValue {
        let stores = files.iter().map(store_descriptor);
        let message = RegionEventDescriptor {
            event_type: event.into(),
            table_name: self.table.clone(),
            encoded_region_name: self.encoded.clone(),
            log_sequence_number: Some(seq_id),
            stores: stores.collect(),
            server: server.map(|server| proto::ServerName {
                host_name: server.host.clone(),
                port: Some(u32::from(server.port)),
                start_code: Some(server.start_code),
            }),
            region_name: Some(self.name.clone()),
        };
        self.cell(qualifier, &message, now_ms)
    }

    fn cell(&self, qualifier: &[u8], message: &impl Message, now_ms: u64) -> KeyValue {
        self.cell_of(qualifier, &message.encode_to_vec(), now_ms)
    }

    fn cell_of(&self, qualifier: &[u8], value: &[u8], now_ms: u64) -> KeyValue {
        // A row is never empty; HBase uses a zero byte for the first region.
        let row: &[u8] = if self.start_key.is_empty() { &[0] } else { &self.start_key };
        KeyValue::new(row, FAMILY, qualifier, now_ms as i64, CellType::Put, value)
    }
}

/// Whether the first of `cells` (each `u32 length | KeyValue`) is a marker. False if the cell is
/// truncated before the end of its family.
pub fn is_marker(cells: &[u8]) -> bool {
    family_and_rest(cells).is_some_and(|(family, _)| family == FAMILY)
}

/// Whether the first of `cells` records that a region was closed, with all its earlier edits in
/// store files. False if the cell is truncated before the end of its qualifier.
pub fn is_close(cells: &[u8]) -> bool {
    family_and_rest(cells).is_some_and(|(family, rest)| family == FAMILY && rest.starts_with(REGION_CLOSE))
}

/// The family of the first cell, and all bytes after the family.
fn family_and_rest(cells: &[u8]) -> Option<(&[u8], &[u8])> {
    // After the cell's length: the lengths of key and value, then the key.
    let key = cells.get(size_of::<u32>() + cell::cell::LENGTHS_LEN..)?;
    let row_len = usize::from(u16::from_be_bytes(*key.first_chunk()?));
    let rest = key.get(size_of::<u16>() + row_len..)?;
    let (family_len, rest) = rest.split_first()?;
    rest.split_at_checked(usize::from(*family_len))
}

/// Decodes a cell of family [`FAMILY`].
///
/// # Errors
/// If the value of the marker of a compaction or bulk load cannot be decoded.
pub fn parse(cell: &Cell<'_>) -> Result<Marker, prost::DecodeError> {
    match cell.qualifier() {
        COMPACTION => {}
        BULK_LOAD => return Ok(Marker::BulkLoad(parse_bulk_load(cell.value)?)),
        _ => return Ok(Marker::Other),
    }
    let message = CompactionDescriptor::decode(cell.value)?;
    Ok(Marker::Compaction(Compaction {
        region: message.encoded_region_name,
        family: message.family_name,
        inputs: message.compaction_input,
        outputs: message.compaction_output,
    }))
}

fn parse_bulk_load(value: &[u8]) -> Result<BulkLoad, prost::DecodeError> {
    let message = BulkLoadDescriptor::decode(value)?;
    let replicate = message.replicate();
    let stores = message.stores.into_iter().map(|store| FamilyFiles {
        family: store.family_name,
        bytes: store.store_file_size_bytes.unwrap_or(0),
        files: store.store_file,
    });
    Ok(BulkLoad {
        seq_id: u64::try_from(message.bulkload_seq_num).ok(),
        stores: stores.collect(),
        cluster_ids: message.cluster_ids,
        replicate,
    })
}

fn store_descriptor(store: &FamilyFiles) -> StoreDescriptor {
    StoreDescriptor {
        family_name: store.family.clone(),
        store_home_dir: directory_of(&store.family),
        store_file: store.files.clone(),
        store_file_size_bytes: (!store.files.is_empty()).then_some(store.bytes),
    }
}

/// A store's directory has the name of its family.
fn directory_of(family: &[u8]) -> String {
    String::from_utf8_lossy(family).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_700_000_000_500;

    fn region() -> MarkedRegion {
        MarkedRegion {
            table: "t1".into(),
            encoded: "1701a7ecba2642ef944c55a801acd7cf".into(),
            name: "t1,a,1700000000000.1701a7ecba2642ef944c55a801acd7cf.".into(),
            start_key: "a".into(),
        }
    }

    fn family(files: &[&str]) -> FamilyFiles {
        FamilyFiles {
            family: "cf".into(),
            files: files.iter().map(|file| file.to_string()).collect(),
            bytes: 0,
        }
    }

    /// `expected` are values of markers in a log that HBase wrote.
    fn check(marker: KeyValue, qualifier: &str, expected: &str) {
        let cell = marker.view(1);
        let hex: String = cell.value.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((cell.row(), cell.family(), cell.timestamp()), (&b"a"[..], FAMILY, NOW_MS as i64));
        assert_eq!(cell.qualifier(), qualifier.as_bytes());
        assert_eq!(hex, expected, "{qualifier}");
    }

    #[test]
    fn markers_are_those_of_hbase() {
        let server = ServerName::parse("h.example.com,16020,1700000000000").unwrap();
        check(
            region().open(2, &[family(&[])], Some(&server), NOW_MS),
            "HBASE::REGION_EVENT::REGION_OPEN",
            "0800120274311a20313730316137656362613236343265663934346335356138303161636437636620022a080a02636612026366\
             32190a0d682e6578616d706c652e636f6d10947d1880d095ffbc313a3474312c612c313730303030303030303030302e31373031\
             613765636261323634326566393434633535613830316163643763662e",
        );
        check(
            region().flush(FlushStep::Start, 6, &[family(&[])], NOW_MS),
            "HBASE::FLUSH",
            "0800120274311a20313730316137656362613236343265663934346335356138303161636437636620062a080a02636612026366\
             323474312c612c313730303030303030303030302e31373031613765636261323634326566393434633535613830316163643763\
             662e",
        );
        check(
            region().flush(FlushStep::Commit, 6, &[family(&["0123456789abcdef0123456789abcdef"])], NOW_MS),
            "HBASE::FLUSH",
            "0801120274311a20313730316137656362613236343265663934346335356138303161636437636620062a2a0a02636612026366\
             1a203031323334353637383961626364656630313233343536373839616263646566323474312c612c3137303030303030303030\
             30302e31373031613765636261323634326566393434633535613830316163643763662e",
        );
    }

    #[test]
    fn a_compaction_marker_is_hbases_and_is_read_back() {
        let compaction = Compaction {
            region: region().encoded,
            family: "cf".into(),
            inputs: vec!["in1".into(), "in2".into()],
            outputs: vec!["out1".into()],
        };
        let marker = region().compaction(&compaction, NOW_MS);
        assert_eq!(parse(&marker.view(1)).unwrap(), Marker::Compaction(compaction));
        check(
            marker,
            "HBASE::COMPACTION",
            "0a027431122031373031613765636261323634326566393434633535613830316163643763661a0263662203696e312203696e32\
             2a046f757431320263663a3474312c612c313730303030303030303030302e313730316137656362613236343265663934346335\
             35613830316163643763662e",
        );
        let broken = KeyValue::new(b"a", FAMILY, COMPACTION, 1, CellType::Put, &[0x0a, 0x7f]);
        assert!(parse(&broken.view(1)).is_err());
    }

    /// Field by field as in HBase's `WAL.proto`.
    #[test]
    fn a_bulk_load_marker_names_table_region_files_and_clusters() {
        let load = BulkLoad {
            seq_id: Some(7),
            stores: vec![FamilyFiles { bytes: 300, ..family(&["ab_SeqId_7_"]) }],
            cluster_ids: vec!["c1".into()],
            replicate: false,
        };
        let value = region().bulk_load_value(&load);
        check(
            region().bulk_load(&value, NOW_MS),
            "HBASE::BULK_LOAD",
            "0a0d0a0764656661756c7412027431122031373031613765636261323634326566393434633535613830316163643763661a18\
             0a02636612026366\
             1a0b61625f53657149645f375f20ac0220072a0263313000",
        );
        let parsed = parse(&region().bulk_load(&value, NOW_MS).view(1)).unwrap();
        assert_eq!(parsed, Marker::BulkLoad(load.clone()));
        let named = MarkedRegion { table: "ns:t".into(), ..region() };
        let message = BulkLoadDescriptor::decode(named.bulk_load_value(&load)).unwrap();
        assert_eq!(
            (&message.table_name.namespace[..], &message.table_name.qualifier[..]),
            (&b"ns"[..], &b"t"[..])
        );
        let unassigned = BulkLoad { seq_id: None, ..load };
        let message = BulkLoadDescriptor::decode(region().bulk_load_value(&unassigned)).unwrap();
        assert_eq!(message.bulkload_seq_num, -1);
    }

    #[test]
    fn markers_of_the_first_region_have_a_row() {
        let first = MarkedRegion { start_key: Bytes::new(), ..region() };
        assert_eq!(first.close(9, &[], None, NOW_MS).view(1).row(), [0]);
    }
}
