//! `grampus bench` with a server, both started as users do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::process::Output;

use common::{Server, TempDir, grampus, run, text};
use serde_json::Value;

fn bench(server: &Server, arguments: &[&str]) -> Output {
    let offset = server.offset.to_string();
    run(grampus().args(["bench", "--port-offset", &offset]).args(arguments))
}

fn measured(output: &Output, file: &std::path::Path) -> Vec<Value> {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let lines = fs::read_to_string(file).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_workload_is_measured() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let (json, plot) = (dir.join("runs.json"), dir.join("runs.svg"));
    let pid = server.pid().to_string();
    let workloads = [
        "sequentialWrite",
        "randomWrite",
        "sequentialRead",
        "randomRead",
        "scan",
        "scanRange10000",
        "filterScan",
        "filterRange10000",
        "increment",
        "append",
        "checkAndPut",
    ];
    let mut arguments = workloads.to_vec();
    arguments.extend([
        "--load",
        "--rows",
        "20000",
        "--clients",
        "1,3",
        "--seconds",
        "0.5",
        "--warm-up",
        "0.05",
    ]);
    arguments.extend([
        "--returned",
        "1",
        "--regions",
        "2",
        "--attribute",
        "VERSIONS=2",
        "--server-pid",
        &pid,
    ]);
    arguments.extend(["--json", json.to_str().unwrap(), "--plot", plot.to_str().unwrap()]);
    let output = bench(&server, &arguments);

    let runs = measured(&output, &json);
    let reported: Vec<_> = runs
        .iter()
        .map(|run| (run["workload"].as_str().unwrap(), run["clients"].as_u64().unwrap()))
        .collect();
    let wanted: Vec<_> = workloads.iter().flat_map(|workload| [(*workload, 1), (*workload, 3)]).collect();
    assert_eq!(reported, wanted);
    for run in &runs {
        assert!(run["calls"].as_u64().unwrap() > 0, "{run}");
        assert!(run["rows_per_second"].as_f64().unwrap() > 0.0, "{run}");
        assert!(run["server_resident_mib"].as_f64().unwrap() > 1.0, "{run}");
        let of = |name: &str| run["latency_us"][name].as_f64().unwrap();
        assert!(of("p50") <= of("p99") && of("p99") <= of("max") * 1.01, "{run}");
    }
    let once = runs.iter().filter(|run| run["workload"].as_str().unwrap().starts_with("sequential"));
    assert!(once.clone().count() == 4 && once.clone().all(|run| run["rows"] == 20_000), "{runs:?}");
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().count(), 1 + wanted.len(), "{shown}");
    let picture = fs::read_to_string(&plot).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("filterRange10000: latency"), "{picture}");

    // A client reads what the benchmark wrote.
    let row = server.shell("get 'TestTable', '00000000000000000000000007', 'info0:0'");
    assert!(text(&row.stdout).contains("1 row(s)"), "{}", text(&row.stdout));
    server.kill();
}

#[test]
fn calls_are_made_at_the_requested_rate() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let json = dir.join("runs.json");
    let arguments = ["randomRead", "--load", "--rows", "1000", "--rate", "500", "--seconds", "2"];
    let output = bench(&server, &[&arguments[..], &["--json", json.to_str().unwrap()]].concat());
    let runs = measured(&output, &json);
    // A busy machine may delay calls, but they never come early.
    let calls = runs[0]["calls"].as_u64().unwrap();
    assert!((100..=1_100).contains(&calls), "{calls} calls");
    server.kill();
}

#[test]
fn unmeasurable_benchmarks_are_refused() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let refused = |arguments: &[&str], message: &str| {
        let output = bench(&server, arguments);
        let stderr = text(&output.stderr);
        assert!(!output.status.success() && stderr.contains(message), "{arguments:?}: {stderr}");
    };
    refused(&["randomRead"], "TestTable");
    refused(&["sequentialWrite", "--rows", "10", "--server-pid", "4294967295"], "process 4294967295");
    refused(&["sequentialWrite", "--rows", "0"], "--rows");
    refused(&["randomRead", "--rate", "fast"], "not a number");
    refused(&["echo"], "--echo IP:PORT");
    refused(&["echoPut", "--batch", "10000"], "accepts 1000000 bytes per call");
    assert!(bench(&server, &["sequentialWrite", "--rows", "10"]).status.success());
    let few = ["sequentialRead", "--rows", "1000"];
    refused(&few, "is missing; write the rows first");
    server.kill();
}

#[test]
fn hot_rows_are_requested_more_often() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let rows = ["randomRead", "--rows", "1000", "--seconds", "0.2", "--warm-up", "0"];
    let hot = ["--load", "--hot-rows", "10", "--hot-percent", "60", "--uncached"];
    let output = bench(&server, &[&rows[..], &hot].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = bench(&server, &[&rows[..], &["--hot-rows", "1000", "--hot-percent", "60"]].concat());
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("--hot-rows 1000 leaves no other rows"),
        "{}",
        text(&output.stderr)
    );
}
