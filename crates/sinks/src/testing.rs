//! Beans for the tests of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use base::env::Env;
use base::metrics::{Name, Registry, Scope, Show, Source};
use tokio::runtime::Handle;

use crate::filter::Filter;
use crate::push::{Look, Role};

base::instruments! {
    /// What is counted in tests.
    pub(crate) struct Counts in "RegionServer,sub=Server" {
        /// Calls.
        calls: Counter = "calls",
    }
}

base::figures! {
    /// What is said in tests.
    struct Figures in "RegionServer,sub=Server" {
        /// A gauge below 0.
        load: Gauge<f64> = "load",
        /// A tag behind metrics.
        server: Tag = "serverName",
    }
}

base::figures! {
    /// What there is many of.
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

/// Regions.
struct Many(Arc<AtomicUsize>);

impl Source for Many {
    fn show(&self, scope: &mut Scope<'_>) {
        for region in 0..self.0.load(Relaxed) {
            let figures = OneRegion { files: 3_u64.into() };
            figures
                .show(&mut scope.named(&format!("Namespace_default_table_t_region_{region:032x}_metric_")));
        }
    }
}

/// A role that shows a counter, a gauge and tags.
pub(crate) fn registry() -> Testing {
    let env = base::testing::env(1);
    let registry = Registry::new(env.clock.clone(), "host");
    let bean = registry.hbase_bean("regionserver", "RegionServer,sub=Server");
    bean.read(|| Figures { load: (-1.5).into(), server: "h,1,2".into() });
    let counted = Arc::new(Counts::begin(Duration::ZERO));
    bean.add(counted.clone());
    let many = Arc::new(AtomicUsize::new(0));
    registry.hbase_bean("regionserver", "RegionServer,sub=Regions").add(Arc::new(Many(many.clone())));
    let role = Role { name: "RegionServer", registry: Arc::new(registry) };
    Testing { role, filter: Filter::default(), env, counted, many }
}

impl Testing {
    /// Shows so many more metrics.
    pub(crate) fn add_many(&self, metrics: usize) {
        self.many.fetch_add(metrics, Relaxed);
    }
}

/// A look that must not wait.
pub(crate) fn look(at: &Testing, at_ms: u64) -> Look<'_> {
    look_in(at, at_ms, &at.env, None)
}

/// A look in an environment.
pub(crate) fn look_in<'a>(
    at: &'a Testing,
    at_ms: u64,
    env: &'a Env,
    runtime: Option<&'a Handle>,
) -> Look<'a> {
    Look { at_ms, role: &at.role, filter: &at.filter, env, runtime }
}

/// A name in one piece.
pub(crate) fn name(name: &str) -> Name<'_> {
    Name { prefix: "", name, suffix: "", help: "" }
}

/// Shows a bean with the tags that all have.
pub(crate) fn bean(to: &mut dyn Show, source: &str, context: &str, of: impl FnOnce(&mut dyn Show)) {
    to.begin(&format!("Hadoop:service=HBase,name={source}"), source);
    to.tag(name("Context"), context);
    to.tag(name("Hostname"), "host.domain");
    of(to);
    to.end();
}

/// Paths and bodies of what was posted.
#[cfg(feature = "otlp")]
type Posts = Vec<(String, Vec<u8>)>;

/// A collector of OpenTelemetry's that keeps what it is posted.
#[cfg(feature = "otlp")]
pub(crate) struct Collector {
    pub(crate) port: u16,
    posts: Arc<std::sync::Mutex<Posts>>,
}

#[cfg(feature = "otlp")]
impl Collector {
    /// Listens in the network of `env`, and answers all with `status`.
    pub(crate) async fn start(env: &Env, status: &'static str) -> Collector {
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (port, posts) = (listener.local_addr().port(), Arc::new(std::sync::Mutex::<Posts>::default()));
        let kept = posts.clone();
        env.spawn(base::env::TaskClass::Connection, async move {
            loop {
                let stream = (listener.accept().await.unwrap().open)().unwrap();
                let posted = answer(stream, status).await;
                kept.lock().unwrap().push(posted);
            }
        });
        Collector { port, posts }
    }

    /// Paths and bodies so far.
    pub(crate) fn posts(&self) -> Posts {
        self.posts.lock().unwrap().clone()
    }
}

/// Reads one request and answers it.
#[cfg(feature = "otlp")]
async fn answer(stream: Box<dyn base::env::Stream>, status: &str) -> (String, Vec<u8>) {
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
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    (path, body)
}
