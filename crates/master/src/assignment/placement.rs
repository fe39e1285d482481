//! The choice of servers for regions that are to be opened.
//!
//! A region returns to the address where it was last, if a server lives there: after a restart of
//! the cluster, or of one server. Every other region goes to the server that has the fewest regions
//! of its table, and among those to the one with the fewest regions.
//!
//! A region that failed to open goes to a server that has not tried to open it since it was last
//! open. When all have tried, it goes to the one whose attempt was the earliest.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;

use super::Assignment;

/// The longest time that regions wait for the first calls to new servers.
const CONTACT_WAIT_MAX: Duration = Duration::from_secs(3);

/// Numbers of regions per server.
#[derive(Default)]
struct Counts {
    total: HashMap<ServerName, usize>,
    by_table: HashMap<(ServerName, TableName), usize>,
}

impl Counts {
    fn add(&mut self, server: &ServerName, table: &TableName) {
        *self.total.entry(server.clone()).or_default() += 1;
        *self.by_table.entry((server.clone(), table.clone())).or_default() += 1;
    }

    fn of(&self, server: &ServerName, table: &TableName) -> (usize, usize) {
        let of_table = self.by_table.get(&(server.clone(), table.clone())).copied().unwrap_or(0);
        (of_table, self.total.get(server).copied().unwrap_or(0))
    }
}

impl Assignment {
    /// Chooses an available server for each region. Waits until there is one.
    pub(super) async fn place(&self, regions: &[RegionInfo]) -> BTreeMap<ServerName, Vec<RegionInfo>> {
        // Limited, because servers that always fail while they start would delay all regions.
        self.env.timeout(CONTACT_WAIT_MAX, self.servers.wait_for_contacts()).await;
        let available = self.servers.wait_for_available().await;
        let mut counts = self.regions_per_server();
        let mut placed: BTreeMap<ServerName, Vec<RegionInfo>> = BTreeMap::new();
        for region in regions {
            let server = match self.last_server(region, &available) {
                Some(server) => server,
                None => {
                    let failure = self.failure(region);
                    let recency_of = |server: &ServerName| {
                        failure.as_ref().map_or(0, |failure| failure.recency_of(server))
                    };
                    let rank = |server: &&ServerName| (recency_of(server), counts.of(server, &region.table));
                    available.iter().min_by_key(rank).expect("a server is available").clone()
                }
            };
            counts.add(&server, &region.table);
            placed.entry(server).or_default().push(region.clone());
        }
        placed
    }

    /// The available server at the address where the region was last, unless that server could not
    /// open it.
    fn last_server(&self, region: &RegionInfo, available: &[ServerName]) -> Option<ServerName> {
        let states = self.lock();
        let tracked = states.get(&region.encoded_name())?;
        let (host, port) = tracked.last_address.as_ref()?;
        let last = available.iter().find(|server| server.host == *host && server.port == *port)?;
        // The server may be the reason of the failure.
        let is_tried = tracked.failure.as_ref().is_some_and(|failure| failure.recency_of(last) > 0);
        (!is_tried).then(|| last.clone())
    }

    fn regions_per_server(&self) -> Counts {
        let mut counts = Counts::default();
        for tracked in self.lock().values() {
            if let Some(server) = tracked.state.server() {
                counts.add(server, &tracked.region.table);
            }
        }
        counts
    }
}
