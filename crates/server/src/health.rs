//! `grampus health`: checks whether the server of this configuration serves, for container and
//! machine health checks.
//!
//! It also prints what the region servers report about themselves: warnings leave the server
//! healthy, failures do not.
//!
//! It connects to the addresses that the server listens on, not to the advertised ones: a
//! container's external name may not resolve inside it. The master must answer and `hbase:meta`
//! must be readable, which is what clients need to find their regions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::Env;
use cell::query::Get;
use cell::region::RegionInfo;
use cell::schema::TableName;
use client::connections::{HIGH_PRIORITY, OutgoingCall};
use client::{Client, ClientOptions, Connections, Registry};
use os::Runtimes;
use wire::convert;

use crate::arguments::ServerArguments;
use crate::cluster::session;
use crate::standalone::load_config;

/// A server that takes longer is unhealthy.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the check and prints the result.
///
/// # Errors
/// One line that states what is wrong.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let config = load_config(arguments)?;
    let runtimes = Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(Arc::new(runtimes));
    let servers = async {
        match config.is_distributed {
            true => live_servers_of_cluster(&env, &config).await,
            false => live_servers(&env, &config).await,
        }
    };
    let outcome = os::block_on(async { env.timeout(RESPONSE_TIMEOUT, servers).await });
    let servers = outcome.ok_or_else(|| format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs()))??;
    for warning in servers.iter().flat_map(|server| &server.server_load.grampus_warnings) {
        println!("warning: {warning}");
    }
    let failures = servers.iter().flat_map(|server| &server.server_load.grampus_failures);
    let failures: Vec<&str> = failures.map(String::as_str).collect();
    if !failures.is_empty() {
        return Err(failures.join(" "));
    }
    println!("healthy: region servers {}", servers.len());
    Ok(())
}

/// Returns the live region servers with what they report.
async fn live_servers(env: &Env, config: &Config) -> Result<Vec<proto::LiveServerInfo>, String> {
    let connections = Connections::new(env.clone(), "health", RESPONSE_TIMEOUT);
    let status = proto::GetClusterStatusRequest::default();
    let call = OutgoingCall::new("MasterService", "GetClusterStatus", &status);
    let (host, port) = (reachable(config.master_address).to_string(), config.master_port);
    let answer = connections.call(&host, port, call).await;
    let (status, _): (proto::GetClusterStatusResponse, _) =
        answer.map_err(|error| format!("the master at {host}:{port}: {error}"))?;

    // A row that does not exist: the response only proves that `hbase:meta` is open.
    let get = Get { row: "health".into(), selection: Default::default(), existence_only: true };
    let request = proto::GetRequest {
        region: convert::region_specifier(&RegionInfo::meta()),
        get: convert::to_proto::get(&get),
    };
    let call =
        OutgoingCall { priority: HIGH_PRIORITY, ..OutgoingCall::new("ClientService", "Get", &request) };
    let (host, port) = (reachable(config.region_server_address).to_string(), config.region_server_port);
    let answer = connections.call(&host, port, call).await;
    let _: (proto::GetResponse, _) =
        answer.map_err(|error| format!("hbase:meta at {host}:{port}: {error}"))?;
    Ok(status.cluster_status.live_servers)
}

/// Like [`live_servers`], for the masters and region servers of a cluster, found as clients find
/// them.
async fn live_servers_of_cluster(env: &Env, config: &Config) -> Result<Vec<proto::LiveServerInfo>, String> {
    let (servers, root) = session::servers_and_root(config);
    let registry = Registry::zookeeper(&servers, &format!("{root}{}", config.zookeeper_parent));
    let options = ClientOptions { retries_max: 0, ..ClientOptions::default() };
    let client = Client::new(env.clone(), registry, options);
    let status: proto::GetClusterStatusResponse = client
        .admin()
        .call_master("GetClusterStatus", &proto::GetClusterStatusRequest::default())
        .await
        .map_err(|error| format!("the active master: {error}"))?;
    let get = Get { row: "health".into(), selection: Default::default(), existence_only: true };
    let read = client.table(TableName::meta()).get(&get).await;
    read.map_err(|error| format!("hbase:meta: {error}"))?;
    Ok(status.cluster_status.live_servers)
}

/// The address at which a server that listens on `address` is reachable from this machine.
pub(crate) fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn a_wildcard_address_is_reached_on_loopback() {
        let check = |address: &str, expected: &str| {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        };
        check("0.0.0.0", "127.0.0.1");
        check("::", "::1");
        check("10.1.2.3", "10.1.2.3");
    }
}
