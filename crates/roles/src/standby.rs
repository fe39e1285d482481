//! A service that exists before its role is active. Until then, it answers that the server
//! is not running yet, so that clients retry.

use std::sync::{Arc, OnceLock};

use base::BoxFuture;
use bytes::Bytes;
use proto::exception::{JavaException, class};
use rpc::{Call, ConnectionInfo, Reply, Service};

/// The method with which clients make all servers, also backup masters, read their configuration
/// again. Every option of a master requires a restart, so there is nothing to do.
const UPDATE_CONFIGURATION: (&str, &str) = ("AdminService", "UpdateConfiguration");

/// A service that may not be active yet.
pub struct Standby {
    name: &'static str,
    active: OnceLock<Arc<dyn Service>>,
}

impl Standby {
    /// A service of this name that is not active.
    pub fn new(name: &'static str) -> Arc<Standby> {
        Arc::new(Standby { name, active: OnceLock::new() })
    }

    /// Activates the service.
    pub fn activate(&self, service: Arc<dyn Service>) {
        assert_eq!(service.name(), self.name, "a service is activated under its own name");
        assert!(self.active.set(service).is_ok(), "a service is activated once");
    }
}

impl Service for Standby {
    fn name(&self) -> &'static str {
        self.name
    }

    fn of_connection(&self, connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        self.active.get()?.of_connection(connection)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        match self.active.get() {
            Some(service) => service.call(call),
            None if (self.name, &*call.method) == UPDATE_CONFIGURATION => {
                // The message of the response has no fields.
                Box::pin(std::future::ready(Ok(Reply::message(Bytes::new()))))
            }
            None => {
                let message = format!("{} is not running yet: this server is not active", self.name);
                let refused = JavaException::new(class::SERVER_NOT_RUNNING_YET, message);
                Box::pin(std::future::ready(Err(refused)))
            }
        }
    }
}
