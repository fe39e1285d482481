//! What is asked of `AggregateService`: a scan, and the class of a column interpreter.

use bytes::Bytes;
use cell::filter::Filter;
use cell::query::{CellSelection, Scan};
use prost::Message;
use wire::convert::from_proto;
use wire::exception::{Answer, JavaException};

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
/// `IOException`, as from HBase: of a class that there is not, and of bytes that are not the message it wants.
pub(super) fn interpreter(request: &proto::AggregateRequest) -> Answer<Interpreters> {
    let class = &request.interpreter_class_name;
    let interpreter = match class.strip_prefix("org.apache.hadoop.hbase.client.coprocessor.") {
        Some("LongColumnInterpreter") => Interpreters::Long,
        Some("DoubleColumnInterpreter") => Interpreters::Double,
        Some("BigDecimalColumnInterpreter") => Interpreters::BigDecimal,
        _ => return Err(JavaException::io(format!("java.lang.ClassNotFoundException: {class}"))),
    };
    // All of them want a message without fields.
    if let Some(bytes) = &request.interpreter_specific_bytes {
        proto::EmptyMsg::decode(bytes.clone())
            .map_err(|_| JavaException::io("java.lang.reflect.InvocationTargetException"))?;
    }
    Ok(interpreter)
}

/// The scan that a request asks for.
///
/// # Errors
/// Of a scan that is none, as if it were asked for itself.
pub(super) fn scan(request: &proto::AggregateRequest) -> Answer<Scan> {
    Ok(from_proto::scan(&request.scan)?)
}

/// What HBase makes of a scan whose rows it counts: the first column is passed over, so that a single one leaves all of the
/// family; if there was none, and no filter, one cell of each row is enough.
pub(super) fn of_rows(mut scan: Scan) -> Scan {
    let passed_over = qualifiers(&mut scan.selection).map(|qualifiers| qualifiers.remove(0));
    if passed_over.is_none() && scan.selection.filter.is_none() {
        scan.selection.filter = Some(Filter::FirstKeyOnly.into());
    }
    if let Some(family) = scan.selection.columns.first_mut().filter(|_| !scan.raw) {
        // Of a raw scan HBase wants no columns, and none that are left are some.
        family.qualifiers.take_if(|qualifiers| qualifiers.is_empty());
    }
    scan
}

/// Whether a median's weights have a column.
pub(super) fn has_weights(scan: &mut Scan) -> bool {
    qualifiers(&mut scan.selection).is_some_and(|qualifiers| qualifiers.len() > 1)
}

/// The columns of the first family, if there are any.
fn qualifiers(selection: &mut CellSelection) -> Option<&mut Vec<Bytes>> {
    let qualifiers = selection.columns.first_mut()?.qualifiers.as_mut();
    qualifiers.filter(|qualifiers| !qualifiers.is_empty())
}
