//! `grampus top` with a server, both started as users do.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{Server, TempDir, grampus, run, text, wait};

fn top(server: &Server, arguments: &[&str]) -> Output {
    let offset = server.offset.to_string();
    run(grampus().args(["top", "--batch", "--port-offset", &offset]).args(arguments))
}

/// The table of one sample as words, line by line, with the heads first.
fn table(output: &str) -> Vec<Vec<&str>> {
    let (_, table) = output.split_once("\n\n").unwrap();
    let lines = table.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().collect()).collect()
}

/// Waits until the master knows a table's regions, which it learns from the server's next report.
fn wait_for(server: &Server, name: &str) {
    let filter = format!("TABLE=={name}");
    for _ in 0..100 {
        let output = text(&top(server, &["-n", "1", "-m", "table", "-i", &filter]).stdout);
        if table(&output).len() == 2 {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("no report of {name}");
}

/// A command that writes into a table for a minute.
fn load(server: &Server) -> Command {
    let mut bench = grampus();
    let offset = server.offset.to_string();
    bench.args(["bench", "randomWrite", "--port-offset", &offset, "--table", "busy", "--seconds", "60"]);
    bench.args(["--rows", "1000", "--clients", "2"]).stdout(Stdio::null()).stderr(Stdio::null());
    bench
}

#[test]
fn a_written_table_has_a_rate() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let made = server.shell("create 'idle','f'; create 'busy','info0'");
    assert!(made.status.success());
    wait_for(&server, "busy");
    let mut load = load(&server).spawn().unwrap();
    // Reports come every three seconds, so several come between two samples, all during the load.
    let samples =
        top(&server, &["-n", "2", "-d", "9", "-m", "t", "--fields", "TABLE,#REGION,#REQ/S,#WRITE/S"]);
    load.kill().unwrap();
    wait(&mut load);

    let shown = text(&samples.stdout);
    assert!(samples.status.success(), "{shown}{}", text(&samples.stderr));
    let samples: Vec<&str> = shown.split("grampus top - ").skip(1).collect();
    assert_eq!(samples.len(), 2, "{shown}");
    assert!(shown.contains("RegionServer(s): 1 total, 1 live, 0 dead\n"), "{shown}");
    let second = table(samples[1]);
    assert_eq!(second[0], ["TABLE", "#REGION", "#REQ/S", "#WRITE/S"]);
    // The busiest table comes first.
    assert_eq!(second[1][..2], ["busy", "1"], "{shown}");
    assert!(second[1][2].parse::<u64>().unwrap() >= second[1][3].parse().unwrap(), "{shown}");
    assert!(second[1][3].parse::<u64>().unwrap() > 0, "{shown}");
    assert!(second.contains(&vec!["idle", "1", "0", "0"]), "{shown}");
    let all = samples[1].lines().find_map(|line| line.strip_prefix("Aggregate Request/s: ")).unwrap();
    assert!(all.parse::<u64>().unwrap() > 0, "{shown}");
    server.kill();
}

#[test]
fn every_mode_shows_its_rows() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let made = server.shell("create_namespace 'n'; create 'n:t','f', SPLITS => [\"a\\xFF\"]");
    assert!(made.status.success());
    wait_for(&server, "t");
    let ask = ["-n", "1", "-i", "TABLE==t", "-s", "-SKEY", "-f", "SKEY,RNAME"];
    let shown = text(&top(&server, &ask).stdout);
    assert_eq!(table(&shown)[2][0], r"a\xFF", "{shown}");
    assert!(table(&shown)[2][1].starts_with(r"n:t,a\xFF,"), "{shown}");
    let one = |arguments: &[&str]| text(&top(&server, &[&["-n", "1"], arguments].concat()).stdout);
    let shown = one(&["-m", "n", "-f", "NAMESPACE,#REGION", "-i", "NAMESPACE==n"]);
    assert_eq!(table(&shown)[1..], [["n", "2"]], "{shown}");
    let shown = one(&["-m", "s", "-f", "RS,#REGION,MHEAP"]);
    assert_eq!(table(&shown).len(), 2, "{shown}");
    assert!(server.shell("put 'n:t', 'r', 'f:q', 'v'").status.success());
    for mode in ["u", "c"] {
        // The master learns of the request from the next report.
        let has_one = |shown: &String| shown.contains("#REQ/S") && table(shown).len() == 2;
        let mut samples = (0..100).map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            one(&["-m", mode])
        });
        assert!(samples.any(|shown| has_one(&shown)), "{mode}: {}", one(&["-m", mode]));
    }
    let names = text(&run(grampus().args(["top", "-O", "-m", "u"])).stdout);
    assert!(names.starts_with("USER\n#CLIENT\n"), "{names}");
    server.kill();
}

#[test]
fn invalid_arguments_are_refused() {
    let refused = |arguments: &[&str], message: &str| {
        let output = run(grampus().arg("top").args(arguments));
        let stderr = text(&output.stderr);
        assert!(!output.status.success() && stderr.contains(message), "{arguments:?}: {stderr}");
    };
    // No server listens on port 1.
    refused(&["--zookeeper", "127.0.0.1:1", "-b"], "the cluster is not found");
    refused(&["--zookeeper", "127.0.0.1:1"], "standard output is not a terminal");
    refused(&["-b", "--sort", "SPEED"], "unknown field 'SPEED'; expected one of RNAME");
    refused(&["-b", "-n", "0"], "--iterations");
}
