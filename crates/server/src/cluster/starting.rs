//! A region server that starts. It listens early, because its name contains its port, and then
//! waits for ZooKeeper, the active master and the storage.
//!
//! Until it serves, it answers calls with the exception that it is not running yet. So clients with
//! an old location look for another one, and do not wait for a response. Its page states what it
//! waits for.

use std::sync::{Arc, Mutex, PoisonError};

use base::config::Config;
use base::env::{Env, Listener, TaskClass};
use base::metrics::Registry;
use cell::region::ServerName;
use console::{RegionServerPages, StandbyPages, StandbyState};
use roles::standby::Standby;
use rpc::Service;

use crate::host::serve_pages;
use crate::settings::Limits;

/// The services of a region server.
const SERVICES: [&str; 3] = ["ClientMetaService", "ClientService", "AdminService"];

/// The RPC server and the pages of a region server that does not serve yet.
pub(super) struct Starting {
    env: Env,
    rpc: Arc<rpc::Server>,
    pages: Option<Arc<StandbyPages<RegionServerPages>>>,
    // What the process waits for, and since when (milliseconds since the epoch).
    step: Arc<Mutex<(&'static str, u64)>>,
}

impl Starting {
    /// Serves on these listeners.
    pub(super) fn begin(
        (env, config, limits): (&Env, &Config, &Limits),
        name: &ServerName,
        listener: &Arc<dyn Listener>,
        page_listener: Option<Box<dyn Listener>>,
    ) -> Starting {
        let services = SERVICES.map(|service| Standby::new(service) as Arc<dyn Service>);
        let (options, shared) = (limits.rpc.clone(), limits.shared.clone());
        let rpc = rpc::Server::sharing(env.clone(), Vec::from(services), options, None, shared);
        rpc.serve(Box::new(listener.clone()));
        let step = Arc::new(Mutex::new(("ZooKeeper", env.clock.now_ms())));
        let pages = page_listener.map(|listener| {
            let metrics = Arc::new(Registry::new(env.clock.clone(), &name.host));
            let step = step.clone();
            let state = move || {
                let (waits_for, since_ms) = *step.lock().unwrap_or_else(PoisonError::into_inner);
                StandbyState::Starting { waits_for, since_ms }
            };
            let pages = Arc::new(StandbyPages::of_region_server(config, name, metrics, Box::new(state)));
            serve_pages(env, limits, listener, pages.clone());
            pages
        });
        Starting { env: env.clone(), rpc, pages, step }
    }

    /// Records what the process waits for from now on.
    pub(super) fn wait_for(&self, what: &'static str) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = (what, self.env.clock.now_ms());
    }

    /// Shows the pages of the region server from now on, and closes the connections to the services
    /// that are not running. The RPC server of the region server accepts connections already.
    pub(super) fn end(self, pages: impl FnOnce() -> RegionServerPages) {
        let Starting { env, rpc, pages: standby, .. } = self;
        if let Some(standby) = standby {
            standby.activate(pages());
        }
        env.spawn(TaskClass::Service, async move { rpc.stop().await });
    }
}

#[cfg(test)]
mod tests {
    use base::testing::env;
    use client::Connections;
    use client::connections::OutgoingCall;
    use proto::exception::class;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_answers_that_it_is_not_running_yet() {
        let (env, config) = (env(1), Config::default());
        let limits = Limits::from_config(&config, 1 << 10);
        let listener: Arc<dyn Listener> =
            Arc::from(env.net.listen("127.0.0.1:16020".parse().unwrap()).await.unwrap());
        let name = ServerName { host: "localhost".into(), port: 16020, start_code: 1 };
        let starting = Starting::begin((&env, &config, &limits), &name, &listener, None);
        starting.wait_for("the active master");
        let connections = Connections::new(env.clone(), "test", std::time::Duration::from_secs(60));
        for service in ["AdminService", "ClientService", "ClientMetaService"] {
            let request = proto::GetServerInfoRequest::default();
            let call = OutgoingCall::new(service, "GetServerInfo", &request);
            let answer = connections.call(&name.host, name.port, call).await;
            let refused = answer.map(|_: (proto::GetServerInfoResponse, _)| ()).unwrap_err();
            assert!(refused.is_class(class::SERVER_NOT_RUNNING_YET), "{service}: {refused}");
        }
    }
}
