//! Serves both Thrift services of a running cluster: a smaller program than the server, for work on
//! this crate. Arguments: the address of ZooKeeper, and the ports of Thrift 1 and Thrift 2.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::env::TaskClass;
use client::{Client, ClientOptions, Registry};
use thrift::{Gateway, Service, ThriftOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let zookeeper = arguments.next().expect("the address of ZooKeeper");
    let mut port = || arguments.next().and_then(|port| port.parse().ok()).expect("a port");
    let ports: [u16; 2] = [port(), port()];
    let env = os::env(Arc::new(os::Runtimes::start(2, 1).expect("threads")));
    let options = ClientOptions { class: TaskClass::Connection, ..ClientOptions::default() };
    let client = Client::new(env.clone(), Registry::zookeeper(&zookeeper, "/hbase"), options);
    let serve = |service, port| {
        let gateway = Gateway::new(env.clone(), client.clone(), ThriftOptions::new(service));
        let env = env.clone();
        async move {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let listener = env.net.listen(address).await.expect("the port is free");
            println!("{address}");
            thrift::serve(env, listener, gateway).await;
        }
    };
    os::block_on(async {
        tokio::join!(serve(Service::One, ports[0]), serve(Service::Two, ports[1]));
    });
}
