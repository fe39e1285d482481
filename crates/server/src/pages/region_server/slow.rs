//! The calls that took long, and where their time went.

use std::sync::Arc;
use std::time::Duration;

use regionserver::slow_log::{Share, SlowCall};
use web::section::{Section, SlowRequest, SlowRequests};
use web::{Page, Query, Value};

use super::{RegionServerPages, STATUS};

/// Calls that the status page shows.
const ON_STATUS_MAX: usize = 10;

/// What is shown as one phase: its name, and the shares of a call's time in it. Those that few look for are together.
const PHASES: [(&str, &[Share]); 8] = [
    ("queue", &[Share::Queue, Share::Turns]),
    ("lock", &[Share::Lock]),
    ("disk", &[Share::Disk]),
    ("filter", &[Share::Filter]),
    ("log", &[Share::Wal]),
    ("compute", &[Share::Decode, Share::Compute]),
    ("cells", &[Share::Memstore, Share::Cache]),
    ("network", &[Share::Network]),
];

impl RegionServerPages {
    /// The newest slow calls, for the status page.
    pub(super) fn newest_slow(&self) -> Section {
        let calls = self.server.slow_log().newest_first();
        let more = calls.len().saturating_sub(ON_STATUS_MAX);
        let note = match more {
            0 => self.what_is_slow(),
            _ => format!("{} And {more} more, on a page of their own: Slow requests.", self.what_is_slow()),
        };
        section(&calls[..calls.len() - more], note)
    }

    /// The page of all that are kept.
    pub(super) fn slow(&self, _: &Query) -> Page {
        let calls = self.server.slow_log().newest_first();
        Page {
            title: "Slow requests".into(),
            subtitle: format!("{}: the last {} that are kept", self.server.name(), calls.len()),
            up: Some(("Region server".into(), STATUS.into())),
            sections: vec![section(&calls, self.what_is_slow())],
        }
    }

    fn what_is_slow(&self) -> String {
        let options = &self.server.options().slow_log;
        if options.kept == 0 {
            return "None is kept: hbase.regionserver.slowlog.buffer.enabled is false.".into();
        }
        let slow = options
            .slow
            .map(|slow| format!("took more than {}", Value::duration(slow.as_millis() as u64).as_text()));
        let large = options
            .large_bytes
            .map(|bytes| format!("answered with more than {}", Value::bytes(bytes as u64).as_text()));
        let which: Vec<String> = slow.into_iter().chain(large).collect();
        match which.is_empty() {
            true => "None is kept: hbase.ipc.warn.response.time and .size are off.".into(),
            false => format!(
                "Calls that {}, from their arrival to the last byte of a long answer; the newest first.",
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
    let of_phase = |shares: &[Share]| shares.iter().map(|share| call.shares.get(*share)).sum::<Duration>();
    let details = &call.details;
    let region = details.region.as_deref().unwrap_or("none known");
    let param = details.param.strip_prefix(&format!("region= {region}, ")).unwrap_or(&details.param);
    let subject = match &details.table {
        Some(table) => format!("{table}: {param}"),
        None => param.to_owned(),
    };
    let (user, client, time) = (&call.user, call.client, call.shares);
    let about = format!("{param}; region: {region}; asked by {user} from {client}; time: {time}");
    SlowRequest {
        ended_ms: call.start_ms + call.took.as_millis() as u64,
        kind: call.method.clone(),
        subject: Value::printed_key(subject).titled(about),
        took: call.took,
        phases: PHASES.iter().map(|(_, shares)| of_phase(shares)).collect(),
    }
}
