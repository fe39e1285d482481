use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::process::{Life, Process};
use crate::world::{World, WorldOptions};

const PORT: u16 = 16020;

fn address() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT)
}

/// Sends back everything that it receives.
async fn echo(life: Life) {
    let listener = life.env.net.listen(address()).await.unwrap();
    loop {
        let incoming = listener.accept().await.unwrap();
        let mut stream = (incoming.open)().unwrap();
        life.env.spawn(base::env::TaskClass::Connection, async move {
            let mut buffer = [0; 1000];
            while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                if stream.write_all(&buffer[..len]).await.is_err() {
                    return;
                }
            }
        });
    }
}

struct Pair {
    world: Arc<World>,
    server: Arc<Process>,
    client: Life,
}

impl Pair {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        self.client.env.net.connect("server", PORT).await
    }

    fn hosts(&self) -> [HostId; 2] {
        [self.client.process.host(), self.server.host()]
    }
}

/// Runs `test` with a client and an echo server in worlds of several seeds.
fn run<F>(test: impl Fn(Pair) -> F + Send + Sync)
where
    F: Future<Output = ()> + Send + 'static,
{
    for seed in 0..20 {
        let run = World::run(WorldOptions::new(seed), |world| {
            let server = world.add_process("server", echo);
            server.start();
            let client = world.add_idle_process("client").start();
            let pair = Pair { world: world.clone(), server, client };
            let test = test(pair);
            async move {
                world.sleep(Duration::from_millis(50)).await;
                test.await;
            }
        });
        run.result.unwrap_or_else(|panic| panic!("seed {seed}: {panic}\n{}", run.last.join("\n")));
    }
}

async fn ask(stream: &mut Box<dyn Stream>, text: &[u8]) -> io::Result<()> {
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    assert_eq!(answer, text);
    Ok(())
}

#[test]
fn bytes_arrive_in_order() {
    run(|pair| async move {
        let (mut stream, pattern) = (pair.connect().await.unwrap(), (0..=250).collect::<Vec<u8>>());
        ask(&mut stream, &pattern.repeat(400)[..60_000]).await.unwrap();
        assert!(pair.world.now() < Duration::from_secs(2), "{:?}", pair.world.now());
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn a_writer_waits_for_its_reader() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        pair.server.pause();
        let writing = stream.write_all(&[7; 200_000]);
        assert!(pair.world.timeout(Duration::from_secs(60), writing).await.is_none());
        pair.server.resume();
        let mut first = vec![0; 60_000];
        stream.read_exact(&mut first).await.unwrap();
        assert!(first.iter().all(|byte| *byte == 7));
    });
}

#[test]
fn a_paused_process_accepts_connections_later() {
    run(|pair| async move {
        pair.server.pause();
        let mut stream = pair.connect().await.unwrap();
        let answer = pair.world.timeout(Duration::from_secs(5), ask(&mut stream, b"x")).await;
        assert!(answer.is_none());
        pair.server.resume();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 1);
    });
}

#[test]
fn a_killed_process_breaks_its_connections_and_refuses_new_ones() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        ask(&mut stream, b"x").await.unwrap();
        pair.server.crash(Crash::Process);
        let read = pair.world.timeout(Duration::from_secs(1), stream.read(&mut [0])).await;
        assert!(!matches!(read, None | Some(Ok(1..))), "the end or a reset: {read:?}");
        let refused = pair.connect().await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        pair.server.start();
        pair.world.sleep(Duration::from_millis(50)).await;
        ask(&mut pair.connect().await.unwrap(), b"again").await.unwrap();
    });
}

#[test]
fn a_host_without_power_is_silent_until_it_restarts() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        pair.server.crash(Crash::Host);
        let mut buffer = [0; 1];
        stream.write_all(b"x").await.unwrap();
        let read = pair.world.timeout(Duration::from_secs(1000), stream.read(&mut buffer)).await;
        assert!(read.is_none(), "{read:?}");
        let attempt = pair.world.timeout(Duration::from_secs(10), pair.connect()).await;
        assert!(attempt.is_none_or(|attempt| attempt.is_err()));
        let attempt = pair.connect().await.err().map(|error| error.kind());
        assert_eq!(attempt, Some(io::ErrorKind::TimedOut));
        pair.server.start();
        let read = pair.world.timeout(Duration::from_secs(5), stream.read(&mut buffer)).await;
        assert_eq!(read.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_short_partition_only_delays() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        let [client, server] = pair.hosts();
        pair.world.network().partition(&[client], &[server]);
        stream.write_all(b"ab").await.unwrap();
        let mut buffer = [0; 2];
        let blocked = pair.world.timeout(Duration::from_secs(5), stream.read(&mut buffer)).await;
        assert!(blocked.is_none());
        pair.world.network().heal();
        stream.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"ab");
    });
}

#[test]
fn one_direction_can_be_blocked() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        let [client, server] = pair.hosts();
        pair.world.network().block(server, client);
        stream.write_all(b"ab").await.unwrap();
        let before = pair.world.timeline().count();
        pair.world.sleep(Duration::from_secs(2)).await;
        assert!(pair.world.timeline().count() > before, "the request arrives at the server");
        pair.world.network().unblock(server, client);
        let mut buffer = [0; 2];
        let healed = pair.world.timeout(Duration::from_secs(1), stream.read_exact(&mut buffer)).await;
        healed.unwrap().unwrap();
        pair.world.network().block(client, server);
        assert!(pair.world.timeout(Duration::from_secs(5), pair.connect()).await.is_none());
    });
}

#[test]
fn a_long_partition_breaks_connections() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        let [client, server] = pair.hosts();
        pair.world.network().block(client, server);
        stream.write_all(b"ab").await.unwrap();
        let failed = pair.world.timeout(Duration::from_secs(100), stream.read(&mut [0])).await;
        assert_eq!(failed.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(stream.write(b"c").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    });
}

#[test]
fn connections_between_hosts_can_be_reset() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        let [client, server] = pair.hosts();
        pair.world.network().break_connections(server, client);
        assert_eq!(ask(&mut stream, b"x").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        ask(&mut pair.connect().await.unwrap(), b"again").await.unwrap();
    });
}

#[test]
fn a_closed_connection_resets_a_peer_that_continues() {
    run(|pair| async move {
        let mut stream = pair.connect().await.unwrap();
        stream.write_all(&[1; 3000]).await.unwrap();
        drop(stream);
        pair.world.sleep(Duration::from_secs(2)).await;
        assert!(pair.world.network().lock().connections.is_empty(), "both ends are closed");
    });
}

#[test]
fn ports_are_exclusive_until_their_listener_is_dropped() {
    run(|pair| async move {
        let net = &pair.client.env.net;
        let listener = net.listen(address()).await.unwrap();
        assert_eq!(listener.local_addr().ip(), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
        let taken = net.listen(address()).await.err().map(|error| error.kind());
        assert_eq!(taken, Some(io::ErrorKind::AddrInUse));
        drop(listener);
        net.listen(address()).await.unwrap();
        let unknown = net.connect("nowhere", 1).await.err().map(|error| error.kind());
        assert_eq!(unknown, Some(io::ErrorKind::NotFound));
        net.connect("10.0.0.1", PORT).await.unwrap();
    });
}
