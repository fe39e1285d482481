//! Observes the calls of a server, and records the slow and large ones in its
//! [slow log](crate::slow_log).

use std::sync::Arc;

use rpc::server::{CallObserver, EndedCall};
use tracing::warn;

use crate::server::RegionServer;
use crate::slow_log::{Details, PhaseTimes, SlowCall, printable};

/// Records the slow and large calls of a server.
pub struct SlowCalls(pub Arc<RegionServer>);

impl CallObserver for SlowCalls {
    fn ended(&self, call: &EndedCall) {
        let log = self.0.slow_log();
        let (is_slow, is_large) = log.classify(&call.method, call.took(), call.response_len);
        if !is_slow && !is_large {
            return;
        }
        let clock = &self.0.env().clock;
        let age = clock.monotonic().saturating_sub(call.received);
        let mut details = Details::new(&call.method, call.param.as_deref());
        if details.region.is_none()
            && let Some(region) = call.spent.subject().and_then(|number| self.0.regions().by_number(number))
        {
            details.region = Some(printable(&region.info().name()));
            details.table = Some(region.info().table.to_string());
        }
        let call = SlowCall {
            start_ms: clock.now_ms().saturating_sub(age.as_millis() as u64),
            took: call.took(),
            queued: call.begun.saturating_sub(call.received),
            processed: call.ended.saturating_sub(call.begun),
            phases: PhaseTimes::of(call),
            spent: call.spent,
            request_bytes: call.request_len,
            response_bytes: call.response_len,
            client: call.connection.peer,
            user: call.connection.user().unwrap_or_default().to_owned(),
            method: call.method.to_string(),
            details,
            is_slow,
            is_large,
            failure: call.failure.as_deref().map(str::to_owned),
        };
        warn!("({}): {}", call.tag(), call.line());
        log.add(call);
    }
}
