//! Metrics sinks of a server: a file, StatsD and Graphite, configured with HBase's
//! `hadoop-metrics2-hbase.properties`.
#![cfg(feature = "sinks")]
#![allow(clippy::disallowed_methods, reason = "receivers use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{Server, TempDir};

const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);
/// A counter of a table whose value the test knows.
const WRITES: &str = "Namespace_default_table_t_metric_writeRequestCount";

/// Calls `poll` until it returns a value. `poll` may block.
fn poll_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + CHANGE_TIMEOUT;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < end, "no {what}");
    }
}

/// As [`poll_for`], with a pause before each poll.
fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    poll_for(what, || {
        std::thread::sleep(Duration::from_millis(20));
        poll()
    })
}

/// A configuration directory with these sink properties.
fn config(dir: &TempDir, properties: &str) -> String {
    fs::write(dir.join("hbase-site.xml"), "<configuration/>").unwrap();
    fs::write(dir.join("hadoop-metrics2-hbase.properties"), properties).unwrap();
    dir.join("").to_str().unwrap().to_owned()
}

/// Waits for a StatsD line that contains `part`.
fn datagram_with(socket: &UdpSocket, part: &str) -> String {
    socket.set_read_timeout(Some(CHANGE_TIMEOUT)).unwrap();
    poll_for(part, || {
        let mut datagram = [0; 65536];
        let len = socket.recv(&mut datagram).unwrap();
        assert!(len <= 1432, "fits into a packet: {len}");
        let text = std::str::from_utf8(&datagram[..len]).unwrap();
        text.lines().find(|line| line.contains(part)).map(str::to_owned)
    })
}

fn accept(listener: &TcpListener) -> BufReader<TcpStream> {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(CHANGE_TIMEOUT)).unwrap();
    BufReader::new(stream)
}

/// Waits for a Graphite line that contains `part`.
fn line_with(from: &mut BufReader<TcpStream>, part: &str) -> String {
    poll_for(part, || {
        let mut line = String::new();
        assert!(from.read_line(&mut line).unwrap() > 0, "the server has closed");
        line.contains(part).then(|| line.trim_end().to_owned())
    })
}

fn file_line_with(path: &Path, part: &str) -> String {
    wait_for(part, || {
        let text = fs::read_to_string(path).unwrap_or_default();
        // The last line may be incomplete.
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        whole.lines().find(|line| line.contains(part)).map(str::to_owned)
    })
}

