//! The pages of a master of a cluster: until it is active, they state which master is.

use std::sync::{Arc, OnceLock};

use base::config::Config;
use base::history::History;
use base::metrics::Registry;
use cell::region::ServerName;
use web::section::{Facts, Section};
use web::{Frame, Page, PageContent, Query, Refusal, RoleInfo, Value};

use super::common::Configuration;
use super::master::{PATHS, STATUS};
use super::{MasterPages, PageContext};

/// Returns the URL of the active master's pages, if it is known.
pub type ActiveMasterUrl = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The pages of a master that may not be active yet.
pub struct StandbyPages {
    context: PageContext,
    active_master: ActiveMasterUrl,
    active: OnceLock<MasterPages>,
}

impl StandbyPages {
    /// The pages of the backup master `server`, with its metrics.
    pub fn new(
        config: &Config,
        server: &ServerName,
        metrics: Arc<Registry>,
        active_master: ActiveMasterUrl,
    ) -> StandbyPages {
        let history = Arc::new(History::new(Vec::new(), config.history_period()));
        let context = PageContext::new((metrics, history), config, ("Backup master", server), (STATUS, &[]));
        StandbyPages { context, active_master, active: OnceLock::new() }
    }

    /// Shows the pages of the active master from now on.
    ///
    /// # Panics
    /// If it was called before.
    pub fn activate(&self, pages: MasterPages) {
        assert!(self.active.set(pages).is_ok(), "a master becomes active once");
    }

    fn standby_page(&self) -> Page {
        let active = match (self.active_master)() {
            Some(url) => Value::text(url.clone()).linked(url),
            None => Value::none(),
        };
        Page {
            title: "Backup master".into(),
            subtitle: "It becomes active when the active master ends.".into(),
            up: None,
            sections: vec![Section::Facts(Facts::new("Cluster").and("Active master", active))],
        }
    }
}

impl RoleInfo for StandbyPages {
    fn status_path(&self) -> &'static str {
        STATUS
    }

    fn paths(&self) -> &'static [&'static str] {
        PATHS
    }

    fn frame(&self) -> Frame {
        self.active.get().map_or_else(|| self.context.frame(), MasterPages::frame)
    }

    fn page(&self, path: &str, query: &Query) -> Result<PageContent, Refusal> {
        match self.active.get() {
            Some(active) => active.page(path, query),
            None if path == STATUS => Ok(PageContent::Page(self.standby_page())),
            None => Ok(PageContent::Redirect(STATUS.into())),
        }
    }

    fn history(&self) -> &History {
        self.active.get().map_or(&self.context.history, MasterPages::history)
    }

    fn metrics(&self) -> &Registry {
        self.active.get().map_or(&self.context.metrics, MasterPages::metrics)
    }

    fn configuration(&self) -> Configuration {
        self.context.configuration()
    }
}
