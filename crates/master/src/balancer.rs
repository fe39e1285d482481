//! The balancer: moves regions so that each server has about the same number of regions, of each
//! table and in total, with as few moves as possible.
//!
//! It considers only the numbers of regions, not their sizes or loads. If it can choose among
//! several regions of a table, it moves the one with the smallest share of its bytes on the host of
//! its current server. It does nothing while regions are in transition or a dead server is being
//! recovered.

use std::collections::{BTreeMap, BTreeSet};

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;

/// A region that is to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The region.
    pub region: RegionInfo,
    /// Where it is.
    pub from: ServerName,
    /// Where it is to be.
    pub to: ServerName,
}

/// The regions of each server.
struct Placement {
    // By server and table. The regions are sorted so that a plan depends only on its input. `pop`
    // takes the next region to move, so the region that should move first is the last one.
    regions: BTreeMap<ServerName, BTreeMap<TableName, Vec<RegionInfo>>>,
    moves: Vec<Move>,
}

/// The moves that balance the `open` regions over the `live` servers. `hbase:meta` stays where it
/// is. `local_share` is the share of a region's bytes that is on the host of its server, from 0 to
/// 1.
pub fn plan(
    open: Vec<(RegionInfo, ServerName)>,
    live: &[ServerName],
    local_share: impl Fn(&RegionInfo) -> f32,
) -> Vec<Move> {
    let mut placement = Placement::new(open, live, local_share);
    let tables: BTreeSet<TableName> =
        placement.regions.values().flat_map(|tables| tables.keys().cloned()).collect();
    for table in &tables {
        while placement.move_one(table, |placement, server| placement.count_of(server, table), 1) {}
    }
    // Each table is balanced to within one region now. But a server may have the extra region of
    // many tables, so the totals can still differ.
    while tables.iter().any(|table| placement.move_remainder(table)) {}
    placement.moves
}

impl Placement {
    fn new(
        mut open: Vec<(RegionInfo, ServerName)>,
        live: &[ServerName],
        local_share: impl Fn(&RegionInfo) -> f32,
    ) -> Placement {
        let mut regions: BTreeMap<ServerName, BTreeMap<TableName, Vec<RegionInfo>>> =
            live.iter().map(|server| (server.clone(), BTreeMap::new())).collect();
        open.sort_by(|(one, _), (other, _)| {
            local_share(other).total_cmp(&local_share(one)).then_with(|| one.start_key.cmp(&other.start_key))
        });
        for (region, server) in open.into_iter().filter(|(region, _)| !region.table.is_meta()) {
            if let Some(tables) = regions.get_mut(&server) {
                tables.entry(region.table.clone()).or_default().push(region);
            }
        }
        Placement { regions, moves: Vec::new() }
    }

    fn count_of(&self, server: &ServerName, table: &TableName) -> usize {
        self.regions[server].get(table).map_or(0, Vec::len)
    }

    fn total_of(&self, server: &ServerName) -> usize {
        self.regions[server].values().map(Vec::len).sum()
    }

    /// Moves a region of `table` from the server with the highest `count` to the one with the
    /// lowest, if they differ by more than `slack`.
    fn move_one(
        &mut self,
        table: &TableName,
        count: impl Fn(&Placement, &ServerName) -> usize,
        slack: usize,
    ) -> bool {
        let by_count = |server: &&ServerName| (count(self, server), self.total_of(server));
        let most = self.regions.keys().max_by_key(by_count).cloned();
        let least = self.regions.keys().min_by_key(by_count).cloned();
        let (Some(most), Some(least)) = (most, least) else { return false };
        if count(self, &most) <= count(self, &least) + slack {
            return false;
        }
        self.move_region(table, &most, &least)
    }

    /// Moves a region of `table` from the server with the most regions in total to the one with
    /// the fewest, if that keeps the table balanced.
    fn move_remainder(&mut self, table: &TableName) -> bool {
        let most = self.regions.keys().max_by_key(|server| self.total_of(server)).cloned();
        let least = self.regions.keys().min_by_key(|server| self.total_of(server)).cloned();
        let (Some(most), Some(least)) = (most, least) else { return false };
        let is_uneven = self.total_of(&most) > self.total_of(&least) + 1;
        let keeps_balance = self.count_of(&most, table) > self.count_of(&least, table);
        is_uneven && keeps_balance && self.move_region(table, &most, &least)
    }

