//! Describes the message of a slow call: its region, its row, the number of actions. It contains no
//! cell values.
//!
//! Source of the format: HBase's `ProtobufUtil.getShortTextFormat` and `getSlowLogParams`.

use prost::Message;

/// Maximum number of bytes of a name or key that are logged. Clients may send long ones, and they
/// are not validated before.
const PRINTABLE_LEN_MAX: usize = 512;
/// Longer messages are not decoded: a small action of a batch takes a hundred times its size when
/// decoded.
const DECODED_LEN_MAX: usize = 64 << 10;

/// Maximum number of families of a scan that are logged.
const FAMILIES_LOGGED_MAX: usize = 10;

/// A name or key in printable form, truncated if it is long.
pub(crate) fn printable(bytes: &[u8]) -> String {
    match bytes.get(..PRINTABLE_LEN_MAX) {
        Some(begin) if bytes.len() > PRINTABLE_LEN_MAX => base::text::to_string_binary(begin) + "...",
        _ => base::text::to_string_binary(bytes),
    }
}

/// The description of a call's message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The full name of its region, or of the first one of several.
    pub region: Option<String>,
    /// The table of that region.
    pub table: Option<String>,
    /// The request's parameters as text.
    pub param: String,
    /// Number of Gets in a batch.
    pub gets: u32,
    /// Number of mutations in a batch.
    pub mutations: u32,
    /// Number of endpoint calls in a batch.
    pub service_calls: u32,
}

impl Details {
    /// Describes a call of `method` with the message `param`.
    pub(crate) fn new(method: &str, param: Option<&[u8]>) -> Details {
        let Some(param) = param.filter(|param| param.len() <= DECODED_LEN_MAX) else {
            return Details::with_param("message too long to decode".into());
        };
        let decoded = match method {
            "Get" => proto::GetRequest::decode(param).map(|request| of_get(&request)),
            "Mutate" => proto::MutateRequest::decode(param).map(|request| of_mutate(&request)),
            "Multi" => proto::MultiRequest::decode(param).map(|request| of_multi(&request)),
            "Scan" => proto::ScanRequest::decode(param).map(|request| of_scan(&request)),
            "ExecService" => proto::CoprocessorServiceRequest::decode(param).map(|request| of_exec(&request)),
            _ => Ok(Details::default()),
        };
        decoded.unwrap_or_else(|_| Details::with_param("malformed message".into()))
    }

    /// The call as HBase names it: method, and the Java class of the message.
    pub(super) fn call(&self, method: &str) -> String {
        let file = match method {
            "Get" | "Mutate" | "Multi" | "Scan" | "ExecService" => "ClientProtos",
            _ => "AdminProtos",
        };
        let request = if method == "ExecService" { "CoprocessorService" } else { method };
        format!("{method}(org.apache.hadoop.hbase.shaded.protobuf.generated.{file}${request}Request)")
    }

    fn with_param(param: String) -> Details {
        Details { param, ..Details::default() }
    }

    fn in_region(region: &proto::RegionSpecifier, what: &str) -> Details {
        let name = printable(&region.value);
        let param = format!("region= {name}, {what}");
        Details { table: table_of(&region.value), region: Some(name), param, ..Details::default() }
    }
}

/// The table in a region's full name; `None` for an encoded name, which does not contain it.
fn table_of(region: &[u8]) -> Option<String> {
    let end = region.iter().position(|byte| *byte == b',')?;
    Some(printable(&region[..end]))
}

fn of_get(request: &proto::GetRequest) -> Details {
    Details::in_region(&request.region, &format!("row= {}", printable(&request.get.row)))
}

fn of_mutate(request: &proto::MutateRequest) -> Details {
    let row = printable(request.mutation.row());
    let condition = if request.condition.is_some() { ", on a condition" } else { "" };
    let what = format!("row= {row}, type= {}{condition}", request.mutation.mutate_type().as_str_name());
    Details::in_region(&request.region, &what)
}

fn of_multi(request: &proto::MultiRequest) -> Details {
    let actions = || request.region_action.iter().flat_map(|of_region| &of_region.action);
    let Some(first) = request.region_action.first() else { return Details::with_param("no actions".into()) };
    let row = first.action.first().and_then(|action| match (&action.get, &action.mutation) {
        (Some(get), _) => Some(&get.row[..]),
        (None, Some(mutation)) => Some(mutation.row()),
        (None, None) => None,
    });
    let row = printable(row.unwrap_or_default());
    let (regions, count) = (request.region_action.len(), actions().count());
    let what = format!("for {count} action(s) in {regions} region(s) and 1st row key= {row}");
    let count = |is: fn(&proto::Action) -> bool| actions().filter(|action| is(action)).count() as u32;
    Details {
        gets: count(|action| action.get.is_some()),
        mutations: count(|action| action.mutation.is_some()),
        service_calls: count(|action| action.service_call.is_some()),
        ..Details::in_region(&first.region, &what)
    }
}

fn of_scan(request: &proto::ScanRequest) -> Details {
    let rows = request.number_of_rows();
    // With a scanner id the server ignores the other fields.
    let (None, Some(region), Some(scan)) = (request.scanner_id, &request.region, &request.scan) else {
        return Details::with_param(format!("scanner_id= {}, number_of_rows= {rows}", request.scanner_id()));
    };
    let bound = |row: &[u8]| printable(row);
    let mut what = format!(
        "start_row= {}, stop_row= {}, number_of_rows= {rows}",
        bound(scan.start_row()),
        bound(scan.stop_row())
    );
    let families: Vec<_> =
        scan.column.iter().take(FAMILIES_LOGGED_MAX).map(|column| printable(&column.family)).collect();
    if !families.is_empty() {
        what.push_str(&format!(", families= {}", families.join(" ")));
    }
    if let Some(filter) = &scan.filter {
        let name = filter.name.rsplit('.').next().unwrap_or(&filter.name);
        what.push_str(&format!(", filter= {}", printable(name.as_bytes())));
    }
    if scan.reversed() {
        what.push_str(", reversed");
    }
    Details::in_region(region, &what)
}

