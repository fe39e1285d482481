//! The beans of a process, and the sources of their attributes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::env::Clock;
use crate::metrics::{Name, Reader, Scope, Source};

/// Minimum length of a histogram interval: HBase's ten seconds, slightly reduced. A reader that
/// polls every ten seconds sometimes comes early, and would otherwise get an interval of twice the
/// length.
const INTERVAL_MIN: Duration = Duration::from_millis(9_900);
/// Maximum length of an interval without readers, if [`Registry::end_long_interval`] is called. A
/// bucket counts with 32 bits, so an interval this long allows seven million values per second in a
/// bucket.
const INTERVAL_MAX: Duration = Duration::from_secs(600);

/// The Hadoop record of a bean's attributes: the `sub` part of the bean, but the server's name for
/// calls. `RegionServer,sub=WAL` has the record `WAL`, `RegionServer,sub=IPC` has `RegionServer`.
pub fn record_of(source: &str) -> &str {
    match source.split_once(",sub=") {
        Some((server, "IPC")) => server,
        Some(("MetricsSystem", _)) => "MetricsSystem",
        Some((_, part)) => part,
        None => source,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Attributes under one name, from any number of sources.
pub struct Bean {
    name: String,
    modeler_type: String,
    // Constant tags, such as the host name.
    tags: Vec<(&'static str, String)>,
    sources: Mutex<Vec<Arc<dyn Source>>>,
}

impl Bean {
    /// The full name, for example `Hadoop:service=HBase,name=RegionServer,sub=Server`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds `source` to the bean.
    pub fn add(&self, source: Arc<dyn Source>) {
        lock(&self.sources).push(source);
    }

    /// Adds a source that `read` creates for each read.
    pub fn read<S: Source + 'static>(&self, read: impl Fn() -> S + Send + Sync + 'static) {
        self.add(Arc::new(ComputedSource(read)));
    }

    fn sources(&self) -> Vec<Arc<dyn Source>> {
        lock(&self.sources).clone()
    }

    fn show(&self, now: Duration, to: &mut dyn Reader) {
        to.begin(&self.name, &self.modeler_type);
        for (name, text) in &self.tags {
            to.tag(Name { prefix: "", name, suffix: "", help: "" }, text);
        }
        // No lock is held while sources are read.
        for source in self.sources() {
            source.show(&mut Scope::of(now, to));
        }
        to.end();
    }
}

/// A source that is created for each read.
struct ComputedSource<F>(F);

impl<S: Source, F: Fn() -> S + Send + Sync> Source for ComputedSource<F> {
    fn show(&self, scope: &mut Scope<'_>) {
        (self.0)().show(scope);
    }
}

/// The beans of a process or role.
pub struct Registry {
    clock: Arc<dyn Clock>,
    host: String,
    beans: Mutex<Vec<Arc<Bean>>>,
    // Start of the current histogram intervals.
    interval_began: Mutex<Duration>,
}

impl Registry {
    /// A registry without beans, of a process on `host`.
    pub fn new(clock: Arc<dyn Clock>, host: &str) -> Registry {
        let interval_began = Mutex::new(clock.monotonic());
        Registry { clock, host: host.to_owned(), beans: Mutex::default(), interval_began }
    }

    /// The clock for intervals and rates.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the bean of one of HBase's sources, which the first call creates.
    /// `hbase_bean("regionserver", "RegionServer,sub=Server")` is
    /// `Hadoop:service=HBase,name=RegionServer,sub=Server`, with the context as one of its tags.
    pub fn hbase_bean(&self, context: &'static str, record: &str) -> Arc<Bean> {
        let name = format!("Hadoop:service=HBase,name={record}");
        let tags = vec![("Context", context.to_owned()), ("Hostname", self.host.clone())];
        self.bean(name, record, tags)
    }

    /// Returns the bean of one instance of something that a process has several of, such as a disk.
    /// `instance` is the last property of its name, and `labels` are its tags:
    /// `hbase_instance("regionserver", "RegionServer,sub=Grampus", "volume=0", ..)` is
    /// `Hadoop:service=HBase,name=RegionServer,sub=Grampus,volume=0`.
    pub fn hbase_instance(
        &self,
        context: &'static str,
        record: &str,
        instance: &str,
        labels: Vec<(&'static str, String)>,
    ) -> Arc<Bean> {
        let name = format!("Hadoop:service=HBase,name={record},{instance}");
        let mut tags = vec![("Context", context.to_owned()), ("Hostname", self.host.clone())];
        tags.extend(labels);
        self.bean(name, record, tags)
    }

    /// Returns a bean that is not an HBase source, by its full name, for example
    /// `java.lang:type=Memory` of the Java platform.
    pub fn platform_bean(&self, name: &str, modeler_type: &str) -> Arc<Bean> {
        self.bean(name.to_owned(), modeler_type, Vec::new())
    }

    fn bean(&self, name: String, modeler_type: &str, tags: Vec<(&'static str, String)>) -> Arc<Bean> {
        let mut beans = lock(&self.beans);
        if let Some(bean) = beans.iter().find(|bean| bean.name == name) {
            return bean.clone();
        }
        let modeler_type = modeler_type.to_owned();
        let bean = Arc::new(Bean { name, modeler_type, tags, sources: Mutex::default() });
        beans.push(bean.clone());
        bean
    }

    /// Shows the current values of the beans whose name `is_wanted`, in the order of their
    /// creation. Histograms show the last complete interval, which this call may have ended.
    pub fn show(&self, is_wanted: &dyn Fn(&str) -> bool, to: &mut dyn Reader) {
        let beans = lock(&self.beans).clone();
        self.end_interval(&beans, INTERVAL_MIN);
        let now = self.clock.monotonic();
        beans.iter().filter(|bean| is_wanted(&bean.name)).for_each(|bean| bean.show(now, to));
    }

    /// Keeps intervals short enough for the histograms' 32-bit counts when there are no readers.
    /// Call it periodically.
    pub fn end_long_interval(&self) {
        let beans = lock(&self.beans).clone();
        self.end_interval(&beans, INTERVAL_MAX);
    }

    /// Ends the current interval of all histograms if it has lasted at least `least`.
    fn end_interval(&self, beans: &[Arc<Bean>], least: Duration) {
        let now = self.clock.monotonic();
        {
            let mut began = lock(&self.interval_began);
            if now.saturating_sub(*began) < least {
                return;
            }
            *began = now;
        }
        beans.iter().flat_map(|bean| bean.sources()).for_each(|source| source.roll());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::testing::Shown;
    use crate::metrics::{Declares, Kind, Unit};
    use crate::testing::TestClock;

    crate::instruments! {
        /// Counters of these tests.
        struct Calls in "RegionServer,sub=Server" {
            /// Calls.
            calls: Counter = "totalRequestCount",
            /// How long
            /// a Get took.
            get: Times = "Get",
            /// Bytes read.
            read_bytes: Counter = "totalBytesRead" in Bytes,
        }
    }

    crate::current_values! {
        /// Current values of these tests.
        struct Values in "RegionServer,sub=Server" {
            /// Name of the server.
            server: Tag = "serverName",
            /// Regions.
            regions: Gauge<u64> = "regionCount",
            /// Percentage of local blocks.
            local: Gauge<f64> = "percentFilesLocal" in Percent,
            /// Rows.
            rows: Counted = "readRequestCount",
        }
    }

    fn registry() -> Registry {
        Registry::new(Arc::new(TestClock::new()), "host")
    }

    fn shown(registry: &Registry) -> Shown {
        let mut shown = Shown::default();
        registry.show(&|_| true, &mut shown);
        shown
    }

    #[tokio::test]
    async fn a_bean_has_what_its_sources_declare() {
        let registry = registry();
        let bean = registry.hbase_bean("regionserver", "RegionServer,sub=Server");
        let calls = Arc::new(Calls::begin(Duration::ZERO));
        bean.add(calls.clone());
        bean.read(|| Values {
            server: "h,1,2".into(),
            regions: 9_u64.into(),
            local: f64::NAN.into(),
            rows: u64::MAX.into(),
        });
        calls.calls.add(3);
        let shown = shown(&registry);
        assert_eq!(shown.beans, ["Hadoop:service=HBase,name=RegionServer,sub=Server"]);
        for (name, value) in [
            ("tag.Context", "regionserver"),
            ("tag.Hostname", "host"),
            ("tag.serverName", "h,1,2"),
            ("totalRequestCount", "3"),
            ("Get_num_ops", "0"),
            ("regionCount", "9"),
            ("percentFilesLocal", "0.0"),
            ("readRequestCount", "18446744073709551615"),
        ] {
            assert_eq!(shown.of(name), Some(value), "{name}");
        }
    }

    #[test]
    fn declarations_match_the_shown_attributes() {
        let get = Calls::DECLARED[1];
        assert_eq!((get.bean, get.name), ("RegionServer,sub=Server", "Get"));
        assert_eq!((get.kind, get.unit, get.help), (Kind::Times, Unit::Milliseconds, "How long a Get took."));
        assert_eq!((Calls::DECLARED[2].unit, Calls::DECLARED[0].unit), (Unit::Bytes, Unit::Count));
        let kinds: Vec<_> = Values::DECLARED.iter().map(|declared| (declared.kind, declared.unit)).collect();
        let expected = [
            (Kind::Tag, Unit::Count),
            (Kind::Gauge, Unit::Count),
            (Kind::Gauge, Unit::Percent),
            (Kind::Counter, Unit::Count),
        ];
        assert_eq!(kinds, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_after_ten_seconds_ends_the_interval() {
        let registry = registry();
        let calls = Arc::new(Calls::begin(Duration::ZERO));
        registry.hbase_bean("regionserver", "RegionServer,sub=Server").add(calls.clone());
        let max = || shown(&registry).of("Get_max").unwrap().to_owned();
        calls.get.record(Duration::from_millis(70));
        assert_eq!(max(), "0", "the first interval has not ended");
        tokio::time::advance(INTERVAL_MIN).await;
        assert_eq!(max(), "70");
        tokio::time::advance(INTERVAL_MIN / 2).await;
        assert_eq!(max(), "70", "unchanged until the next interval has ended");
        tokio::time::advance(INTERVAL_MIN / 2).await;
        assert_eq!(max(), "0");
        assert_eq!(shown(&registry).of("Get_num_ops"), Some("1"), "counts since the start");
    }

    #[tokio::test(start_paused = true)]
    async fn unread_intervals_have_a_maximum_length() {
        let registry = registry();
        let calls = Arc::new(Calls::begin(Duration::ZERO));
        registry.hbase_bean("regionserver", "RegionServer,sub=Server").add(calls.clone());
        let a_quarter_of_what_fits = 1 << 30;
        for _ in 0..8 {
            calls.get.micros().record_many(70_000, a_quarter_of_what_fits);
            tokio::time::advance(INTERVAL_MAX / 2).await;
            registry.end_long_interval();
        }
        assert_eq!(shown(&registry).of("Get_num_ops"), Some("8589934592"));
    }

    #[tokio::test]
    async fn a_bean_is_made_once_and_shown_if_wanted() {
        let registry = registry();
        let first = registry.hbase_bean("master", "Master,sub=Server");
        assert!(Arc::ptr_eq(&first, &registry.hbase_bean("master", "Master,sub=Server")));
        registry.hbase_bean("master", "Master,sub=Balancer");
        let mut shown = Shown::default();
        registry.show(&|name| name.ends_with("Balancer"), &mut shown);
        assert_eq!(shown.beans, ["Hadoop:service=HBase,name=Master,sub=Balancer"]);
    }

    #[tokio::test]
    async fn prefixes_name_repeated_sources() {
        struct Tables;
        impl Source for Tables {
            fn show(&self, scope: &mut Scope<'_>) {
                let values = Values { regions: 2_u64.into(), ..Values::default() };
                values.show(&mut scope.named("Namespace_default_table_t_metric_"));
            }
        }
        let registry = registry();
        registry.hbase_bean("regionserver", "RegionServer,sub=Tables").add(Arc::new(Tables));
        assert_eq!(shown(&registry).of("Namespace_default_table_t_metric_regionCount"), Some("2"));
    }
}
