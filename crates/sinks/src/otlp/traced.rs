//! A service whose calls are observed.
//!
//! It stands between a connection and the service only where traces are asked for. A call that is not chosen passes
//! through; one that is costs a box beside the spans.

use std::sync::Arc;

use base::BoxFuture;
use rpc::{Call, ConnectionInfo, Failure, Reply, Service};

use super::spans::{TraceObserver, TracedCall};

/// A service, and who hears of its calls.
pub struct Traced {
    service: Arc<dyn Service>,
    observer: Arc<dyn TraceObserver>,
}

impl Traced {
    /// `service`, whose calls `observer` hears of.
    pub fn service(service: Arc<dyn Service>, observer: Arc<dyn TraceObserver>) -> Arc<dyn Service> {
        Arc::new(Traced { service, observer })
    }
}

impl Service for Traced {
    fn name(&self) -> &'static str {
        self.service.name()
    }

    fn of_connection(&self, connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        let service = self.service.of_connection(connection)?;
        Some(Traced::service(service, self.observer.clone()))
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Failure>> {
        let Some(trace) = self.observer.wants(&call.trace_info) else { return self.service.call(call) };
        // A copy: the name in the request keeps all of its bytes in memory.
        let method = call.method.to_string();
        let (received, begun, service) = (call.received, call.begun, self.service.name());
        let (answer, observer) = (self.service.call(call), self.observer.clone());
        Box::pin(async move {
            let answer = answer.await;
            let failure = answer.as_ref().err().map(|failure| (&*failure.class, failure.message.as_str()));
            observer.ended(trace, TracedCall { service, method: &method, received, begun, failure });
            answer
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
    use crate::otlp::spans::trace_of_test;

    struct Answers;

    impl Service for Answers {
        fn name(&self) -> &'static str {
            "ClientService"
        }

        fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Failure>> {
            Box::pin(async move {
                match &*call.method {
                    "Get" => Ok(Reply::message("row")),
                    _ => Err(Failure::do_not_retry("no such method")),
                }
            })
        }
    }

    #[derive(Default)]
    struct Heard {
        wants_none: AtomicBool,
        calls: Mutex<Vec<String>>,
    }

    impl TraceObserver for Heard {
        fn wants(&self, _: &[u8]) -> Option<TraceContext> {
            (!self.wants_none.load(Relaxed)).then(trace_of_test)
        }

        fn ended(&self, _: TraceContext, call: TracedCall<'_>) {
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
                user: None,
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
    async fn calls_are_heard_of_and_answered_as_before() {
        let heard = Arc::new(Heard::default());
        let service = Traced::service(Arc::new(Answers), heard.clone());
        assert_eq!(service.name(), "ClientService");
        assert_eq!(service.call(call("Get")).await.unwrap().message, "row");
        assert!(service.call(call("Nothing")).await.is_err());
        heard.wants_none.store(true, Relaxed);
        assert!(service.call(call("Get")).await.is_ok());
        let calls = heard.calls.lock().unwrap();
        assert_eq!(calls[0], "ClientService/Get 1ms 2ms None");
        assert!(calls[1].starts_with("ClientService/Nothing 1ms 2ms Some(\"org.apache."), "{}", calls[1]);
        assert_eq!(calls.len(), 2, "the third was not chosen");
    }
}
