//! The machine-readable pages of a server, as a scraper or a browser reads them.
#![allow(clippy::disallowed_methods, reason = "tests of processes use the real machine directly")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../hostile/connection.rs"]
mod connection;
mod dashboard;
mod hot;
mod html;
mod names;
mod status;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{PORTS, Server, TempDir, text};
use serde_json::{Value, json};

/// The status line, the other header lines, and the body of the response to a GET.
fn get(port: u16, path: &str) -> (String, String, String) {
    get_as(port, path, "*/*")
}

/// As [`get`], with an `Accept` header.
fn get_as(port: u16, path: &str, accept: &str) -> (String, String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = text(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let (first, head) = head.split_once("\r\n").unwrap();
    (first.to_string(), head.to_lowercase(), body.to_string())
}

fn jmx(port: u16, query: &str) -> Value {
    let (first, head, body) = get(port, &format!("/jmx{query}"));
    assert!(
        first.contains(" 200 ") && head.contains("content-type: application/json; charset=utf8"),
        "{first}"
    );
    serde_json::from_str(&body).unwrap()
}

/// The region server's bean with this sub name.
fn bean(port: u16, sub: &str) -> Value {
    jmx(port, &format!("?qry=Hadoop:service=HBase,name=RegionServer,sub={sub}"))["beans"][0].take()
}

#[test]
fn beans_count_exactly_the_work_done() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let (master, region_server) = (PORTS[2] + server.offset, PORTS[4] + server.offset);
    assert!(server.shell("create 'pages', 'f'").status.success());
    let before = [bean(region_server, "Server"), bean(region_server, "WAL")];
    assert!(
        server
            .shell("put 'pages', 'r', 'f:q', 'v'\nput 'pages', 's', 'f:q', 'v'\nget 'pages', 'r'")
            .status
            .success()
    );
    let after = [bean(region_server, "Server"), bean(region_server, "WAL")];
    let moved = |at: usize, name: &str| {
        let number = |bean: &Value| bean[name].as_i64().unwrap_or_else(|| panic!("{name}: {bean}"));
        number(&after[at]) - number(&before[at])
    };
    assert_eq!((moved(0, "writeRequestCount"), moved(0, "regionCount")), (2, 0));
    assert_eq!((moved(1, "appendCount"), moved(1, "rollRequest")), (2, 0));
    assert!(moved(0, "readRequestCount") >= 1 && moved(1, "writtenBytes") > 0);
    assert_eq!(after[0]["tag.Context"], "regionserver");
    assert_eq!(after[0]["tag.serverName"].as_str().unwrap().split(',').count(), 3, "host, port, start code");
    assert_eq!(bean(region_server, "Grampus")["limit"].as_i64().map(|limit| limit > 0), Some(true));
    let masters = jmx(master, "?qry=Hadoop:service=HBase,name=Master,*");
    assert_eq!(masters["beans"][0]["name"], "Hadoop:service=HBase,name=Master,sub=Server");
    assert_eq!(masters["beans"][0]["numRegionServers"], 1);
}

#[test]
fn jmx_accepts_the_queries_of_hadoops_servlet() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let port = PORTS[4] + server.offset;
    assert_eq!(jmx(port, "?qry=Nothing:*"), json!({"beans": []}));
    let one = jmx(port, "?get=Hadoop:service=HBase,name=RegionServer,sub=Server::regionCount");
    let members = one["beans"][0].as_object().unwrap();
    assert_eq!(members.keys().collect::<Vec<_>>(), ["modelerType", "name", "regionCount"]);
    let heap = &jmx(port, "?qry=java.lang:type=Memory")["beans"][0]["HeapMemoryUsage"];
    let bytes = |of: &str| heap[of].as_u64().unwrap();
    assert!(bytes("used") > 1 << 20 && bytes("used") < bytes("max"), "{heap}");
    let platform = jmx(port, "?qry=java.lang:*");
    let kinds = platform["beans"].as_array().unwrap().iter().map(|bean| bean["name"].as_str().unwrap());
    let kinds: Vec<_> = kinds.map(|name| name.strip_prefix("java.lang:").unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "type=Runtime",
            "type=Memory",
            "type=OperatingSystem",
            "type=Threading",
            "name=None,type=GarbageCollector"
        ]
    );
    let described = jmx(port, "?qry=*sub=IPC&description=true");
    let connections = &described["beans"][0]["numOpenConnections"];
    assert!(connections["value"].is_u64() && connections["description"] == "Open connections.");
    for (query, status) in [("?get=bad", " 400 "), ("?get=a::b::c", " 400 "), ("?get=a::b", " 404 ")] {
        let (first, _, body) = get(port, &format!("/jmx{query}"));
        assert!(first.contains(status) && body.contains("\"ERROR\""), "{query}: {first}");
    }
    let (_, head, body) = get(port, "/jmx?qry=Nothing:*&callback=show");
    assert!(head.contains("application/javascript") && body.starts_with("show({") && body.ends_with("});"));
    let (_, head, _) = get(port, "/jmx?qry=Nothing:*&callback=alert(1)//");
    assert!(head.contains("application/json"), "only an identifier is accepted as a callback");
}

#[test]
fn prometheus_gets_the_same_numbers() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    assert!(server.shell("create 'scraped', 'f'\nput 'scraped', 'r', 'f:q', 'v'").status.success());
    let port = PORTS[4] + server.offset;
    let (first, head, body) = get(port, "/prometheus");
    assert!(first.contains(" 200 ") && head.contains("content-type: text/plain;charset=utf-8"), "{first}");
    let value = |name: &str| {
        let line = body.lines().find(|line| line.starts_with(&format!("{name}{{")));
        line.and_then(|line| line.rsplit_once(' ')).unwrap_or_else(|| panic!("{name}")).1
    };
    assert_eq!(value("server_region_count"), bean(port, "Server")["regionCount"].to_string());
    assert_eq!(value("tables_namespace_default_table_scraped_metric_write_request_count"), "1");
    assert_eq!(value("wal_scraped_append_count"), bean(port, "WAL")["scraped.appendCount"].to_string());
    let names: Vec<_> = body.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "each name occurs once, with one type");
    let (_, _, few) = get(port, "/prometheus?qry=rpc_get&description=true");
    assert!(few.starts_with("# HELP server_rpc_get_request_count Number of `Get` calls.\n"), "{few}");
    assert_eq!(few.lines().count(), 3);
}
