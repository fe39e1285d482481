//! Encodes requests as our own client and master send them.

use bytes::{Bytes, BytesMut};
use cell::LATEST_TIMESTAMP;
use cell::codec::Codec;
use cell::condition::{ColumnTest, Condition, Test};
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::query::{CellSelection, Get, Scan, TimeRange};
use cell::{CellType, KeyValue};
use prost::Message;
use proto::mutation_proto::column_value::QualifierValue;
use proto::mutation_proto::{ColumnValue, DeleteType, Durability as ProtoDurability, MutationType};

use crate::convert::from_proto_mutation::CLUSTER_IDS_ATTRIBUTE;
use crate::filter;

/// The message of a read of one row.
pub fn get(get: &Get) -> proto::Get {
    let selection = &get.selection;
    proto::Get {
        row: get.row.clone(),
        column: columns(selection),
        time_range: time_range(selection.time_range),
        max_versions: Some(selection.max_versions),
        cache_blocks: (!selection.cache_blocks).then_some(false),
        store_limit: selection.store_limit,
        store_offset: (selection.store_offset > 0).then_some(selection.store_offset),
        existence_only: get.existence_only.then_some(true),
        cf_time_range: family_time_ranges(selection),
        filter: selection.filter.as_deref().map(filter::to_proto),
        load_column_families_on_demand: selection.load_families_on_demand,
        ..proto::Get::default()
    }
}

/// The message of a read of rows in order.
pub fn scan(scan: &Scan) -> proto::Scan {
    let selection = &scan.selection;
    let raw = proto::NameBytesPair { name: "_raw_".into(), value: Some(Bytes::from_static(&[0xff])) };
    proto::Scan {
        column: columns(selection),
        attribute: if scan.raw { vec![raw] } else { Vec::new() },
        start_row: (!scan.start_row.is_empty()).then(|| scan.start_row.clone()),
        stop_row: (!scan.stop_row.is_empty()).then(|| scan.stop_row.clone()),
        time_range: time_range(selection.time_range),
        max_versions: Some(selection.max_versions),
        cache_blocks: (!selection.cache_blocks).then_some(false),
        batch_size: (scan.batch > 0).then_some(scan.batch),
        store_limit: selection.store_limit,
        store_offset: (selection.store_offset > 0).then_some(selection.store_offset),
        reversed: scan.reversed.then_some(true),
        cf_time_range: family_time_ranges(selection),
        filter: selection.filter.as_deref().map(filter::to_proto),
        load_column_families_on_demand: selection.load_families_on_demand,
        mvcc_read_point: scan.read_point,
        include_start_row: Some(scan.include_start_row),
        include_stop_row: Some(scan.include_stop_row),
        ..proto::Scan::default()
    }
}

/// The message of a mutation with its cells inside.
pub fn mutation(mutation: &Mutation) -> proto::MutationProto {
    let mut columns: Vec<ColumnValue> = Vec::new();
    for cell in &mutation.cells {
        let family = cell.view(0).family();
        if columns.last().is_none_or(|column| column.family != family) {
            columns.push(ColumnValue { family: Bytes::copy_from_slice(family), qualifier_value: Vec::new() });
        }
        let value = qualifier_value(mutation.kind, cell);
        columns.last_mut().expect("just pushed").qualifier_value.push(value);
    }
    proto::MutationProto { column_value: columns, ..without_cells(mutation) }
}

/// The message of a mutation whose cells are appended to a cell block, without their tags.
pub fn mutation_in_block(mutation: &Mutation, block: &mut BytesMut) -> proto::MutationProto {
    mutation_in_block_of(Codec::KeyValue, mutation, block)
}

/// The message of a mutation whose cells are appended to a cell block of `codec`.
pub fn mutation_in_block_of(codec: Codec, mutation: &Mutation, block: &mut BytesMut) -> proto::MutationProto {
    for cell in &mutation.cells {
        codec.write(&cell.view(0), block);
    }
    let count = i32::try_from(mutation.cells.len()).expect("a mutation has fewer than 2^31 cells");
    proto::MutationProto { associated_cell_count: Some(count), ..without_cells(mutation) }
}

/// The message of a condition, as HBase's clients send it.
pub fn condition(condition: &Condition) -> proto::Condition {
    let message = match &condition.test {
        Test::Filter(filter) => {
            proto::Condition { filter: Some(filter::to_proto(filter)), ..proto::Condition::default() }
        }
        Test::Column(test) => column_test(test),
    };
    proto::Condition { row: condition.row.clone(), time_range: time_range(condition.time_range), ..message }
}

