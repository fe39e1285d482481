//! A reason not to start is reported in one line on standard error, with exit status 1, before
//! anything is changed.
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{PORTS, Server, TempDir, free_offset, grampus, run, text};

/// Checks that the server does not start, and returns its one line of output.
///
/// If it did start, it would neither use the default ports nor a directory in the source tree.
fn refused(arguments: &[&str]) -> String {
    let elsewhere = TempDir::new();
    let mut command = grampus();
    command.args(arguments).current_dir(elsewhere.join(""));
    if !arguments.contains(&"--port-offset") {
        command.args(["--set", &format!("grampus.port.offset={}", free_offset())]);
    }
    let output = run(&mut command);
    assert_eq!(
        names(&elsewhere.join("")),
        [""; 0],
        "{arguments:?}: nothing is created in the current directory"
    );
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    let line = errors.strip_suffix('\n').expect("a line");
    assert!(!line.contains('\n'), "one line: {errors}");
    line.strip_prefix("grampus: ").expect("the line starts with the program's name").to_string()
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
fn a_port_in_use_is_named_and_nothing_is_created() {
    let dir = TempDir::new();
    let data = dir.join("data");
    for (port, key) in [(2181, "hbase.zookeeper.property.clientPort"), (16020, "hbase.regionserver.port")] {
        let offset = free_offset();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port + offset)).unwrap();
        let offset = offset.to_string();
        let arguments = ["--data", data.to_str().unwrap(), "--port-offset", &offset];
        check(&arguments, &[&taken.local_addr().unwrap().to_string(), "in use", key, "--port-offset"]);
        assert!(!data.exists(), "ports are checked before anything is created");
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
    // The first server is not affected.
    assert!(server.shell("create 't', 'f'; put 't', 'r', 'f:q', 'v'").status.success());
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_foreign_directory_is_not_changed() {
    let dir = TempDir::new();
    let offset = free_offset().to_string();
    // A directory of other files, and a root directory that HBase created.
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
fn a_data_directory_that_cannot_be_created_is_named() {
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
fn urls_of_other_file_systems_are_refused() {
    check(
        &["--set", "hbase.rootdir=hdfs://nn:8020/hbase"],
        &["hbase.rootdir", "a single process needs a local directory"],
    );
    check(&["--data", "hdfs://nn:8020/hbase"], &["a single process needs a local directory"]);
    let dir = TempDir::new();
    let property = "<property><name>hbase.rootdir</name><value>hdfs://nn:8020/hbase</value></property>";
    fs::write(dir.join("hbase-site.xml"), format!("<configuration>{property}</configuration>")).unwrap();
    let config = dir.join("");
    check(
        &["--config", config.to_str().unwrap()],
        &["a single process needs a local directory", "hbase-site.xml"],
    );
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
    // Root can read the file and finds it malformed. In both cases the error names the file.
    check(&["--config", broken.to_str().unwrap()], &[file.to_str().unwrap()]);
}

#[test]
#[cfg(not(feature = "sinks"))]
fn a_sink_needs_a_build_with_its_feature() {
    check(&["--set", "hbase.sink.file.filename=m"], &["hbase.sink.file.filename", "--features sinks"]);
    let statsd = ["--set", "hbase.sink.statsd.server.host=h"];
    check(&statsd, &["hbase.sink.statsd.server.host", "--features sinks"]);
    let graphite = ["--set", "hbase.sink.graphite.server_host=h"];
    check(&graphite, &["hbase.sink.graphite.server_host", "--features sinks"]);
    let otlp = ["--set", "otel.exporter.otlp.endpoint=http://h"];
    check(&otlp, &["otel.exporter.otlp.endpoint", "--features otlp"]);
}

#[test]
#[cfg(feature = "sinks")]
fn an_invalid_sink_is_named() {
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
fn an_invalid_option_is_named() {
    check(&["--set", "nonsense"], &["nonsense"]);
    check(&["--set", "hbase.regionserver.port=many"], &["hbase.regionserver.port", "many"]);
    check(&["--set", "hbase.hregion.memstore.flush.size=-1"], &["hbase.hregion.memstore.flush.size", "-1"]);
    let top = u16::MAX - PORTS[4] + 1;
    check(&["--port-offset", &top.to_string()], &["port"]);
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let dir = TempDir::new();
    let data = dir.join("data");
    // 192.0.2.0/24 is reserved for documentation: no machine has such an address.
    let arguments = ["--data", data.to_str().unwrap(), "--bind", "192.0.2.1"];
    check(&arguments, &["192.0.2.1", "cannot listen"]);
    assert!(!data.exists());
}

#[test]
fn unsupported_safety_options_prevent_the_start() {
    for (key, value) in [
        ("hbase.security.authentication", "kerberos"),
        ("hbase.security.authorization", "true"),
        ("hbase.ssl.enabled", "true"),
        ("hbase.cluster.distributed", "true"),
        ("hbase.coprocessor.region.classes", "org.example.Guard"),
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