#[test]
fn a_load_arrives_at_every_sink() {
    let dir = TempDir::new();
    let statsd = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let graphite = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let graphite_address = graphite.local_addr().unwrap();
    let file = dir.join("metrics.out");
    let config = config(
        &dir,
        &format!(
            "*.sink.file*.class=org.apache.hadoop.metrics2.sink.FileSink\n*.periodMillis=300\n\
             hbase.sink.lines.class=org.apache.hadoop.metrics2.sink.FileSink\n\
             hbase.sink.lines.filename={}\n\
             hbase.sink.statsd.class=org.apache.hadoop.metrics2.sink.StatsDSink\n\
             hbase.sink.statsd.server.host=127.0.0.1\nhbase.sink.statsd.server.port={}\n\
             hbase.sink.statsd.service.name=hbase\n\
             hbase.sink.graphite.class=org.apache.hadoop.metrics2.sink.GraphiteSink\n\
             hbase.sink.graphite.server_host=127.0.0.1\nhbase.sink.graphite.server_port={}\n\
             hbase.sink.graphite.metrics_prefix=grampus\n\
             hbase.sink.ganglia.class=org.apache.hadoop.metrics2.sink.ganglia.GangliaSink31\n",
            file.display(),
            statsd.local_addr().unwrap().port(),
            graphite_address.port(),
        ),
    );
    let server = Server::start_with(&dir.join("data"), &["--config", &config, "--host", "localhost"]);
    let puts: String = (0..7).map(|row| format!("; put 't', 'r{row}', 'f:q', 'v'")).collect();
    assert!(server.shell(&format!("create 't', 'f'{puts}")).status.success());

    let writes = format!("{WRITES}:7|c");
    assert_eq!(datagram_with(&statsd, &writes), format!("localhost.hbase.regionserver.Tables.{writes}"));
    let of_region = datagram_with(&statsd, "Regions.Namespace_default_table_t_region_");
    assert!(of_region.starts_with("localhost.hbase.regionserver."), "{of_region}");
    assert!(
        datagram_with(&statsd, "Master.jvm.JvmMetrics.MemMaxM:").ends_with("|g"),
        "the process's own name"
    );

    let mut peer = accept(&graphite);
    let line = line_with(&mut peer, &format!("{WRITES} 7 "));
    let path = "grampus.regionserver.Tables.Context=regionserver.Hostname=localhost.";
    assert!(line.starts_with(path), "{line}");
    let tags = line_with(&mut peer, ".Server.zookeeperQuorum=");
    assert!(tags.contains(".clusterId=") && tags.contains(".Context=regionserver.Hostname="), "{tags}");

    let line = file_line_with(&file, &format!("{WRITES}=7"));
    let (time, line) = line.split_once(' ').unwrap();
    assert!(time.len() == 13 && time.parse::<u64>().is_ok(), "{time}");
    let head = "regionserver.Tables: Context=regionserver, Hostname=localhost, ";
    assert!(line.starts_with(head), "{line}");
    file_line_with(&file, ", isActiveMaster=true, Context=master, Hostname=localhost, ");

    // Moved as by logrotate, then removed.
    let rotated = dir.join("metrics.out.1");
    fs::rename(&file, &rotated).unwrap();
    assert!(server.shell("put 't', 'r', 'f:q', 'v'").status.success());
    file_line_with(&file, &format!("{WRITES}=8"));
    assert!(!fs::read_to_string(&rotated).unwrap().contains(&format!("{WRITES}=8")));
    fs::remove_file(&file).unwrap();
    file_line_with(&file, &format!("{WRITES}=8"));

    // Graphite goes away and comes back.
    drop((peer, graphite));
    assert!(server.shell("put 't', 'r', 'f:q', 'v'").status.success());
    let told = wait_for("warning", || {
        let errors = server.errors();
        errors.lines().find(|line| line.contains("metrics cannot be sent")).map(str::to_owned)
    });
    assert!(told.contains("graphite") && told.contains(&graphite_address.to_string()), "{told}");
    let graphite = TcpListener::bind(graphite_address).unwrap();
    line_with(&mut accept(&graphite), &format!("{WRITES} 9 "));

    let errors = server.errors();
    assert!(errors.contains("GangliaSink31 is not known to Grampus"), "{errors}");
    assert_eq!(errors.matches("metrics cannot be sent").count(), 1, "{errors}");
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn options_configure_sinks_without_hbases_file() {
    let dir = TempDir::new();
    let statsd = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = format!("hbase.sink.statsd.server.port={}", statsd.local_addr().unwrap().port());
    let server = Server::start_with(
        &dir.join("data"),
        &[
            "--set",
            "hbase.sink.statsd.server.host=localhost",
            "--set",
            &port,
            "--set",
            "hbase.sink.statsd.period=200 ms",
            "--set",
            "hbase.sink.statsd.skip.hostname=true",
            "--set",
            "hbase.sink.statsd.metric.filter.include=regionCount",
        ],
    );
    let mut datagram = [0; 1500];
    statsd.set_read_timeout(Some(CHANGE_TIMEOUT)).unwrap();
    let len = statsd.recv(&mut datagram).unwrap();
    let text = String::from_utf8(datagram[..len].to_vec()).unwrap();
    assert!(text.starts_with("RegionServer.regionserver.Server.regionCount:"), "{text}");
    assert!(text.lines().all(|line| line.contains("regionCount:")), "nothing else: {text}");
    assert_eq!(server.stop().code(), Some(0));
}
