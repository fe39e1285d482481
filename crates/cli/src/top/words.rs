//! The lines over the table, and what is told of failures.

use std::time::Duration;

use super::cluster::Summary;
use super::view::{Order, View};

/// The lines of the summary, hbtop's.
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

/// What is shown, in a line.
pub(super) fn view(view: &View) -> String {
    let order = match view.order {
        Order::HighFirst => "high first",
        Order::LowFirst => "low first",
    };
    let filters: Vec<String> = view.filters.iter().map(ToString::to_string).collect();
    let filters = if filters.is_empty() { String::new() } else { format!(", filters {}", filters.join(" ")) };
    format!("{} mode, by {} ({order}){filters}; h for help", view.mode, view.sort.head())
}

/// A failure in one harmless line.
pub(super) fn failure(error: &client::Error) -> String {
    // How often it was tried is of no interest where it is tried for ever.
    let told = match error {
        client::Error::Exhausted { last, .. } => last.to_string(),
        error => error.to_string(),
    };
    let first = told.lines().next().unwrap_or_default();
    first.chars().map(|sign| if sign.is_ascii_graphic() { sign } else { ' ' }).collect()
}

/// Seconds as they were given.
pub(super) fn seconds(delay: Duration) -> String {
    format!("{} s", delay.as_secs_f64())
}

/// The keys, and what they do.
pub(super) const KEYS: [(&str, &str); 15] = [
    ("m", "choose the mode"),
    ("f", "choose, order and sort by fields"),
    ("R", "reverse the order"),
    ("o", "add a filter, whatever the case of letters"),
    ("O", "add a filter, case matters"),
    ("F ^o", "show the filters"),
    ("=", "clear the filters"),
    ("i", "look closer at the line of the cursor"),
    ("up down", "move the cursor; also k and j"),
    ("left right", "move the columns"),
    ("PgUp PgDn", "a page up or down; also Home, End"),
    ("s d", "how often to look"),
    ("X", "fit the columns again"),
    ("Enter", "look now"),
    ("q Esc", "quit; from other screens: back"),
];

/// What is above the list of keys.
pub(super) fn help(delay: Duration) -> Vec<String> {
    vec![
        format!("A look every {}.", seconds(delay)),
        "Filters: FIELD=PART, FIELD==VALUE, also < <= > >=, ! before it for the opposite.".to_string(),
    ]
}
