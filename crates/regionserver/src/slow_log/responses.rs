//! The responses of `AdminService` about slow calls: selects and encodes the requested calls.
//!
//! Clients of 2.4 call `GetSlowLogResponses` and `GetLargeLogResponses`. Later ones call
//! `GetLogEntries`, which names the Java classes of its contents.

use bytes::Bytes;
use prost::Message;
use proto::exception::{Answer, JavaException};
use proto::slow_log_payload::Type;
use proto::slow_log_response_request::{FilterByOperator, LogType};

use super::details::is_of_table;
use super::{SlowCall, SlowLog};
use base::spent::{Phase, Use};

/// The class name of HBase's region server in slow log records.
pub(super) const SERVER_CLASS: &str = "HRegionServer";
/// Suffixes of the Java class names of request and response.
const REQUEST_CLASS: &str = "SlowLogResponseRequest";
const RESPONSE_CLASS: &str = "SlowLogResponses";

impl SlowLog {
    /// The calls that `request` selects, newest first.
    pub(crate) fn responses(&self, request: &proto::SlowLogResponseRequest) -> proto::SlowLogResponses {
        let wants_large = request.log_type() == LogType::LargeLog;
        let calls = self
            .newest_first()
            .into_iter()
            .filter(|call| if wants_large { call.is_large } else { call.is_slow });
        let wanted = calls.filter(|call| matches(call, request)).take(request.limit() as usize);
        proto::SlowLogResponses { slow_log_payloads: wanted.map(|call| payload(&call)).collect() }
    }

    /// The same for clients that name Java classes.
    ///
    /// # Errors
    /// `DoNotRetryIOException` for an unsupported or malformed request.
    pub(crate) fn entries(&self, request: &proto::LogRequest) -> Answer<proto::LogEntry> {
        let class = &request.log_class_name;
        let Some(package) = class.strip_suffix(REQUEST_CLASS) else {
            return Err(JavaException::do_not_retry(format!("Invalid log class received: {class}")));
        };
        let asked = proto::SlowLogResponseRequest::decode(request.log_message.clone());
        let asked = asked.map_err(|error| JavaException::do_not_retry(format!("{class}: {error}")))?;
        Ok(proto::LogEntry {
            log_class_name: format!("{package}{RESPONSE_CLASS}"),
            log_message: Bytes::from(self.responses(&asked).encode_to_vec()),
        })
    }
}

/// Whether a call meets all of the request's conditions, or one of them, as the request's operator
/// requires.
fn matches(call: &SlowCall, request: &proto::SlowLogResponseRequest) -> bool {
    let client = call.client.to_string();
    let is_client = |wanted: &str| wanted == client || wanted == call.client.ip().to_string();
    let tests = [
        if_set(&request.region_name).map(|wanted| call.details.region.as_deref() == Some(wanted)),
        if_set(&request.table_name).map(|wanted| is_of_table(&call.details, wanted)),
        if_set(&request.client_address).map(is_client),
        if_set(&request.user_name).map(|wanted| call.user == wanted),
    ];
    let mut tests = tests.into_iter().flatten().peekable();
    if tests.peek().is_none() {
        return true;
    }
    match request.filter_by_operator() {
        FilterByOperator::And => tests.all(|meets| meets),
        FilterByOperator::Or => tests.any(|meets| meets),
    }
}

/// The value of a condition, if it is set.
fn if_set(wanted: &Option<String>) -> Option<&str> {
    wanted.as_deref().filter(|wanted| !wanted.is_empty())
}

fn payload(call: &SlowCall) -> proto::SlowLogPayload {
    let millis = |time: std::time::Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    let details = &call.details;
    let kind = match (call.is_slow, call.is_large) {
        (true, true) => Type::All,
        (false, _) => Type::LargeLog,
        (true, false) => Type::SlowLog,
    };
    proto::SlowLogPayload {
        start_time: call.start_ms as i64,
        processing_time: millis(call.processed),
        queue_time: millis(call.queued),
        response_size: call.response_bytes as i64,
        client_address: call.client.to_string(),
        server_class: SERVER_CLASS.into(),
        method_name: call.method.clone(),
        call_details: details.call(&call.method),
        param: Some(format!("{}; time: {}", details.param, call.phases)),
        user_name: call.user.clone(),
        region_name: Some(details.region.clone().unwrap_or_default()),
        multi_gets: Some(details.gets as i32),
        multi_mutations: Some(details.mutations as i32),
        multi_service_calls: Some(details.service_calls as i32),
        r#type: kind as i32,
        block_bytes_scanned: Some(call.spent.used(Use::BlockBytes) as i64),
        fs_read_time: Some(i64::from(millis(call.spent.time(Phase::Disk)))),
        ..proto::SlowLogPayload::default()
    }
}
