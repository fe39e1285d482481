//! The pages of a master.

mod cluster;
mod health;
mod procedures;
mod status;
mod table;

use std::sync::Arc;

use base::config::Config;
use base::env::Env;
use base::history::History;
use base::metrics::Registry;
use master::Master;
use web::{Frame, PageContent, Query, Refusal, RoleInfo, address};

use super::common::Configuration;
use super::{PageContext, Peers, region_server};
use crate::history;
use cluster::Cluster;

/// HBase's path of the status page.
pub(super) const STATUS: &str = "/master-status";
/// HBase's path of the page of a table.
const TABLE: &str = "/table.jsp";
/// The page of procedures; HBase's path of it shows the same page.
const PROCEDURES: &str = "/procedures";
const PROCEDURES_JSP: &str = "/procedures.jsp";
/// HBase paths whose content is part of the status page here.
const TABLES_JSP: &str = "/tablesDetailed.jsp";
const TRANSITIONS_JSP: &str = "/rits.jsp";
/// HBase's path of a region's page, which redirects to the region's server.
const REGION_JSP: &str = "/region.jsp";

/// The paths of all pages.
pub(super) const PATHS: &[&str] =
    &[STATUS, TABLE, PROCEDURES, PROCEDURES_JSP, TABLES_JSP, TRANSITIONS_JSP, REGION_JSP];

/// The pages of a master.
pub struct MasterPages {
    context: PageContext,
    master: Arc<Master>,
}

impl MasterPages {
    /// The pages of `master`, with its metrics; `calls` is its RPC server.
    pub fn new(
        env: &Env,
        master: Arc<Master>,
        metrics: Arc<Registry>,
        calls: &Arc<rpc::Server>,
        config: &Config,
        peers: &Peers,
    ) -> MasterPages {
        let history = history::master::start_sampling(env, config.history_period(), &metrics, &master, calls);
        let mut others = vec![("Procedures", PROCEDURES)];
        others.extend(peers.region_server.iter().map(|address| ("Region server", address.as_str())));
        let role = ("Master", master.server_name());
        let context = PageContext::new((metrics, history), config, role, (STATUS, &others));
        MasterPages { context, master }
    }

    /// Redirects to the page of a region at the server that has it open.
    fn region(&self, query: &Query) -> Result<PageContent, Refusal> {
        let name =
            query.get("name").ok_or_else(|| Refusal::bad("Missing parameter: “name” of the region."))?;
        let cluster = Cluster::collect(&self.master);
        let encoded = cell::region::encoded_name_of(name.as_bytes()).unwrap_or(name);
        let Some(entry) = cluster.regions.iter().find(|entry| entry.encoded == encoded) else {
            return Err(Refusal::missing(format!("There is no region {name}.")));
        };
        match cluster.pages_url(entry) {
            Some(pages) => Ok(PageContent::Redirect(address(
                &format!("{pages}{}", region_server::REGION),
                "name",
                encoded,
            ))),
            None => {
                let failure = self.master.context().assignment.failure(&entry.region);
                let reason = failure.map_or(String::new(), |failure| format!(": {}", failure.reason));
                let state = &entry.state;
                Err(Refusal::missing(format!("Region {name} is {state}; no server has it open{reason}.")))
            }
        }
    }
}

impl RoleInfo for MasterPages {
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
            TABLE => self.table(query).map(PageContent::Page),
            PROCEDURES | PROCEDURES_JSP => Ok(PageContent::Page(self.procedures())),
            TABLES_JSP => Ok(PageContent::Redirect(format!("{STATUS}#tables"))),
            TRANSITIONS_JSP => Ok(PageContent::Redirect(format!("{STATUS}#regions-in-transition"))),
            REGION_JSP => self.region(query),
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
