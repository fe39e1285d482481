//! Slow calls and their latency breakdown.

use std::sync::Arc;
use std::time::Duration;

use regionserver::slow_log::{CallPhase, SlowCall};
use web::section::{Section, SlowRequest, SlowRequests};
use web::{Page, Query, Value};

use super::{RegionServerPages, STATUS};

/// Maximum number of calls on the status page.
const ON_STATUS_MAX: usize = 10;

/// The phases shown, each with the phases of a call that it sums. Phases of little interest
/// are combined.
const PHASES: [(&str, &[CallPhase]); 8] = [
    ("queue", &[CallPhase::Queue, CallPhase::Turns]),
    ("lock", &[CallPhase::Lock]),
    ("disk", &[CallPhase::Disk]),
    ("filter", &[CallPhase::Filter]),
    ("log", &[CallPhase::Wal]),
    ("compute", &[CallPhase::Decode, CallPhase::Compute]),
    ("cells", &[CallPhase::Memstore, CallPhase::Cache]),
    ("network", &[CallPhase::Network]),
];

impl RegionServerPages {
    /// The newest slow calls, for the status page.
    pub(super) fn newest_slow(&self) -> Section {
        let calls = self.server.slow_log().newest_first();
        let more = calls.len().saturating_sub(ON_STATUS_MAX);
        let note = match more {
            0 => self.thresholds_text(),
            _ => format!("{} The page “Slow requests” has {more} more.", self.thresholds_text()),
        };
        section(&calls[..calls.len() - more], note)
    }

    /// The page of all retained calls.
    pub(super) fn slow(&self, _: &Query) -> Page {
        let calls = self.server.slow_log().newest_first();
        Page {
            title: "Slow requests".into(),
            subtitle: format!("{}: the last {} calls", self.server.name(), calls.len()),
            up: Some(("Region server".into(), STATUS.into())),
            sections: vec![section(&calls, self.thresholds_text())],
        }
    }

    fn thresholds_text(&self) -> String {
        let options = &self.server.options().slow_log;
        if options.calls_max == 0 {
            return "None are recorded: hbase.regionserver.slowlog.buffer.enabled is false.".into();
        }
        let slow = options
            .slow
            .map(|slow| format!("took more than {}", Value::duration(slow.as_millis() as u64).as_text()));
        let large = options
            .large_bytes
            .map(|bytes| format!("returned more than {}", Value::bytes(bytes as u64).as_text()));
        let which: Vec<String> = slow.into_iter().chain(large).collect();
        match which.is_empty() {
            true => "None are recorded: hbase.ipc.warn.response.time and .size are off.".into(),
            false => format!(
                "Calls that {}, newest first. The time ends with the last byte of a long response.",
                which.join(" or ")
            ),
        }
    }
}

fn section(calls: &[Arc<SlowCall>], note: String) -> Section {
    Section::SlowRequests(SlowRequests {
        heading: "Slow requests".into(),
        note,
        phases: PHASES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        requests: calls.iter().map(|call| request(call)).collect(),
    })
}

fn request(call: &SlowCall) -> SlowRequest {
    let of_phase =
        |phases: &[CallPhase]| phases.iter().map(|phase| call.phases.get(*phase)).sum::<Duration>();
    let details = &call.details;
    let region = details.region.as_deref().unwrap_or("unknown");
    let param = details.param.strip_prefix(&format!("region= {region}, ")).unwrap_or(&details.param);
    let subject = match &details.table {
        Some(table) => format!("{table}: {param}"),
        None => param.to_owned(),
    };
    let (user, client, time) = (&call.user, call.client, call.phases);
    let about = format!("{param}; region: {region}; user {user} from {client}; time: {time}");
    SlowRequest {
        ended_ms: call.start_ms + call.took.as_millis() as u64,
        kind: call.method.clone(),
        subject: Value::printed_key(subject).titled(about),
        took: call.took,
        phases: PHASES.iter().map(|(_, phases)| of_phase(phases)).collect(),
    }
}
