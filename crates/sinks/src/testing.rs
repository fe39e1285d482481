//! Beans for the tests of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use base::env::Env;
use base::metrics::{Name, Reader, Registry, Scope, Source};
use tokio::runtime::Handle;

use crate::filter::Filter;
use crate::push::{Push, Role};

base::instruments! {
    /// Counters for tests.
    pub(crate) struct Counts in "RegionServer,sub=Server" {
        /// Calls.
        calls: Counter = "calls",
    }
}

base::current_values! {
    /// Gauges and tags for tests.
    struct CurrentValues in "RegionServer,sub=Server" {
        /// A negative gauge.
        load: Gauge<f64> = "load",
        /// A tag after metrics.
        server: Tag = "serverName",
    }
}

base::current_values! {
    /// The metrics of one of many regions.
    struct OneRegion in "RegionServer,sub=Regions" {
        /// A gauge.
        files: Gauge<u64> = "storeFileCount",
    }
}

/// A role with a few metrics, or very many.
pub(crate) struct Testing {
    role: Role,
    filter: Filter,
    env: Env,
    pub(crate) counted: Arc<Counts>,
    many: Arc<AtomicUsize>,
}

/// A source with the metrics of many regions.
struct Many(Arc<AtomicUsize>);

impl Source for Many {
    fn show(&self, scope: &mut Scope<'_>) {
        for region in 0..self.0.load(Relaxed) {
            let values = OneRegion { files: 3_u64.into() };
            values.show(&mut scope.named(&format!("Namespace_default_table_t_region_{region:032x}_metric_")));
        }
    }
}

/// A role with a counter, a gauge and tags.
pub(crate) fn registry() -> Testing {
    let env = base::testing::env(1);
    let registry = Registry::new(env.clock.clone(), "host");
    let bean = registry.hbase_bean("regionserver", "RegionServer,sub=Server");
    bean.read(|| CurrentValues { load: (-1.5).into(), server: "h,1,2".into() });
    let counted = Arc::new(Counts::begin(Duration::ZERO));
    bean.add(counted.clone());
    let many = Arc::new(AtomicUsize::new(0));
    registry.hbase_bean("regionserver", "RegionServer,sub=Regions").add(Arc::new(Many(many.clone())));
    let role = Role { name: "RegionServer", registry: Arc::new(registry) };
    Testing { role, filter: Filter::default(), env, counted, many }
}

impl Testing {
    /// Adds this many metrics.
    pub(crate) fn add_many(&self, metrics: usize) {
        self.many.fetch_add(metrics, Relaxed);
    }
}

/// A push that must not block.
pub(crate) fn test_push(at: &Testing, at_ms: u64) -> Push<'_> {
    test_push_in(at, at_ms, &at.env, None)
}

/// A push in an environment.
pub(crate) fn test_push_in<'a>(
    at: &'a Testing,
    at_ms: u64,
    env: &'a Env,
    runtime: Option<&'a Handle>,
) -> Push<'a> {
    Push { at_ms, role: &at.role, filter: &at.filter, env, runtime }
}

/// A name that consists of one piece.
pub(crate) fn name(name: &str) -> Name<'_> {
    Name { prefix: "", name, suffix: "", help: "" }
}

/// Outputs a bean with the tags that all beans have.
pub(crate) fn bean(to: &mut dyn Reader, source: &str, context: &str, of: impl FnOnce(&mut dyn Reader)) {
    to.begin(&format!("Hadoop:service=HBase,name={source}"), source);
    to.tag(name("Context"), context);
    to.tag(name("Hostname"), "host.domain");
    of(to);
    to.end();
}

/// The paths and bodies of posted requests.
#[cfg(feature = "otlp")]
type Posts = Vec<(String, Vec<u8>)>;

/// An OpenTelemetry collector that records posted requests.
#[cfg(feature = "otlp")]
pub(crate) struct Collector {
    pub(crate) port: u16,
    posts: Arc<std::sync::Mutex<Posts>>,
}

#[cfg(feature = "otlp")]
impl Collector {
    /// Listens in the network of `env`, and responds to all requests with `status`.
    pub(crate) async fn start(env: &Env, status: &'static str) -> Collector {
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (port, posts) = (listener.local_addr().port(), Arc::new(std::sync::Mutex::<Posts>::default()));
        let recorded = posts.clone();
        env.spawn(base::env::TaskClass::Connection, async move {
            loop {
                let stream = (listener.accept().await.unwrap().open)().unwrap();
                let posted = respond(stream, status).await;
                recorded.lock().unwrap().push(posted);
            }
        });
        Collector { port, posts }
    }

    /// The paths and bodies so far.
    pub(crate) fn posts(&self) -> Posts {
        self.posts.lock().unwrap().clone()
    }
}

/// Reads one request and responds to it.
#[cfg(feature = "otlp")]
async fn respond(stream: Box<dyn base::env::Stream>, status: &str) -> (String, Vec<u8>) {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    let mut stream = BufReader::new(stream);
    let (mut path, mut len) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if let Some(rest) = line.strip_prefix("POST ") {
            path = rest.split(' ').next().unwrap().to_owned();
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await.unwrap();
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(response.as_bytes()).await.unwrap();
    (path, body)
}
