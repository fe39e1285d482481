//! The page shows the rows and regions with the most requests.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::common::{PORTS, Server, TempDir};
use crate::connection::Connection;
use crate::{get, html};

const ROWS: usize = 2_000;
const REGIONS: usize = 20;
const REQUESTS: usize = 400_000;
const BATCH: usize = 100;
/// Zipf's exponent: the tenth row gets a twentieth of the requests of the first.
const EXPONENT: f64 = 1.3;

/// The row of a rank, and its region. Rows of neighboring ranks are far from each other.
fn row(rank: usize) -> (String, usize) {
    let place = rank * 7_919 % ROWS;
    (format!("{place:04}"), place * REGIONS / ROWS)
}

/// Ranks with Zipf's distribution, from a deterministic generator.
struct Zipf {
    up_to: Vec<f64>,
    state: u64,
}

impl Zipf {
    fn new() -> Zipf {
        let shares = (1..=ROWS).map(|rank| (rank as f64).powf(-EXPONENT));
        let mut sum = 0.0;
        let up_to = shares.map(|share| {
            sum += share;
            sum
        });
        Zipf { up_to: up_to.collect(), state: 0x2545_F491_4F6C_DD1D }
    }

    fn next(&mut self) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let wanted = (self.state >> 11) as f64 / (1u64 << 53) as f64 * self.up_to[ROWS - 1];
        self.up_to.partition_point(|up_to| *up_to < wanted).min(ROWS - 1)
    }
}

/// The names of the table's regions, by start key.
fn regions(port: u16) -> Vec<Bytes> {
    let mut connection = Connection::open(port).unwrap();
    let region = Some(proto::RegionSpecifier { r#type: 1, value: "hbase:meta,,1".into() });
    let scan = Some(proto::Scan { start_row: Some("hot,,".into()), ..Default::default() });
    let request = proto::ScanRequest { region, scan, number_of_rows: Some(100), ..Default::default() };
    let (_, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &request);
    let mut reader = cell::codec::Codec::KeyValue.read(cells);
    let mut names: Vec<Bytes> =
        std::iter::from_fn(|| reader.next().map(|cell| Bytes::copy_from_slice(cell.unwrap().view(0).row())))
            .collect();
    names.dedup();
    names.retain(|name| name.starts_with(b"hot,"));
    assert_eq!(names.len(), REGIONS);
    names
}

/// Gets rows with Zipf's distribution. Returns the number of requests for each row and each region.
fn send_gets(port: u16) -> (HashMap<String, u64>, Vec<u64>) {
    let names = regions(port);
    let (mut of_rows, mut of_regions) = (HashMap::new(), vec![0; REGIONS]);
    let mut connection = Connection::open(port).unwrap();
    let mut zipf = Zipf::new();
    for _ in 0..REQUESTS / BATCH {
        let mut actions: Vec<proto::RegionAction> = names
            .iter()
            .map(|name| proto::RegionAction {
                region: proto::RegionSpecifier { r#type: 1, value: name.clone() },
                ..Default::default()
            })
            .collect();
        for index in 0..BATCH {
            let (row, region) = row(zipf.next());
            *of_rows.entry(row.clone()).or_insert(0) += 1;
            of_regions[region] += 1;
            let get = Some(proto::Get { row: row.into(), ..Default::default() });
            actions[region].action.push(proto::Action {
                index: Some(index as u32),
                get,
                ..Default::default()
            });
        }
        actions.retain(|of_region| !of_region.action.is_empty());
        let request = proto::MultiRequest { region_action: actions, ..Default::default() };
        connection.call("Multi", &request, &[]).unwrap().unwrap();
    }
    (of_rows, of_regions)
}

/// The text from `begin` to the next `end`.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = &page[page.find(begin).unwrap_or_else(|| panic!("{begin}: {page}"))..];
    &rest[..rest.find(end).unwrap_or(rest.len())]
}

/// The first cell of each line of the table of hot rows.
fn hot_rows(page: &str) -> Vec<String> {
    let lines = between(page, "id=\"hot-rows\"", "</section>").split("<tr").skip(2);
    lines.map(|line| text_of(line.split("<td").nth(1).unwrap())).collect()
}

/// The labels of the heat map of hot regions.
fn hot_regions(page: &str) -> Vec<String> {
    let names = between(page, "id=\"hot-regions\"", "</section>").split("class=\"name\"").skip(1);
    names.map(|name| text_of(name.split("</div>").next().unwrap())).filter(|name| !name.is_empty()).collect()
}

fn text_of(part: &str) -> String {
    let (mut text, mut depth) = (String::new(), 1);
    for letter in part.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    text
}

#[test]
fn the_hottest_rows_and_regions_are_shown() {
    let dir = TempDir::new();
    // Six intervals are "now", which is longer than the requests take.
    let server = Server::start_with(&dir.join("data"), &["--set", "grampus.history.period=5s"]);
    let splits: Vec<String> = (1..REGIONS).map(|at| format!("'{:04}'", at * ROWS / REGIONS)).collect();
    let made = server.shell(&format!("create 'hot', 'f', SPLITS => [{}]", splits.join(", ")));
    assert!(made.status.success());
    let (of_rows, of_regions) = send_gets(PORTS[3] + server.offset);
    let port = PORTS[4] + server.offset;

    let (_, _, page) = get(port, "/rs-status");
    html::check(&page);
    let shown = hot_rows(&page);
    let mut true_rows: Vec<(&String, u64)> = of_rows.iter().map(|(row, count)| (row, *count)).collect();
    true_rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let tenth = true_rows[9].1;
    for row in &shown[..10] {
        assert!(
            of_rows[row] * 5 >= tenth * 4,
            "{row} was requested {} times, the tenth row {tenth} times",
            of_rows[row]
        );
    }
    for (row, count) in true_rows.iter().take_while(|(_, count)| *count * 4 >= tenth * 5) {
        assert!(shown[..10].contains(row), "{row}, requested {count} times, is not in {shown:?}");
    }
    assert_eq!(&shown[..3], &[true_rows[0].0.clone(), true_rows[1].0.clone(), true_rows[2].0.clone()]);

    let mut true_regions: Vec<(usize, u64)> = of_regions.iter().copied().enumerate().collect();
    true_regions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let start = |at: usize| if at == 0 { String::new() } else { format!("{:04}", at * ROWS / REGIONS) };
    let expected: Vec<String> =
        true_regions.iter().take(10).map(|(at, _)| format!("hot,{}", start(*at))).collect();
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let (_, _, page) = get(port, "/rs-status");
        let mut shown = hot_regions(&page);
        shown.retain(|name| name.starts_with("hot,"));
        shown.truncate(10);
        if shown == expected {
            return;
        }
        assert!(Instant::now() < end, "shown {shown:?}, expected {expected:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
