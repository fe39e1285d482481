//! What stops a server from starting is told in one line on standard error, with exit status 1, before anything is
//! changed.
#![allow(clippy::disallowed_methods, reason = "directories as they are found on a user's disk")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{PORTS, Server, TempDir, free_offset, grampus, run, text};

/// The server does not start; the one line it says.
///
/// Were it to start all the same, it would not do so on the usual ports or in a directory of the sources.
fn refused(arguments: &[&str]) -> String {
    let elsewhere = TempDir::new();
    let mut command = grampus();
    command.args(arguments).current_dir(elsewhere.join(""));
    if !arguments.contains(&"--port-offset") {
        command.args(["--set", &format!("grampus.port.offset={}", free_offset())]);
    }
    let output = run(&mut command);
    assert_eq!(names(&elsewhere.join("")), [""; 0], "{arguments:?}: nothing is made where it stands");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    let line = errors.strip_suffix('\n').expect("a line");
    assert!(!line.contains('\n'), "one line: {errors}");
    line.strip_prefix("grampus: ").expect("who says it").to_string()
}

fn check(arguments: &[&str], parts: &[&str]) {
    let line = refused(arguments);
    for part in parts {
        assert!(line.contains(part), "'{part}' in: {line}");
    }
}

/// All names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_port_that_is_in_use_is_named_and_nothing_is_made() {
    let dir = TempDir::new();
    let data = dir.join("data");
    for (port, key) in [(2181, "hbase.zookeeper.property.clientPort"), (16020, "hbase.regionserver.port")] {
        let offset = free_offset();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port + offset)).unwrap();
        let offset = offset.to_string();
        let arguments = ["--data", data.to_str().unwrap(), "--port-offset", &offset];
        check(&arguments, &[&taken.local_addr().unwrap().to_string(), "in use", key, "--port-offset"]);
        assert!(!data.exists(), "looked at before anything is made");
    }
}

#[test]
fn a_directory_serves_one_process() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let server = Server::start(&data);
    let before = names(&data);
    let offset = free_offset().to_string();
    let arguments = ["start", "--data", data.to_str().unwrap(), "--port-offset", &offset];
    check(&arguments, &[data.to_str().unwrap(), "in use by another grampus", "--data DIR"]);
    assert_eq!(names(&data), before);
    // The first one has not noticed anything.
    assert!(server.shell("create 't', 'f'; put 't', 'r', 'f:q', 'v'").status.success());
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let dir = TempDir::new();
    let offset = free_offset().to_string();
    // Somebody's files; and a root directory that HBase made.
    for found in [&["notes.txt"][..], &["hbase.id", "hbase.version", "WALs"]] {
        let data = dir.join(found[0]);
        fs::create_dir_all(&data).unwrap();
        for name in found {
            fs::write(data.join(name), "theirs").unwrap();
        }
        let before = names(&data);
        check(
            &["--data", data.to_str().unwrap(), "--port-offset", &offset],
            &[data.to_str().unwrap(), "not"],
        );
        assert_eq!(names(&data), before);
        assert!(found.iter().all(|name| fs::read(data.join(name)).unwrap() == b"theirs"));
    }
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let dir = TempDir::new();
    let file = dir.join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("data");
    let offset = free_offset().to_string();
    for data in [file.to_str().unwrap(), below.to_str().unwrap()] {
        check(&["--data", data, "--port-offset", &offset], &["cannot make the data directory", data]);
    }
}

