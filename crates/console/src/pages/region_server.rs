//! The pages of a region server.

mod health;
mod hot;
mod memory;
mod region;
mod regions;
mod slow;
mod snapshot;
mod status;
mod tiers;

use std::sync::Arc;

use base::config::Config;
use base::env::Env;
use base::history::History;
use base::metrics::Registry;
use regionserver::RegionServer;
use web::{Frame, PageContent, Query, Refusal, RoleInfo};

use super::common::Configuration;
use super::{PageContext, Peers};
use crate::beans::Identity;
use crate::history;

/// HBase's path of the status page.
pub(super) const STATUS: &str = "/rs-status";
/// The page of a region; HBase's path of it shows the same page.
pub(super) const REGION: &str = "/region";
const REGION_JSP: &str = "/region.jsp";
/// The page of slow requests; HBase's path of a region server's slow log shows the same page.
const SLOW: &str = "/slow";
const SLOW_JSP: &str = "/namedQueueLogs.jsp";
/// The paths of all pages.
pub(super) const PATHS: &[&str] = &[STATUS, REGION, REGION_JSP, SLOW, SLOW_JSP];

/// The pages of a region server.
pub struct RegionServerPages {
    context: PageContext,
    server: Arc<RegionServer>,
    identity: Identity,
}

impl RegionServerPages {
    /// The pages of `server`, with its metrics; `calls` is its RPC server.
    pub fn new(
        env: &Env,
        server: Arc<RegionServer>,
        metrics: Arc<Registry>,
        calls: &Arc<rpc::Server>,
        config: &Config,
        identity: &Identity,
        peers: &Peers,
    ) -> RegionServerPages {
        let history =
            history::region_server::start_sampling(env, config.history_period(), &metrics, &server, calls);
        let mut others = vec![("Slow requests", SLOW)];
        others.extend(peers.master.iter().map(|address| ("Master", address.as_str())));
        let role = ("Region server", server.name());
        let context = PageContext::new((metrics, history), config, role, (STATUS, &others));
        RegionServerPages { context, server, identity: identity.clone() }
    }
}

impl RoleInfo for RegionServerPages {
    fn status_path(&self) -> &'static str {
        STATUS
    }

    fn paths(&self) -> &'static [&'static str] {
        PATHS
    }

    fn frame(&self) -> Frame {
        self.context.frame()
    }

    fn page(&self, path: &str, query: &Query) -> Result<PageContent, Refusal> {
        match path {
            REGION | REGION_JSP => self.region(query).map(PageContent::Page),
            SLOW | SLOW_JSP => Ok(PageContent::Page(self.slow(query))),
            _ => self.status(query).map(PageContent::Page),
        }
    }

    fn history(&self) -> &History {
        &self.context.history
    }

    fn metrics(&self) -> &Registry {
        &self.context.metrics
    }

    fn configuration(&self) -> Configuration {
        self.context.configuration()
    }
}
