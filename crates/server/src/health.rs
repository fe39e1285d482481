//! `grampus health`: asks the server of this configuration whether it serves, for a container's or a machine's watch.
//!
//! It is asked at the addresses that it listens on, not at those that it tells its clients: the name that leads to a
//! container from outside may lead nowhere from within. The master must have begun, and `hbase:meta` must be readable;
//! then clients find what they look for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::Env;
use cell::query::Get;
use cell::region::RegionInfo;
use client::Connections;
use client::connections::{HIGH_PRIORITY, Outgoing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::convert;

use crate::arguments::StartArguments;
use crate::os::{self, Runtimes};
use crate::standalone::load_config;

/// A server that takes longer is not well.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a page that are read.
const PAGE_BYTES_MAX: u64 = 1 << 20;

/// Asks, and says what the server is.
///
/// # Errors
/// One line that says what is wrong.
pub fn run(arguments: &StartArguments) -> Result<(), String> {
    let config = load_config(arguments)?;
    let runtimes = Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(Arc::new(runtimes));
    let asked = os::block_on(async { env.timeout(ANSWER_WITHIN, ask(&env, &config)).await });
    let servers = asked.ok_or_else(|| format!("no answer within {} s", ANSWER_WITHIN.as_secs()))??;
    println!("healthy: region servers {servers}");
    let corrupt = os::block_on(async { env.timeout(ANSWER_WITHIN, corrupt_files(&env, &config)).await });
    if let Some(Some(files @ 1..)) = corrupt {
        // A server that is started again has them still: this is no reason to do so.
        println!("warning: corrupt store files: {files} (see the region server's status page or log)");
    }
    Ok(())
}

/// How many store files are corrupt, as far as reads met them; `None` if the pages do not say.
async fn corrupt_files(env: &Env, config: &Config) -> Option<u64> {
    let port = config.region_server_info_port?;
    let host = reachable(config.region_server_info_address).to_string();
    let mut stream = env.net.connect(&host, port).await.ok()?;
    let request = format!(
        "GET /jmx?qry=Hadoop:service=HBase,name=RegionServer,sub=Grampus HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.take(PAGE_BYTES_MAX).read_to_string(&mut answer).await.ok()?;
    number_after(&answer, "\"corruptStoreFileCount\"")
}

/// The number that a JSON text has under a name.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    let rest = rest.trim_start_matches([' ', ':']);
    rest[..rest.find(|letter: char| !letter.is_ascii_digit())?].parse().ok()
}

/// The number of region servers that live.
async fn ask(env: &Env, config: &Config) -> Result<usize, String> {
    let connections = Connections::new(env.clone(), "health", ANSWER_WITHIN);
    let status = proto::GetClusterStatusRequest::default();
    let call = Outgoing::new("MasterService", "GetClusterStatus", &status);
    let (host, port) = (reachable(config.master_address).to_string(), config.master_port);
    let answer = connections.call(&host, port, call).await;
    let (status, _): (proto::GetClusterStatusResponse, _) =
        answer.map_err(|error| format!("the master at {host}:{port}: {error}"))?;

    // A row that nobody has: the answer says that meta is open, not what is in it.
    let get = Get { row: "health".into(), selection: Default::default(), existence_only: true };
    let request = proto::GetRequest {
        region: convert::region_specifier(&RegionInfo::meta()),
        get: convert::to_proto::get(&get),
    };
    let call = Outgoing { priority: HIGH_PRIORITY, ..Outgoing::new("ClientService", "Get", &request) };
    let (host, port) = (reachable(config.region_server_address).to_string(), config.region_server_port);
    let answer = connections.call(&host, port, call).await;
    let _: (proto::GetResponse, _) =
        answer.map_err(|error| format!("hbase:meta at {host}:{port}: {error}"))?;
    Ok(status.cluster_status.live_servers.len())
}

/// Where a server that listens on `address` answers from this machine.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::{number_after, reachable};

    #[test]
    fn a_number_is_found_by_its_name() {
        let text = "HTTP/1.0 200 OK\r\n\r\n{\"beans\" : [ {\"a\" : 3, \"files\" : 12\n} ]}";
        assert_eq!((number_after(text, "\"files\""), number_after(text, "\"a\"")), (Some(12), Some(3)));
        assert_eq!(number_after(text, "\"none\""), None);
    }

    #[test]
    fn who_listens_everywhere_is_asked_here() {
        let check = |address: &str, expected: &str| {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        };
        check("0.0.0.0", "127.0.0.1");
        check("::", "::1");
        check("10.1.2.3", "10.1.2.3");
    }
}