#[test]
fn other_file_systems_are_not_taken_for_directories() {
    check(&["--set", "hbase.rootdir=hdfs://nn:8020/hbase"], &["hbase.rootdir", "hdfs:// is not supported"]);
    check(&["--data", "hdfs://nn:8020/hbase"], &["hdfs:// is not supported"]);
    let dir = TempDir::new();
    let property = "<property><name>hbase.rootdir</name><value>hdfs://nn:8020/hbase</value></property>";
    fs::write(dir.join("hbase-site.xml"), format!("<configuration>{property}</configuration>")).unwrap();
    let config = dir.join("");
    check(&["--config", config.to_str().unwrap()], &["hdfs:// is not supported", "hbase-site.xml"]);
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    let dir = TempDir::new();
    let absent = dir.join("absent");
    check(&["--config", absent.to_str().unwrap()], &[absent.to_str().unwrap()]);
    let broken = dir.join("broken");
    fs::create_dir(&broken).unwrap();
    let file = broken.join("hbase-site.xml");
    fs::write(&file, "<configuration><property><name>hbase.rootdir</name>").unwrap();
    check(&["--config", broken.to_str().unwrap()], &[file.to_str().unwrap()]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    // Who may read everything reads this too, and finds it broken; either way the file is named.
    check(&["--config", broken.to_str().unwrap()], &[file.to_str().unwrap()]);
}

#[test]
fn a_sink_that_cannot_be_meant_is_named() {
    let dir = TempDir::new();
    let file = dir.join("hadoop-metrics2-hbase.properties");
    fs::write(dir.join("hbase-site.xml"), "<configuration/>").unwrap();
    let sink = "hbase.sink.g.class=org.apache.hadoop.metrics2.sink.GraphiteSink";
    fs::write(&file, format!("# ours\n{sink}\nhbase.sink.g.server_host=h\nhbase.sink.g.server_port=x\n"))
        .unwrap();
    let config = dir.join("");
    let line = format!("{}:4: hbase.sink.g.server_port = 'x': expected a port", file.display());
    check(&["--config", config.to_str().unwrap()], &[&line]);
    let expression =
        ["--set", "hbase.sink.file.filename=m", "--set", "hbase.sink.file.metric.filter.include=("];
    check(
        &expression,
        &["hbase.sink.file.metric.filter.include = '(' (command line)", "no regular expression"],
    );
    check(&["--set", "hbase.sink.file.period=never"], &["hbase.sink.file.period", "never", "seconds"]);
}

#[test]
fn an_option_that_means_nothing_is_named() {
    check(&["--set", "nonsense"], &["nonsense"]);
    check(&["--set", "hbase.regionserver.port=many"], &["hbase.regionserver.port", "many"]);
    check(&["--set", "hbase.hregion.memstore.flush.size=-1"], &["hbase.hregion.memstore.flush.size", "-1"]);
    let top = u16::MAX - PORTS[4] + 1;
    check(&["--port-offset", &top.to_string()], &["port"]);
}

#[test]
fn an_address_of_another_machine_is_not_listened_on() {
    let dir = TempDir::new();
    let data = dir.join("data");
    // 192.0.2.0/24 is for documentation: no machine has it.
    let arguments = ["--data", data.to_str().unwrap(), "--bind", "192.0.2.1"];
    check(&arguments, &["192.0.2.1", "cannot listen"]);
    assert!(!data.exists());
}

#[test]
fn a_key_that_promises_safety_stops_the_start() {
    for (key, value) in [
        ("hbase.security.authentication", "kerberos"),
        ("hbase.security.authorization", "true"),
        ("hbase.ssl.enabled", "true"),
        ("hbase.cluster.distributed", "true"),
        ("hbase.coprocessor.region.classes", "org.example.Guard"),
        ("hbase.wal.dir", "hdfs://nn/wal"),
    ] {
        let setting = format!("{key}={value}");
        check(&["--set", &setting], &[key, value, "unsafe", &format!("grampus.unsafe.ignore.keys={key}")]);
    }
    let dir = TempDir::new();
    let ignored =
        ["--set", "hbase.ssl.enabled=true", "--set", "grampus.unsafe.ignore.keys=hbase.ssl.enabled"];
    let server = Server::start_with(&dir.join("data"), &ignored);
    assert!(server.errors().contains("hbase.ssl.enabled"), "{}", server.errors());
}