fn of_exec(request: &proto::CoprocessorServiceRequest) -> Details {
    let call = &request.call;
    let (service, method) = (printable(call.service_name.as_bytes()), printable(call.method_name.as_bytes()));
    let what = format!("coprocessorService= {service}:{method}");
    Details::in_region(&request.region, &what)
}

/// Whether the call was for a region of `table`.
pub(super) fn is_of_table(details: &Details, table: &str) -> bool {
    // The prefix of the default namespace is optional.
    let plain = |name: &str| name.strip_prefix("default:").unwrap_or(name).to_owned();
    details.table.as_deref().is_some_and(|own| plain(own) == plain(table))
}

#[cfg(test)]
mod tests {
    use cell::region::RegionInfo;

    use super::*;

    fn region() -> proto::RegionSpecifier {
        let value =
            RegionInfo::new(cell::schema::TableName::parse("ns:t").unwrap(), "a".into(), "".into(), 1).name();
        proto::RegionSpecifier { r#type: 1, value }
    }

    #[test]
    fn messages_are_described() {
        let get = proto::Get { row: b"r\x01".as_slice().into(), ..proto::Get::default() };
        let one = proto::GetRequest { region: region(), get: get.clone() };
        let details = Details::new("Get", Some(&one.encode_to_vec()));
        assert!(details.param.ends_with(", row= r\\x01"), "{details:?}");
        assert_eq!(details.table.as_deref(), Some("ns:t"));
        let action = proto::Action { get: Some(get), ..proto::Action::default() };
        let of_region =
            proto::RegionAction { region: region(), action: vec![action; 3], ..Default::default() };
        let multi = proto::MultiRequest { region_action: vec![of_region], ..Default::default() };
        let details = Details::new("Multi", Some(&multi.encode_to_vec()));
        assert_eq!((details.gets, details.mutations, details.service_calls), (3, 0, 0));
        assert!(details.param.contains("for 3 action(s) in 1 region(s) and 1st row key= r\\x01"));
    }

    #[test]
    fn long_names_and_keys_are_truncated() {
        let get = proto::Get { row: vec![0; 30_000].into(), ..proto::Get::default() };
        let region = proto::RegionSpecifier { r#type: 1, value: vec![b'r'; 30_000].into() };
        let request = proto::GetRequest { region, get };
        let details = Details::new("Get", Some(&request.encode_to_vec()));
        assert!(details.param.len() < 5 * PRINTABLE_LEN_MAX + 100, "{}", details.param.len());
        assert_eq!(details.region.map(|region| region.len()), Some(PRINTABLE_LEN_MAX + 3));
        let action = proto::Action { index: Some(1), ..proto::Action::default() };
        let of_region = proto::RegionAction {
            region: self::region(),
            action: vec![action; 100_000],
            ..Default::default()
        };
        let multi = proto::MultiRequest { region_action: vec![of_region], ..Default::default() };
        assert_eq!(Details::new("Multi", Some(&multi.encode_to_vec())).param, "message too long to decode");
    }

    #[test]
    fn undecodable_messages_are_described() {
        assert_eq!(Details::new("Get", Some(&[0xff; 9])).region, None);
        assert_eq!(Details::new("Scan", None).region, None);
        let scan = proto::Scan { start_row: Some("a".into()), ..Default::default() };
        let region = Some(region());
        let request =
            proto::ScanRequest { scanner_id: Some(7), region, scan: Some(scan), ..Default::default() };
        let details = Details::new("Scan", Some(&request.encode_to_vec()));
        assert_eq!((details.region, details.param.as_str()), (None, "scanner_id= 7, number_of_rows= 0"));
    }

    /// The description of arbitrary bytes is short.
    #[test]
    fn descriptions_of_damaged_messages_are_short() {
        let random = base::testing::env(3).random;
        let get = proto::Get { row: vec![7; 600].into(), ..proto::Get::default() };
        let action = proto::Action { get: Some(get.clone()), ..proto::Action::default() };
        let of_region =
            proto::RegionAction { region: region(), action: vec![action; 3], ..Default::default() };
        let scan = proto::Scan { start_row: Some("a".into()), ..Default::default() };
        let scan = proto::ScanRequest { region: Some(region()), scan: Some(scan), ..Default::default() };
        let messages = [
            proto::GetRequest { region: region(), get }.encode_to_vec(),
            proto::MultiRequest { region_action: vec![of_region], ..Default::default() }.encode_to_vec(),
            scan.encode_to_vec(),
        ];
        for at in 0..20_000 {
            let mut message = messages[at % messages.len()].clone();
            for _ in 0..=random.next_u64() % 3 {
                let place = random.next_u64() as usize % message.len();
                message[place] = random.next_u64() as u8;
            }
            message.truncate(1 + random.next_u64() as usize % message.len());
            for method in ["Get", "Mutate", "Multi", "Scan", "ExecService", "Other"] {
                let details = Details::new(method, Some(&message));
                let parts = [Some(details.param), details.region, details.table];
                // A byte takes at most four characters. `param` has the region, two keys, and up to
                // ten families.
                assert!(
                    parts.iter().flatten().all(|part| part.len() < 15 * 4 * PRINTABLE_LEN_MAX),
                    "{method}"
                );
            }
        }
    }
}
