//! What the message of a slow call says: its region, its row, how many actions. No values of cells.
//!
//! Source of the words: HBase's `ProtobufUtil.getShortTextFormat` and `getSlowLogParams`.

use prost::Message;

/// Bytes of a name or key that are told: what clients send may be long, and is not checked before it is told.
const TOLD_LEN_MAX: usize = 512;
/// Messages that are longer are not taken apart: decoded, a small action of a batch has a hundred times its bytes.
const DECODED_LEN_MAX: usize = 64 << 10;

/// Families of a scan that are told.
const FAMILIES_TOLD_MAX: usize = 10;

/// The beginning of a name or key, printable.
pub(super) fn told(bytes: &[u8]) -> String {
    match bytes.get(..TOLD_LEN_MAX) {
        Some(begin) if bytes.len() > TOLD_LEN_MAX => rpc::to_string_binary(begin) + "...",
        _ => rpc::to_string_binary(bytes),
    }
}

/// A call's message in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The full name of its region, of several the first.
    pub region: Option<String>,
    /// That region's table.
    pub table: Option<String>,
    /// What is asked.
    pub param: String,
    /// Gets of a batch.
    pub gets: u32,
    /// Changes of a batch.
    pub mutations: u32,
    /// Calls of endpoints in a batch.
    pub service_calls: u32,
}

