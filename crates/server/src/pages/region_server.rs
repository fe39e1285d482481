//! The pages of a region server.

mod health;
mod hot;
mod memory;
mod region;
mod regions;
mod served;
mod slow;
mod status;

use std::sync::Arc;

use base::config::{Config, MemoryParts};
use base::env::Env;
use base::history::History;
use base::metrics::Registry;
use regionserver::RegionServer;
use rpc::server::Shared;
use web::{Facts, Found, Frame, Query, Refusal};

use super::common::Configuration;
use super::{Common, Peers};
use crate::beans::Identity;
use crate::history;
use crate::settings::Limits;

/// HBase's path of the status page.
pub(super) const STATUS: &str = "/rs-status";
/// The page of a region, and HBase's path of it.
pub(super) const REGION: &str = "/region";
const REGION_JSP: &str = "/region.jsp";
/// The page of slow requests, and HBase's path of its region servers'.
const SLOW: &str = "/slow";
const SLOW_JSP: &str = "/namedQueueLogs.jsp";

/// The pages of a region server.
pub(crate) struct RegionServerPages {
    common: Common,
    server: Arc<RegionServer>,
    memory: MemoryParts,
    shared: Arc<Shared>,
    cluster_id: String,
}

impl RegionServerPages {
    /// The pages of `server`, with its beans and the server of its calls.
    pub(crate) fn new(
        env: &Env,
        server: Arc<RegionServer>,
        (metrics, calls): (Arc<Registry>, &Arc<rpc::Server>),
        config: &Config,
        (limits, identity, peers): (&Limits, &Identity, &Peers),
    ) -> RegionServerPages {
        let history = history::region_server::keep(env, config.history_period(), &metrics, &server, calls);
        let mut others = vec![("Slow requests", SLOW)];
        others.extend(peers.master.iter().map(|address| ("Master", address.as_str())));
        let role = ("Region server", server.name());
        let common = Common::new((metrics, history), config, role, (STATUS, &others));
        let (memory, shared) = (limits.memory, limits.shared.clone());
        RegionServerPages { common, server, memory, shared, cluster_id: identity.cluster_id.clone() }
    }
}

impl Facts for RegionServerPages {
    fn status_path(&self) -> &'static str {
        STATUS
    }

    fn paths(&self) -> &'static [&'static str] {
        &[STATUS, REGION, REGION_JSP, SLOW, SLOW_JSP]
    }

    fn frame(&self) -> Frame {
        self.common.frame()
    }

    fn page(&self, path: &str, query: &Query) -> Result<Found, Refusal> {
        match path {
            REGION | REGION_JSP => self.region(query).map(Found::Page),
            SLOW | SLOW_JSP => Ok(Found::Page(self.slow(query))),
            _ => self.status(query).map(Found::Page),
        }
    }

    fn history(&self) -> &History {
        &self.common.history
    }

    fn metrics(&self) -> &Registry {
        &self.common.metrics
    }

    fn configuration(&self) -> Configuration {
        self.common.configuration()
    }
}
