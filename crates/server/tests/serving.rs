//! What a server reports to health checks and the service manager, and a snapshot restore after a
//! crash.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Server, TempDir, free_offset, grampus, run, text, wait};
use rustix::process::{Pid, Signal, kill_process};

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

/// Starts a server whose standard output has no reader, and waits until it is healthy. `None` if it
/// ends, for example because another process has one of its ports.
fn start_without_reader(data: &Path) -> Option<Child> {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let offset = free_offset();
    let mut command = grampus();
    command.arg("start").arg("--data").arg(data).args(["--port-offset", &offset.to_string()]);
    let mut child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !health(offset).status.success() {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("the server does not become healthy");
        }
    }
    Some(child)
}

#[test]
fn a_server_outlives_the_reader_of_its_output() {
    let dir = TempDir::new();
    let mut child = (0..10).find_map(|_| start_without_reader(&dir.join("data"))).unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(wait(&mut child).code(), Some(0));
}

/// The first line of the next message to the service manager.
fn told(listener: &UnixDatagram) -> String {
    let mut bytes = [0; 100];
    let len = listener.recv(&mut bytes).unwrap();
    text(&bytes[..len]).lines().next().unwrap().to_string()
}

#[test]
fn the_service_manager_is_notified_of_start_and_stop() {
    let dir = TempDir::new();
    let socket = dir.join("notify");
    let listener = UnixDatagram::bind(&socket).unwrap();
    let server = Server::start_in(&dir.join("data"), &[], &[("NOTIFY_SOCKET", socket.to_str().unwrap())]);
    assert_eq!(told(&listener), "READY=1");
    assert_eq!(server.stop().code(), Some(0));
    assert_eq!(told(&listener), "STOPPING=1");
}

#[test]
fn the_watchdog_is_notified_while_the_server_responds() {
    let dir = TempDir::new();
    let socket = dir.join("notify");
    let listener = UnixDatagram::bind(&socket).unwrap();
    let timeout = Duration::from_secs(20);
    listener.set_read_timeout(Some(timeout)).unwrap();
    let variables = [("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "4000000")];
    let server = Server::start_in(&dir.join("data"), &[], &variables);
    assert_eq!(told(&listener), "READY=1");
    for _ in 0..3 {
        assert_eq!(told(&listener), "WATCHDOG=1");
    }
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_line_in_the_journal_begins_with_its_priority() {
    let dir = TempDir::new();
    let data = dir.join("data");
    // The file that becomes standard error of the server.
    let errors = data.with_extension("stderr");
    fs::write(&errors, "").unwrap();
    let status = fs::metadata(&errors).unwrap();
    let stream = format!("{}:{}", status.dev(), status.ino());
    let server = Server::start_in(&data, &["--set", "no.such.key=1"], &[("JOURNAL_STREAM", &stream)]);
    let lines = server.errors();
    assert!(lines.lines().any(|line| line.starts_with("<4>") && line.contains("no.such.key")), "{lines}");
    assert!(lines.lines().all(|line| line.starts_with('<')), "{lines}");
}

#[test]
fn the_log_is_in_the_file_of_the_option() {
    let dir = TempDir::new();
    let log = dir.join("grampus.log");
    let option = format!("grampus.log.file={}", log.display());
    let server = Server::start_with(&dir.join("data"), &["--set", &option, "--set", "no.such.key=1"]);
    assert_eq!(server.errors(), "");
    assert_eq!(server.stop().code(), Some(0));
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.lines().any(|line| line.contains(" WARN ") && line.contains("no.such.key")), "{lines}");
    assert!(lines.ends_with("INFO stopped\n"), "{lines}");
}

/// The subcommands that `grampus --help` lists.
fn subcommands() -> Vec<String> {
    let help = text(&run(grampus().arg("--help")).stdout);
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // A wrapped description continues at a greater indentation.
    let names = commands.lines().filter_map(|line| line.strip_prefix("  "));
    names
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split(' ').next().unwrap().to_string())
        .collect()
}

#[test]
fn each_subcommand_has_a_man_page_and_completions() {
    let dir = TempDir::new();
    let manual = dir.join("manual");
    let written = run(grampus().arg("generate").arg(&manual));
    assert!(written.status.success(), "{written:?}");
    let read = |name: &str| fs::read_to_string(manual.join(name)).unwrap_or_else(|_| panic!("no {name}"));
    let names = subcommands();
    assert!(names.len() > 15, "{names:?}");
    for name in names.iter().filter(|name| *name != "help") {
        assert!(read(&format!("grampus-{name}.1")).contains(name.as_str()));
        assert!(read("grampus.1").contains(&format!("grampus\\-{}(1)", name.replace('-', "\\-"))), "{name}");
        assert!(read("grampus.bash").contains(&format!("grampus,{name})")), "{name}");
        assert!(read("_grampus").contains(&format!("'{name}:")), "{name}");
        assert!(read("grampus.fish").contains(&format!("-a \"{name}\"")), "{name}");
    }
    assert!(read("grampus-config.5").contains("hbase.rootdir"));
    for (words, expected) in [
        ("grampus she", "shell"),
        ("grampus start --port-o", "--port-offset"),
        ("grampus start --set hbase.rest.po", "hbase.rest.port="),
        ("grampus repair overl", "overlaps"),
        ("grampus exit-rep", ""),
    ] {
        assert_eq!(completed(&manual.join("grampus.bash"), words), expected, "{words}");
    }
}

/// What bash completes at the end of `words`.
fn completed(script: &Path, words: &str) -> String {
    let program = "source \"$0\"; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _grampus grampus \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        echo \"${COMPREPLY[@]}\"";
    let output = run(Command::new("bash").arg("-c").arg(program).arg(script).arg(words));
    text(&output.stdout).trim().to_string()
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
