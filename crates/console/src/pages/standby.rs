//! The pages of a master of a cluster: until it is active, they state which master is, or that it
//! takes over.

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

/// What a master that does not serve yet does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandbyState {
    /// It waits for its election.
    Backup {
        /// URL of the active master's pages, if it is known.
        active_master: Option<String>,
    },
    /// It is elected, and takes over from the previous master.
    TakingOver {
        /// Time of the election, in milliseconds since the epoch.
        since_ms: u64,
    },
}

/// Returns the current state.
pub type ReadState = Box<dyn Fn() -> StandbyState + Send + Sync>;

/// The pages of a master that may not be active yet.
pub struct StandbyPages {
    context: PageContext,
    state: ReadState,
    active: OnceLock<MasterPages>,
}

impl StandbyPages {
    /// The pages of the backup master `server`, with its metrics.
    pub fn new(
        config: &Config,
        server: &ServerName,
        metrics: Arc<Registry>,
        state: ReadState,
    ) -> StandbyPages {
        let history = Arc::new(History::new(Vec::new(), config.history_period()));
        let context = PageContext::new((metrics, history), config, ("Backup master", server), (STATUS, &[]));
        StandbyPages { context, state, active: OnceLock::new() }
    }

    /// Shows the pages of the active master from now on.
    ///
    /// # Panics
    /// If it was called before.
    pub fn activate(&self, pages: MasterPages) {
        assert!(self.active.set(pages).is_ok(), "a master becomes active once");
    }

    fn standby_page(&self) -> Page {
        let (title, subtitle, name, value) = match (self.state)() {
            StandbyState::Backup { active_master } => {
                let link = active_master.map(|url| Value::text(url.clone()).linked(url));
                let value = link.unwrap_or_else(Value::none);
                ("Backup master", "It becomes active when the active master ends.", "Active master", value)
            }
            StandbyState::TakingOver { since_ms } => {
                let value = Value::ago(since_ms, self.context.now_ms());
                ("Master", "It is elected and takes over. It does not serve yet.", "Elected", value)
            }
        };
        Page {
            title: title.into(),
            subtitle: subtitle.into(),
            up: None,
            sections: vec![Section::Facts(Facts::new("Cluster").and(name, value))],
        }
    }

    fn standby_frame(&self) -> Frame {
        let frame = self.context.frame();
        match (self.state)() {
            StandbyState::Backup { .. } => frame,
            StandbyState::TakingOver { .. } => Frame { role: "Master".into(), ..frame },
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
        self.active.get().map_or_else(|| self.standby_frame(), MasterPages::frame)
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use base::testing::env;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_master_that_takes_over_is_no_backup_master() {
        let (config, env) = (Config::default(), env(1));
        let server = ServerName { host: "h".into(), port: 1, start_code: 1 };
        let metrics = Arc::new(Registry::new(env.clock.clone(), "h"));
        let url = "http://other:16010";
        let current = Arc::new(Mutex::new(StandbyState::Backup { active_master: Some(url.into()) }));
        let read = current.clone();
        let state = Box::new(move || read.lock().unwrap().clone());
        let pages = StandbyPages::new(&config, &server, metrics, state);
        let shown = || {
            let Page { title, sections, .. } = pages.standby_page();
            let [Section::Facts(facts)] = &sections[..] else { panic!("one section") };
            (pages.frame().role, title, facts.facts[0].1.as_text().to_string())
        };
        let (role, title, master) = shown();
        assert_eq!([role, title, master], ["Backup master", "Backup master", url]);
        *current.lock().unwrap() = StandbyState::TakingOver { since_ms: env.clock.now_ms() - 60_000 };
        let (role, title, elected) = shown();
        assert_eq!((role.as_str(), title.as_str()), ("Master", "Master"));
        assert!(elected.ends_with(" ago") && !elected.contains("other"), "{elected}");
    }
}
