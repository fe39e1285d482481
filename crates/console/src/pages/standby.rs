//! The pages of a process of a cluster. Until its role is active, they state what it waits for: a
//! master for the end of the active one or its own start, a region server for other processes.

use std::sync::{Arc, OnceLock};

use base::config::Config;
use base::history::History;
use base::metrics::Registry;
use cell::region::ServerName;
use web::section::{Facts, Section};
use web::{Frame, Page, PageContent, Query, Refusal, RoleInfo, Value};

use super::common::Configuration;
use super::{MasterPages, PageContext, RegionServerPages, master, region_server};

/// What a process that does not serve yet does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandbyState {
    /// A master: it waits for its election.
    Backup {
        /// URL of the active master's pages, if it is known.
        active_master: Option<String>,
    },
    /// A master: it is elected, and takes over from the previous one.
    TakingOver {
        /// Time of the election, in milliseconds since the epoch.
        since_ms: u64,
    },
    /// A region server: it starts.
    Starting {
        /// The process or storage that it waits for.
        waits_for: &'static str,
        /// Since when it waits, in milliseconds since the epoch.
        since_ms: u64,
    },
}

/// Returns the current state.
pub type ReadState = Box<dyn Fn() -> StandbyState + Send + Sync>;

/// The status page of a role, and all its pages.
type Paths = (&'static str, &'static [&'static str]);

/// The pages of a role that may not be active yet.
pub struct StandbyPages<P> {
    context: PageContext,
    paths: Paths,
    state: ReadState,
    active: OnceLock<P>,
}

impl StandbyPages<MasterPages> {
    /// The pages of the backup master `server`, with its metrics.
    pub fn of_master(
        config: &Config,
        server: &ServerName,
        metrics: Arc<Registry>,
        state: ReadState,
    ) -> StandbyPages<MasterPages> {
        let paths = (master::STATUS, master::PATHS);
        StandbyPages::new(config, ("Backup master", server), metrics, paths, state)
    }
}

impl StandbyPages<RegionServerPages> {
    /// The pages of the region server `server` while it starts, with its metrics.
    pub fn of_region_server(
        config: &Config,
        server: &ServerName,
        metrics: Arc<Registry>,
        state: ReadState,
    ) -> StandbyPages<RegionServerPages> {
        let paths = (region_server::STATUS, region_server::PATHS);
        StandbyPages::new(config, ("Region server", server), metrics, paths, state)
    }
}

impl<P: RoleInfo> StandbyPages<P> {
    fn new(
        config: &Config,
        role: (&str, &ServerName),
        metrics: Arc<Registry>,
        paths: Paths,
        state: ReadState,
    ) -> StandbyPages<P> {
        let history = Arc::new(History::new(Vec::new(), config.history_period()));
        let context = PageContext::new((metrics, history), config, role, (paths.0, &[]));
        StandbyPages { context, paths, state, active: OnceLock::new() }
    }

    /// Shows the pages of the active role from now on.
    ///
    /// # Panics
    /// If it was called before.
    pub fn activate(&self, pages: P) {
        assert!(self.active.set(pages).is_ok(), "a role becomes active once");
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
            StandbyState::Starting { waits_for, since_ms } => {
                let since = format!("since {}", Value::moment(since_ms).as_text());
                let value = Value::text(waits_for).titled(since);
                ("Region server", "It is starting. It does not serve yet.", "Waiting for", value)
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
            StandbyState::Backup { .. } | StandbyState::Starting { .. } => frame,
            StandbyState::TakingOver { .. } => Frame { role: "Master".into(), ..frame },
        }
    }
}

impl<P: RoleInfo> RoleInfo for StandbyPages<P> {
    fn status_path(&self) -> &'static str {
        self.paths.0
    }

    fn paths(&self) -> &'static [&'static str] {
        self.paths.1
    }

    fn frame(&self) -> Frame {
        self.active.get().map_or_else(|| self.standby_frame(), P::frame)
    }

    fn page(&self, path: &str, query: &Query) -> Result<PageContent, Refusal> {
        match self.active.get() {
            Some(active) => active.page(path, query),
            None if path == self.paths.0 => Ok(PageContent::Page(self.standby_page())),
            None => Ok(PageContent::Redirect(self.paths.0.into())),
        }
    }

    fn history(&self) -> &History {
        self.active.get().map_or(&self.context.history, P::history)
    }

    fn metrics(&self) -> &Registry {
        self.active.get().map_or(&self.context.metrics, P::metrics)
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
        let pages = StandbyPages::of_master(&config, &server, metrics, state);
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

    #[tokio::test(start_paused = true)]
    async fn a_region_server_that_starts_states_what_it_waits_for() {
        let (config, env) = (Config::default(), env(1));
        let server = ServerName { host: "h".into(), port: 1, start_code: 1 };
        let metrics = Arc::new(Registry::new(env.clock.clone(), "h"));
        let since_ms = env.clock.now_ms();
        let state = Box::new(move || StandbyState::Starting { waits_for: "the active master", since_ms });
        let pages = StandbyPages::of_region_server(&config, &server, metrics, state);
        let Ok(PageContent::Page(page)) = pages.page(region_server::STATUS, &Query::default()) else {
            panic!("the status page")
        };
        let [Section::Facts(facts)] = &page.sections[..] else { panic!("one section") };
        assert_eq!(
            (facts.facts[0].0.as_str(), facts.facts[0].1.as_text()),
            ("Waiting for", "the active master")
        );
        let other = pages.page(region_server::REGION, &Query::default());
        assert!(matches!(other, Ok(PageContent::Redirect(address)) if address == region_server::STATUS));
    }
}
