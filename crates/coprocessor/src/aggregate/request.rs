//! Requests to `AggregateService`: a scan, and the class of a column interpreter.

use bytes::Bytes;
use cell::filter::Filter;
use cell::query::{CellSelection, Scan};
use prost::Message;
use proto::exception::{Answer, JavaException};
use wire::convert::from_proto;

/// The interpreters of HBase's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interpreters {
    Long,
    Double,
    BigDecimal,
}

/// The interpreter that a request names.
///
/// # Errors
/// `IOException`, as in HBase: for an unknown class, and for bytes that are not the message that it
/// expects.
pub(super) fn interpreter(request: &proto::AggregateRequest) -> Answer<Interpreters> {
    let class = &request.interpreter_class_name;
    let interpreter = match class.strip_prefix("org.apache.hadoop.hbase.client.coprocessor.") {
        Some("LongColumnInterpreter") => Interpreters::Long,
        Some("DoubleColumnInterpreter") => Interpreters::Double,
        Some("BigDecimalColumnInterpreter") => Interpreters::BigDecimal,
        _ => return Err(JavaException::io(format!("java.lang.ClassNotFoundException: {class}"))),
    };
    // All of them expect a message without fields.
    if let Some(bytes) = &request.interpreter_specific_bytes {
        proto::EmptyMsg::decode(bytes.clone())
            .map_err(|_| JavaException::io("java.lang.reflect.InvocationTargetException"))?;
    }
    Ok(interpreter)
}

/// The scan of a request.
///
/// # Errors
/// If the scan is invalid, as for a Scan call.
pub(super) fn scan(request: &proto::AggregateRequest) -> Answer<Scan> {
    Ok(from_proto::scan(&request.scan)?)
}

/// Rewrites a scan for counting rows, as HBase does. The first column is removed, so a single
/// column selects the whole family. Without any columns and filter, one cell of each row is
/// sufficient.
pub(super) fn of_rows(mut scan: Scan) -> Scan {
    let passed_over = qualifiers(&mut scan.selection).map(|qualifiers| qualifiers.remove(0));
    if passed_over.is_none() && scan.selection.filter.is_none() {
        scan.selection.filter = Some(Filter::FirstKeyOnly.into());
    }
    if let Some(family) = scan.selection.columns.first_mut().filter(|_| !scan.raw) {
        // HBase rejects raw scans with columns, and an empty list of columns still counts.
        family.qualifiers.take_if(|qualifiers| qualifiers.is_empty());
    }
    scan
}

/// Whether the request of a median has a weight column.
pub(super) fn has_weights(scan: &mut Scan) -> bool {
    qualifiers(&mut scan.selection).is_some_and(|qualifiers| qualifiers.len() > 1)
}

/// The columns of the first family; `None` if there are none.
fn qualifiers(selection: &mut CellSelection) -> Option<&mut Vec<Bytes>> {
    let qualifiers = selection.columns.first_mut()?.qualifiers.as_mut();
    qualifiers.filter(|qualifiers| !qualifiers.is_empty())
}
