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
use web::{Facts, Found, Frame, Query, Refusal, address};

use super::common::Configuration;
use super::{Common, Peers, region_server};
use crate::history;
use cluster::Cluster;

/// HBase's path of the status page.
const STATUS: &str = "/master-status";
/// HBase's path of the page of a table.
const TABLE: &str = "/table.jsp";
/// The page of procedures, and HBase's path of it.
const PROCEDURES: &str = "/procedures";
const PROCEDURES_JSP: &str = "/procedures.jsp";
/// Paths of HBase's whose content is part of the status page here.
const TABLES_JSP: &str = "/tablesDetailed.jsp";
const TRANSITIONS_JSP: &str = "/rits.jsp";
/// HBase's path of a region, whose page its server has.
const REGION_JSP: &str = "/region.jsp";

/// The pages of a master.
pub(crate) struct MasterPages {
    common: Common,
    master: Arc<Master>,
}

impl MasterPages {
    /// The pages of `master`, with its beans and the server of its calls.
    pub(crate) fn new(
        env: &Env,
        master: Arc<Master>,
        (metrics, calls): (Arc<Registry>, &Arc<rpc::Server>),
        config: &Config,
        peers: &Peers,
    ) -> MasterPages {
        let history = history::master::keep(env, config.history_period(), &metrics, &master, calls);
        let mut others = vec![("Procedures", PROCEDURES)];
        others.extend(peers.region_server.iter().map(|address| ("Region server", address.as_str())));
        let role = ("Master", master.server_name());
        let common = Common::new((metrics, history), config, role, (STATUS, &others));
        MasterPages { common, master }
    }

    /// Where the page of a region is: at its server, if one has it.
    fn region(&self, query: &Query) -> Result<Found, Refusal> {
        let name = query
            .get("name")
            .ok_or_else(|| Refusal::bad("Which region? The address has no “name” in it."))?;
        let cluster = Cluster::of(&self.master);
        let encoded = cell::region::encoded_name_of(name.as_bytes()).unwrap_or(name);
        let Some(known) = cluster.regions.iter().find(|known| known.encoded == encoded) else {
            return Err(Refusal::missing(format!("There is no region {name}.")));
        };
        match cluster.pages_of(known) {
            Some(pages) => {
                Ok(Found::Elsewhere(address(&format!("{pages}{}", region_server::REGION), "name", encoded)))
            }
            None => {
                let failure = self.master.context().assignment.failure(&known.region);
                let reason = failure.map_or(String::new(), |failure| format!(": {}", failure.reason));
                let state = &known.state;
                Err(Refusal::missing(format!("The region {name} is {state}; no server has it{reason}.")))
            }
        }
    }
}

impl Facts for MasterPages {
    fn status_path(&self) -> &'static str {
        STATUS
    }

    fn paths(&self) -> &'static [&'static str] {
        &[STATUS, TABLE, PROCEDURES, PROCEDURES_JSP, TABLES_JSP, TRANSITIONS_JSP, REGION_JSP]
    }

    fn frame(&self) -> Frame {
        self.common.frame()
    }

    fn page(&self, path: &str, query: &Query) -> Result<Found, Refusal> {
        match path {
            TABLE => self.table(query).map(Found::Page),
            PROCEDURES | PROCEDURES_JSP => Ok(Found::Page(self.procedures())),
            TABLES_JSP => Ok(Found::Elsewhere(format!("{STATUS}#tables"))),
            TRANSITIONS_JSP => Ok(Found::Elsewhere(format!("{STATUS}#regions-in-transition"))),
            REGION_JSP => self.region(query),
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