    fn move_region(&mut self, table: &TableName, from: &ServerName, to: &ServerName) -> bool {
        let regions = self.regions.get_mut(from).and_then(|tables| tables.get_mut(table));
        let Some(region) = regions.and_then(Vec::pop) else { return false };
        debug_assert!(from != to, "a region moves to another server");
        self.moves.push(Move { region: region.clone(), from: from.clone(), to: to.clone() });
        let tables = self.regions.get_mut(to).expect("a live server");
        // At the front, so that it is not moved again while others of the server can be.
        tables.entry(table.clone()).or_default().insert(0, region);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16) -> ServerName {
        ServerName { host: "h".into(), port, start_code: 1 }
    }

    fn regions(table: &str, count: u16) -> Vec<RegionInfo> {
        let table = TableName::parse(table).unwrap();
        let region = |at: u16| {
            RegionInfo::new(table.clone(), at.to_be_bytes().to_vec().into(), "".into(), u64::from(at))
        };
        (0..count).map(region).collect()
    }

    /// The number of moves of a plan, and afterwards the number of regions per server and table.
    fn after(open: &[(RegionInfo, ServerName)], live: &[ServerName]) -> (usize, Vec<Vec<usize>>) {
        let moves = plan(open.to_vec(), live, |_| 1.0);
        let mut located: Vec<(RegionInfo, ServerName)> = open.to_vec();
        for one in &moves {
            let region = located.iter_mut().find(|(region, _)| *region == one.region).unwrap();
            assert_eq!(region.1, one.from, "a move begins where the region is");
            region.1 = one.to.clone();
        }
        let tables: BTreeSet<TableName> = open.iter().map(|(region, _)| region.table.clone()).collect();
        let count = |server: &ServerName, table: &TableName| {
            located.iter().filter(|(region, at)| at == server && region.table == *table).count()
        };
        let counts = live.iter().map(|server| tables.iter().map(|table| count(server, table)).collect());
        (moves.len(), counts.collect())
    }

    fn all_on(server: &ServerName, regions: Vec<RegionInfo>) -> Vec<(RegionInfo, ServerName)> {
        regions.into_iter().map(|region| (region, server.clone())).collect()
    }

    #[test]
    fn a_new_server_gets_its_share_with_few_moves() {
        let live = [server(1), server(2), server(3)];
        let mut open = all_on(&live[0], regions("t", 12)[..6].to_vec());
        open.extend(all_on(&live[1], regions("t", 12)[6..].to_vec()));
        assert_eq!(after(&open, &live), (4, vec![vec![4], vec![4], vec![4]]));
    }

    #[test]
    fn each_table_is_balanced_and_so_is_the_total() {
        let live = [server(1), server(2), server(3)];
        let mut open = Vec::new();
        for table in ["a", "b", "c"] {
            open.extend(all_on(&live[0], regions(table, 4)));
        }
        let (_, counts) = after(&open, &live);
        for of_server in &counts {
            assert_eq!(of_server.iter().sum::<usize>(), 4, "{counts:?}");
            assert!(of_server.iter().all(|count| (1..=2).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn balanced_regions_stay() {
        let live = [server(1), server(2)];
        let mut open = all_on(&live[0], regions("t", 5)[..3].to_vec());
        open.extend(all_on(&live[1], regions("t", 5)[3..].to_vec()));
        assert_eq!(plan(open.clone(), &live, |_| 1.0), []);
        assert_eq!(plan(open, &live[..1], |_| 1.0), [], "one server");
        assert_eq!(plan(Vec::new(), &[], |_| 1.0), []);
    }

    #[test]
    fn regions_with_few_local_bytes_move_first() {
        let live = [server(1), server(2)];
        let open = all_on(&live[0], regions("t", 4));
        let remote = [open[0].0.clone(), open[2].0.clone()];
        let moves = plan(open, &live, |region| if remote.contains(region) { 0.1 } else { 0.9 });
        let mut moved: Vec<RegionInfo> = moves.into_iter().map(|one| one.region).collect();
        moved.sort_by(|one, other| one.start_key.cmp(&other.start_key));
        assert_eq!(moved, remote);
    }

    #[test]
    fn meta_stays() {
        let live = [server(1), server(2)];
        assert_eq!(plan(vec![(RegionInfo::meta(), live[0].clone())], &live, |_| 1.0), []);
    }
}
