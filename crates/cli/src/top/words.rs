//! The lines above the table, and messages about failures.

use std::time::Duration;

use super::cluster::Summary;
use super::view::{Order, View};

/// The lines of the summary, as in hbtop.
pub(super) fn summary(summary: &Summary) -> [String; 7] {
    let Summary { live_servers, dead_servers, regions, regions_in_transition, .. } = summary;
    [
        format!("grampus top - {} UTC", time_of_day(summary.now_ms)),
        format!("Version: {}", summary.version),
        format!("Cluster ID: {}", summary.cluster_id),
        format!(
            "RegionServer(s): {} total, {live_servers} live, {dead_servers} dead",
            live_servers + dead_servers
        ),
        format!("RegionCount: {regions} total, {regions_in_transition} rit"),
        format!("Average Cluster Load: {:.2}", summary.average_load()),
        format!("Aggregate Request/s: {:.0}", summary.requests_per_second),
    ]
}

fn time_of_day(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// The status line: mode, order and filters.
pub(super) fn view(view: &View) -> String {
    let order = match view.order {
        Order::HighFirst => "high first",
        Order::LowFirst => "low first",
    };
    let filters: Vec<String> = view.filters.iter().map(ToString::to_string).collect();
    let filters = if filters.is_empty() { String::new() } else { format!(", filters {}", filters.join(" ")) };
    format!("{} mode, by {} ({order}){filters}; h for help", view.mode, view.sort.head())
}

/// A failure as one line of printable ASCII.
pub(super) fn failure(error: &client::Error) -> String {
    // Polling continues forever, so the number of attempts is irrelevant.
    let result = match error {
        client::Error::Exhausted { last, .. } => last.to_string(),
        error => error.to_string(),
    };
    let first = result.lines().next().unwrap_or_default();
    first.chars().map(|sign| if sign.is_ascii_graphic() { sign } else { ' ' }).collect()
}

/// A delay as the user wrote it.
pub(super) fn seconds(delay: Duration) -> String {
    format!("{} s", delay.as_secs_f64())
}

/// The keys and their actions.
pub(super) const KEYS: [(&str, &str); 15] = [
    ("m", "choose the mode"),
    ("f", "choose, order and sort by fields"),
    ("R", "reverse the order"),
    ("o", "add a filter, ignoring case"),
    ("O", "add a case-sensitive filter"),
    ("F ^o", "show the filters"),
    ("=", "clear the filters"),
    ("i", "show the details of the selected line"),
    ("up down", "move the cursor; also k and j"),
    ("left right", "scroll the columns"),
    ("PgUp PgDn", "scroll by a page; also Home, End"),
    ("s d", "set the delay between updates"),
    ("X", "shrink the columns to fit"),
    ("Enter", "update now"),
    ("q Esc", "quit; from other screens: back"),
];

/// The lines above the list of keys.
pub(super) fn help(delay: Duration) -> Vec<String> {
    vec![
        format!("Updates every {}.", seconds(delay)),
        "Filters: FIELD=PART, FIELD==VALUE, also < <= > >=; a leading ! negates.".to_string(),
    ]
}
