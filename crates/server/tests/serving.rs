//! What a server reports to health checks and the service manager, and a snapshot restore after a
//! crash.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::os::unix::net::UnixDatagram;
use std::process::Output;

use common::{Server, TempDir, free_offset, grampus, run, text};

fn health(offset: u16) -> Output {
    run(grampus().args(["health", "--port-offset", &offset.to_string()]))
}

#[test]
fn health_is_that_of_the_server_of_the_same_configuration() {
    let dir = TempDir::new();
    let nobody = health(free_offset());
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text(&nobody.stderr).starts_with("grampus: the master at 127.0.0.1:"), "{nobody:?}");
    // The advertised name does not resolve here, like the host name of a container seen from
    // inside.
    let server = Server::start_with(&dir.join("data"), &["--bind", "0.0.0.0", "--host", "elsewhere.invalid"]);
    let well = run(grampus()
        .args(["health", "--port-offset", &server.offset.to_string()])
        .env("GRAMPUS_BIND", "0.0.0.0")
        .env("GRAMPUS_HOST", "elsewhere.invalid"));
    let report = text(&well.stdout);
    // The disk of the machine may be nearly full, which is a warning of its own.
    let report: Vec<&str> = report.lines().filter(|line| !line.contains("disk is low on space")).collect();
    assert_eq!((report, well.status.code()), (vec!["healthy: region servers 1"], Some(0)));
}

#[test]
fn the_service_manager_is_notified_of_start_and_stop() {
    let dir = TempDir::new();
    let socket = dir.join("notify");
    let listener = UnixDatagram::bind(&socket).unwrap();
    let told = || {
        let mut bytes = [0; 100];
        let len = listener.recv(&mut bytes).unwrap();
        text(&bytes[..len]).lines().next().unwrap().to_string()
    };
    let server = Server::start_in(&dir.join("data"), &[], &[("NOTIFY_SOCKET", socket.to_str().unwrap())]);
    assert_eq!(told(), "READY=1");
    assert_eq!(server.stop().code(), Some(0));
    assert_eq!(told(), "STOPPING=1");
}

/// After a kill, a region is replayed from the previous run's log, and that log is kept for a
/// while. When a snapshot is restored into the region afterwards, later edits in that log must not
/// be replayed.
#[test]
fn an_old_log_does_not_overwrite_a_restored_snapshot() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let shell = |server: &Server, commands: &str| {
        let output = server.shell(commands);
        assert!(output.status.success(), "{commands}: {}", text(&output.stdout));
        text(&output.stdout)
    };
    let server = Server::start(&data);
    shell(
        &server,
        "create 't', 'f'; put 't', 'old', 'f:q', '1'; snapshot 't', 's'; put 't', 'new', 'f:q', '2'",
    );
    server.kill();
    let server = Server::start(&data);
    assert!(shell(&server, "scan 't'").contains("new"));
    shell(&server, "disable 't'; restore_snapshot 's'; enable 't'");
    let rows = shell(&server, "scan 't'");
    assert!(rows.contains("old") && !rows.contains("new"), "{rows}");
}
