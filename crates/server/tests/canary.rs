//! `grampus canary` with a server, both started as users do.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use common::{Server, TempDir, grampus, run, text, wait};

fn canary(server: &Server, arguments: &[&str]) -> Output {
    let offset = server.offset.to_string();
    run(grampus().args(["canary", "--port-offset", &offset]).args(arguments))
}

/// Counts the lines with this start.
fn count(output: &Output, start: &str) -> usize {
    text(&output.stdout).lines().filter(|line| line.starts_with(start)).count()
}

fn check(output: &Output, status: i32, message: &str) {
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{all}");
    assert!(all.contains(message), "{message} in {all}");
}

fn start(dir: &TempDir) -> Server {
    let server = Server::start(&dir.join("data"));
    let made = server.shell(
        "create 't', 'f', 'g', SPLITS => ['b', 'd']; create 'u', 'f'; create 'off', 'f'; disable 'off'; \
         put 't', 'a', 'f:q', 'v'",
    );
    assert!(made.status.success(), "{}", text(&made.stdout));
    server
}

#[test]
fn all_families_of_all_regions_are_read() {
    let dir = TempDir::new();
    let server = start(&dir);
    let output = canary(&server, &[]);
    check(&output, 0, "probes");
    // Three regions with two families, and one with one. A disabled table is not probed.
    assert_eq!(count(&output, "Read from t,"), 6, "{}", text(&output.stdout));
    assert_eq!(count(&output, "Read from u,"), 1);
    assert_eq!(count(&output, "Read from "), 7);
    let summary = text(&output.stdout);
    let last = summary.lines().last().unwrap();
    assert_eq!(last.split_whitespace().collect::<Vec<_>>()[1..3], ["7", "0"], "{summary}");

    let output = canary(&server, &["u", "-readTableTimeouts", "u=60000", "off"]);
    check(&output, 0, "Read operation for u took ");
    check(&output, 0, "table off is not enabled");
    assert_eq!(count(&output, "Read from "), 1);
    let output = canary(&server, &["-e", "[tx]", "u.+"]);
    assert_eq!((count(&output, "Read from t,"), count(&output, "Read from ")), (6, 6));
    let output = canary(&server, &["hbase:meta"]);
    check(&output, 0, "Read from hbase:meta,,1 on ");
    server.kill();
}

#[test]
fn failed_probes_return_hbase_exit_codes() {
    let dir = TempDir::new();
    let server = start(&dir);
    let asked = |arguments: &[&str]| canary(&server, arguments);
    check(&asked(&["missing"]), 4, "table missing does not exist");
    check(&asked(&["-e", "missing.*"]), 2, "no table matches missing.*");
    check(&asked(&["-allRegions"]), 1, "--regionserver");
    check(&asked(&["-regionserver", "t"]), 1, "t is a table");
    check(&asked(&["-regionserver", "absent"]), 2, "no live region server");
    check(&asked(&["-readTableTimeouts", "t=x"]), 1, "not a number");
    check(&asked(&["u", "-readTableTimeouts", "t=1"]), 1, "t, which is not probed");
    check(&asked(&["-t", "0"]), 3, "timed out after 0 ms");
    check(&asked(&["-bogus"]), 1, "-b");
    check(&asked(&["--help"]), 0, "Usage: grampus canary");
    check(&run(grampus().args(["canary", "--zookeeper", "127.0.0.1:1"])), 2, "the cluster is not found");
    server.kill();
}

#[test]
fn an_offline_region_is_named_and_others_are_read() {
    let dir = TempDir::new();
    let server = start(&dir);
    let all = text(&canary(&server, &["t"]).stdout);
    let line = all.lines().find(|line| line.starts_with("Read from t,b,")).unwrap();
    let region = line.split(' ').nth(2).unwrap();
    assert!(server.shell(&format!("unassign '{region}'")).status.success());

    let output = canary(&server, &["t", "u"]);
    check(&output, 5, "2 of 7 probes failed");
    assert_eq!(count(&output, "Read from "), 5, "{}", text(&output.stdout));
    let failed = format!("ERROR: Read from {region} on serverName=localhost,");
    assert_eq!(count(&output, &failed), 2, "{}", text(&output.stdout));
    for part in ["columnFamily=f failed: ", "columnFamily=g failed: ", "NotServingRegionException"] {
        check(&output, 5, part);
    }
    check(&canary(&server, &["t", "-f", "false"]), 0, "columnFamily=f failed: ");
    server.kill();
}

#[test]
fn a_daemon_probes_repeatedly() {
    let dir = TempDir::new();
    let server = start(&dir);
    let offset = server.offset.to_string();
    let mut asked = grampus();
    asked.args(["canary", "--port-offset", &offset, "u", "-daemon", "-interval", "1"]);
    let mut daemon = asked.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(daemon.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.filter(|line| line.starts_with("Read from u,")).take(3).count(), 3);
    daemon.kill().unwrap();
    wait(&mut daemon);
    check(&canary(&server, &["u", "-interval", "0"]), 0, "Read from u,");
    server.kill();
}

#[test]
fn region_servers_are_probed() {
    let dir = TempDir::new();
    let server = start(&dir);
    let output = canary(&server, &["-regionserver"]);
    check(&output, 0, "probes");
    assert_eq!(count(&output, "Read from "), 1, "{}", text(&output.stdout));
    let output = canary(&server, &["-regionserver", "-allRegions", "-e", "127.*|localhost"]);
    assert_eq!(count(&output, "Read from "), 4, "{}", text(&output.stdout));
    server.kill();
}

#[test]
fn a_table_is_written_to() {
    let dir = TempDir::new();
    let server = start(&dir);
    for _ in 0..2 {
        let output = canary(&server, &["-writeSniffing"]);
        check(&output, 0, "Write operation for hbase:canary took ");
        assert_eq!(count(&output, "Write to hbase:canary,"), 1, "{}", text(&output.stdout));
        // The canary table is written but not read.
        assert_eq!(count(&output, "Read from "), 7);
    }
    let described = text(&server.shell("describe 'hbase:canary'; count 'hbase:canary'").stdout);
    assert!(described.contains("NAME => 'Test'") && described.contains("TTL => '86400"), "{described}");
    assert!(described.contains("1 row(s)"), "{described}");
    let output = canary(&server, &["u", "--write-sniffing", "--write-table", "mine"]);
    assert_eq!(count(&output, "Write to mine,"), 1, "{}", text(&output.stdout));
    server.kill();
}

#[test]
fn zookeeper_servers_are_probed_one_by_one() {
    let dir = TempDir::new();
    let server = start(&dir);
    let address = server.zookeeper();
    let both = format!("{address},127.0.0.1:1");
    let asked = |arguments: &[&str]| {
        run(grampus().args(["canary", "-zookeeper", "--zookeeper", &both]).args(arguments))
    };
    let output = asked(&[]);
    check(&output, 5, "1 of 2 probes failed");
    check(&output, 5, &format!("Read from /hbase on {address} in "));
    check(&output, 5, "ERROR: Read from /hbase on 127.0.0.1:1 failed: ");
    check(&asked(&["-permittedZookeeperFailures", "1"]), 0, "ERROR: ");
    check(&asked(&["-f", "false"]), 0, "ERROR: ");
    check(&asked(&["-f", "false", "-treatFailureAsError"]), 5, "ERROR: ");
    server.kill();
}