impl Details {
    /// Those of a call of `method` with the message `param`.
    pub(super) fn of(method: &str, param: Option<&[u8]>) -> Details {
        let Some(param) = param.filter(|param| param.len() <= DECODED_LEN_MAX) else {
            return Details::saying("a long message".into());
        };
        let decoded = match method {
            "Get" => proto::GetRequest::decode(param).map(|request| of_get(&request)),
            "Mutate" => proto::MutateRequest::decode(param).map(|request| of_mutate(&request)),
            "Multi" => proto::MultiRequest::decode(param).map(|request| of_multi(&request)),
            "Scan" => proto::ScanRequest::decode(param).map(|request| of_scan(&request)),
            "ExecService" => proto::CoprocessorServiceRequest::decode(param).map(|request| of_exec(&request)),
            _ => Ok(Details::default()),
        };
        decoded.unwrap_or_else(|_| Details::saying("a message that cannot be read".into()))
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

    fn saying(param: String) -> Details {
        Details { param, ..Details::default() }
    }

    fn in_region(region: &proto::RegionSpecifier, what: &str) -> Details {
        let name = told(&region.value);
        let param = format!("region= {name}, {what}");
        Details { table: table_of(&region.value), region: Some(name), param, ..Details::default() }
    }
}

/// The table of a region by its full name; none for an encoded one, which does not tell.
fn table_of(region: &[u8]) -> Option<String> {
    let end = region.iter().position(|byte| *byte == b',')?;
    Some(told(&region[..end]))
}

fn of_get(request: &proto::GetRequest) -> Details {
    Details::in_region(&request.region, &format!("row= {}", told(&request.get.row)))
}

fn of_mutate(request: &proto::MutateRequest) -> Details {
    let row = told(request.mutation.row());
    let condition = if request.condition.is_some() { ", on a condition" } else { "" };
    let what = format!("row= {row}, type= {}{condition}", request.mutation.mutate_type().as_str_name());
    Details::in_region(&request.region, &what)
}

fn of_multi(request: &proto::MultiRequest) -> Details {
    let actions = || request.region_action.iter().flat_map(|of_region| &of_region.action);
    let Some(first) = request.region_action.first() else { return Details::saying("no actions".into()) };
    let row = first.action.first().and_then(|action| match (&action.get, &action.mutation) {
        (Some(get), _) => Some(&get.row[..]),
        (None, Some(mutation)) => Some(mutation.row()),
        (None, None) => None,
    });
    let row = told(row.unwrap_or_default());
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
    // With a number the rest means nothing, and is not looked at by who answers it.
    let (None, Some(region), Some(scan)) = (request.scanner_id, &request.region, &request.scan) else {
        return Details::saying(format!("scanner_id= {}, number_of_rows= {rows}", request.scanner_id()));
    };
    let bound = |row: &[u8]| told(row);
    let mut what = format!(
        "start_row= {}, stop_row= {}, number_of_rows= {rows}",
        bound(scan.start_row()),
        bound(scan.stop_row())
    );
    let families: Vec<_> =
        scan.column.iter().take(FAMILIES_TOLD_MAX).map(|column| told(&column.family)).collect();
    if !families.is_empty() {
        what.push_str(&format!(", families= {}", families.join(" ")));
    }
    if let Some(filter) = &scan.filter {
        let name = filter.name.rsplit('.').next().unwrap_or(&filter.name);
        what.push_str(&format!(", filter= {}", told(name.as_bytes())));
    }
    if scan.reversed() {
        what.push_str(", reversed");
    }
    Details::in_region(region, &what)
}

fn of_exec(request: &proto::CoprocessorServiceRequest) -> Details {
    let call = &request.call;
    let (service, method) = (told(call.service_name.as_bytes()), told(call.method_name.as_bytes()));
    let what = format!("coprocessorService= {service}:{method}");
    Details::in_region(&request.region, &what)
}

/// Whether they are of a call of a region of `table`.
pub(super) fn is_of_table(details: &Details, table: &str) -> bool {
    // The default namespace may be named, or not.
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
    fn messages_are_told_in_words() {
        let get = proto::Get { row: b"r\x01".as_slice().into(), ..proto::Get::default() };
        let one = proto::GetRequest { region: region(), get: get.clone() };
        let details = Details::of("Get", Some(&one.encode_to_vec()));
        assert!(details.param.ends_with(", row= r\\x01"), "{details:?}");
        assert_eq!(details.table.as_deref(), Some("ns:t"));
        let action = proto::Action { get: Some(get), ..proto::Action::default() };
        let of_region =
            proto::RegionAction { region: region(), action: vec![action; 3], ..Default::default() };
        let multi = proto::MultiRequest { region_action: vec![of_region], ..Default::default() };
        let details = Details::of("Multi", Some(&multi.encode_to_vec()));
        assert_eq!((details.gets, details.mutations, details.service_calls), (3, 0, 0));
        assert!(details.param.contains("for 3 action(s) in 1 region(s) and 1st row key= r\\x01"));
    }

    #[test]
    fn of_what_is_long_only_the_beginning_is_told() {
        let get = proto::Get { row: vec![0; 30_000].into(), ..proto::Get::default() };
        let region = proto::RegionSpecifier { r#type: 1, value: vec![b'r'; 30_000].into() };
        let request = proto::GetRequest { region, get };
        let details = Details::of("Get", Some(&request.encode_to_vec()));
        assert!(details.param.len() < 5 * TOLD_LEN_MAX + 100, "{}", details.param.len());
        assert_eq!(details.region.map(|region| region.len()), Some(TOLD_LEN_MAX + 3));
        let action = proto::Action { index: Some(1), ..proto::Action::default() };
        let of_region = proto::RegionAction {
            region: self::region(),
            action: vec![action; 100_000],
            ..Default::default()
        };
        let multi = proto::MultiRequest { region_action: vec![of_region], ..Default::default() };
        assert_eq!(Details::of("Multi", Some(&multi.encode_to_vec())).param, "a long message");
    }

    #[test]
    fn what_cannot_be_read_is_told_too() {
        assert_eq!(Details::of("Get", Some(&[0xff; 9])).region, None);
        assert_eq!(Details::of("Scan", None).region, None);
        let scan = proto::Scan { start_row: Some("a".into()), ..Default::default() };
        let region = Some(region());
        let request =
            proto::ScanRequest { scanner_id: Some(7), region, scan: Some(scan), ..Default::default() };
        let details = Details::of("Scan", Some(&request.encode_to_vec()));
        assert_eq!((details.region, details.param.as_str()), (None, "scanner_id= 7, number_of_rows= 0"));
    }

    /// Whatever bytes come, what is told of them is short.
    #[test]
    fn damaged_messages_are_told_shortly() {
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
                let details = Details::of(method, Some(&message));
                let parts = [Some(details.param), details.region, details.table];
                // A byte is four letters at most; param has the region and two keys, perhaps ten families.
                assert!(parts.iter().flatten().all(|part| part.len() < 15 * 4 * TOLD_LEN_MAX), "{method}");
            }
        }
    }
}
