//! A service whose calls are traced.
//!
//! It wraps a service only if traces are configured. A call that is not sampled is passed through;
//! a sampled call costs one allocation in addition to its spans.

use std::sync::Arc;

use base::BoxFuture;
use proto::exception::JavaException;
use rpc::{Call, ConnectionInfo, Reply, Service};

use super::spans::{TraceObserver, TracedCall};

/// A service, and the observer of its calls.
pub struct TracedService {
    service: Arc<dyn Service>,
    observer: Arc<dyn TraceObserver>,
}

impl TracedService {
    /// Wraps `service`, whose calls `observer` observes.
    pub fn service(service: Arc<dyn Service>, observer: Arc<dyn TraceObserver>) -> Arc<dyn Service> {
        Arc::new(TracedService { service, observer })
    }
}

impl Service for TracedService {
    fn name(&self) -> &'static str {
        self.service.name()
    }

    fn of_connection(&self, connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        let service = self.service.of_connection(connection)?;
        Some(TracedService::service(service, self.observer.clone()))
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        let Some(trace) = self.observer.sample(&call.trace_info) else { return self.service.call(call) };
        // Copied: a slice of the request would keep the whole request in memory.
        let method = call.method.to_string();
        let (received, begun, service) = (call.received, call.begun, self.service.name());
        let (response, observer) = (self.service.call(call), self.observer.clone());
        Box::pin(async move {
            let response = response.await;
            let failure = response.as_ref().err().map(|failure| (&*failure.class, failure.message.as_str()));
            observer.record_end(trace, TracedCall { service, method: &method, received, begun, failure });
            response
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use rpc::Method;

    use super::*;
    use crate::otlp::TraceContext;
    use crate::otlp::spans::test_trace;

    struct FixedService;

    impl Service for FixedService {
        fn name(&self) -> &'static str {
            "ClientService"
        }

        fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
            Box::pin(async move {
                match &*call.method {
                    "Get" => Ok(Reply::message("row")),
                    _ => Err(JavaException::do_not_retry("no such method")),
                }
            })
        }
    }

    #[derive(Default)]
    struct RecordedCalls {
        samples_none: AtomicBool,
        calls: Mutex<Vec<String>>,
    }

    impl TraceObserver for RecordedCalls {
        fn sample(&self, _: &[u8]) -> Option<TraceContext> {
            (!self.samples_none.load(Relaxed)).then(test_trace)
        }

        fn record_end(&self, _: TraceContext, call: TracedCall<'_>) {
            let TracedCall { service, method, received, begun, failure } = call;
            let failure = failure.map(|(class, message)| format!("{class}: {message}"));
            self.calls.lock().unwrap().push(format!("{service}/{method} {received:?} {begun:?} {failure:?}"));
        }
    }

    fn call(method: &str) -> Call {
        let address = ([127, 0, 0, 1], 1).into();
        Call {
            method: Method::from(method),
            param: Default::default(),
            cells: Default::default(),
            connection: Arc::new(ConnectionInfo {
                peer: address,
                local: address,
                service: "ClientService",
                claimed_user: None,
                principal: None,
                version: None,
                codec: None,
                compressor: None,
                presence: Default::default(),
            }),
            trace_info: Default::default(),
            priority: 0,
            received: Duration::from_millis(1),
            deadline: None,
            begun: Duration::from_millis(2),
        }
    }

    #[tokio::test]
    async fn traced_calls_are_recorded_and_answered_unchanged() {
        let recorded = Arc::new(RecordedCalls::default());
        let service = TracedService::service(Arc::new(FixedService), recorded.clone());
        assert_eq!(service.name(), "ClientService");
        assert_eq!(service.call(call("Get")).await.unwrap().message, "row");
        assert!(service.call(call("Nothing")).await.is_err());
        recorded.samples_none.store(true, Relaxed);
        assert!(service.call(call("Get")).await.is_ok());
        let calls = recorded.calls.lock().unwrap();
        assert_eq!(calls[0], "ClientService/Get 1ms 2ms None");
        assert!(calls[1].starts_with("ClientService/Nothing 1ms 2ms Some(\"org.apache."), "{}", calls[1]);
        assert_eq!(calls.len(), 2, "the third call was not sampled");
    }
}
