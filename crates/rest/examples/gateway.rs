//! Serves the REST API of a running cluster: a smaller program than the server, for work on this
//! crate. Arguments: the address of ZooKeeper, and the port to serve on.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::env::TaskClass;
use client::{Client, ClientOptions, Registry};
use rest::{Gateway, RestOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let zookeeper = arguments.next().expect("the address of ZooKeeper");
    let port = arguments.next().and_then(|port| port.parse().ok()).expect("a port");
    let env = os::env(Arc::new(os::Runtimes::start(2, 1).expect("threads")));
    let options = ClientOptions { class: TaskClass::Connection, ..ClientOptions::default() };
    let client = Client::new(env.clone(), Registry::zookeeper(&zookeeper, "/hbase"), options);
    let gateway = Gateway::new(env.clone(), client, RestOptions::default());
    os::block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = env.net.listen(address).await.expect("the port is free");
        println!("http://{address}/");
        rest::serve(env, listener, gateway).await;
    });
}