fn column_test(test: &ColumnTest) -> proto::Condition {
    let comparable = proto::ByteArrayComparable { value: Some(test.value.clone()) };
    let comparator = proto::BinaryComparator { comparable };
    proto::Condition {
        family: Some(test.family.clone()),
        qualifier: Some(test.qualifier.clone()),
        compare_type: Some(filter::compare_type(test.operator)),
        comparator: Some(proto::Comparator {
            name: "org.apache.hadoop.hbase.filter.BinaryComparator".into(),
            serialized_comparator: Some(comparator.encode_to_vec().into()),
        }),
        ..proto::Condition::default()
    }
}

fn without_cells(mutation: &Mutation) -> proto::MutationProto {
    let mutate_type = match mutation.kind {
        MutationKind::Put => MutationType::Put,
        MutationKind::Delete => MutationType::Delete,
        MutationKind::Increment => MutationType::Increment,
        MutationKind::Append => MutationType::Append,
    };
    let attribute = |name: &str, value: &[u8]| proto::NameBytesPair {
        name: name.into(),
        value: Some(Bytes::copy_from_slice(value)),
    };
    let ttl = mutation.ttl_ms.map(|ttl_ms| attribute("_ttl", &ttl_ms.to_be_bytes()));
    let cluster_ids = mutation.cluster_ids.as_deref().map(|ids| {
        let mut value = (ids.len() as u32).to_be_bytes().to_vec();
        for (most, least) in ids {
            value.extend_from_slice(&most.to_be_bytes());
            value.extend_from_slice(&least.to_be_bytes());
        }
        attribute(CLUSTER_IDS_ATTRIBUTE, &value)
    });
    let no_results = (!mutation.return_results).then(|| attribute("_rr_", &[0]));
    proto::MutationProto {
        row: Some(mutation.row.clone()),
        mutate_type: Some(mutate_type.into()),
        timestamp: (mutation.timestamp != LATEST_TIMESTAMP).then_some(mutation.timestamp.cast_unsigned()),
        durability: Some(durability(mutation.durability).into()),
        nonce: (mutation.nonce.1 > 0).then_some(mutation.nonce.1),
        attribute: ttl.into_iter().chain(no_results).chain(cluster_ids).collect(),
        time_range: time_range(mutation.time_range),
        ..proto::MutationProto::default()
    }
}

/// A put carries a value even if the cell is a delete marker.
fn qualifier_value(kind: MutationKind, cell: &KeyValue) -> QualifierValue {
    let view = cell.view(0);
    let delete_type = match view.kind() {
        CellType::Delete => Some(DeleteType::DeleteOneVersion),
        CellType::DeleteColumn => Some(DeleteType::DeleteMultipleVersions),
        CellType::DeleteFamily => Some(DeleteType::DeleteFamily),
        CellType::DeleteFamilyVersion => Some(DeleteType::DeleteFamilyVersion),
        CellType::Put | CellType::Minimum | CellType::Maximum => None,
    };
    QualifierValue {
        qualifier: Some(cell.bytes().slice_ref(view.qualifier())),
        value: (kind == MutationKind::Put || delete_type.is_none())
            .then(|| cell.bytes().slice_ref(view.value)),
        timestamp: Some(view.timestamp().cast_unsigned()),
        delete_type: delete_type.map(Into::into),
        tags: (!view.tags.is_empty()).then(|| cell.bytes().slice_ref(view.tags)),
    }
}

fn columns(selection: &CellSelection) -> Vec<proto::Column> {
    let column = |entry: &cell::query::FamilyColumns| proto::Column {
        family: entry.family.clone(),
        qualifier: entry.qualifiers.clone().unwrap_or_default(),
    };
    selection.columns.iter().map(column).collect()
}

fn time_range(range: TimeRange) -> Option<proto::TimeRange> {
    (!range.is_all()).then(|| to_range(range))
}

fn to_range(range: TimeRange) -> proto::TimeRange {
    proto::TimeRange { from: Some(range.from.cast_unsigned()), to: Some(range.to.cast_unsigned()) }
}

fn family_time_ranges(selection: &CellSelection) -> Vec<proto::ColumnFamilyTimeRange> {
    let entry = |(family, range): &(Bytes, TimeRange)| proto::ColumnFamilyTimeRange {
        column_family: family.clone(),
        time_range: to_range(*range),
    };
    selection.family_time_ranges.iter().map(entry).collect()
}

fn durability(durability: Durability) -> ProtoDurability {
    match durability {
        Durability::UseDefault => ProtoDurability::UseDefault,
        Durability::SkipWal => ProtoDurability::SkipWal,
        Durability::AsyncWal => ProtoDurability::AsyncWal,
        Durability::SyncWal => ProtoDurability::SyncWal,
        Durability::FsyncWal => ProtoDurability::FsyncWal,
    }
}
