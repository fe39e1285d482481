//! Counters and gauges under HBase's bean and attribute names, as `/jmx` shows them.
//!
//! A component makes its [`Counter`]s, or takes them from a [`Bean`], and adds to them where things happen; nothing
//! there locks or shares a cache line. Whatever can be asked when somebody looks is a gauge: a closure that is called
//! then. Invariants:
//!
//! * an attribute of a bean has one source; naming it again replaces a gauge and gives the same counter;
//! * closures are called without a lock held, in the order of naming;
//! * no NaN or infinity leaves here: JSON has none, and HBase shows none.
//!
//! Not here: queries (`web`).

mod counter;
mod histogram;
mod meter;
mod shards;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Map;

pub use counter::Counter;
pub use histogram::{Histogram, Interval};
pub use meter::{Meter, Rates};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number with a fraction; shown with a decimal point.
    Float(f64),
    /// Text.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<u64> for Value {
    // Java's longs are signed; a count that outgrows them stays at the top.
    fn from(value: u64) -> Value {
        Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::from(value as u64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Flag(value)
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> serde_json::Value {
        match value {
            Value::Int(value) => value.into(),
            Value::Float(value) if value.is_finite() => value.into(),
            Value::Float(_) => 0.0.into(),
            Value::Text(value) => value.into(),
            Value::Flag(value) => value.into(),
        }
    }
}

/// The attributes that a group writes when somebody looks.
#[derive(Debug, Default)]
pub struct Attributes(Vec<(String, Value)>);

impl Attributes {
    /// Shows `value` as `name`.
    pub fn put(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.push((name.into(), value.into()));
    }
}

#[derive(Clone)]
enum Source {
    Counter(String, Arc<Counter>),
    Gauge(String, Arc<dyn Fn() -> Value + Send + Sync>),
    Group(Arc<dyn Fn(&mut Attributes) + Send + Sync>),
}

impl Source {
    fn name(&self) -> Option<&str> {
        match self {
            Source::Counter(name, _) | Source::Gauge(name, _) => Some(name),
            Source::Group(_) => None,
        }
    }

    fn write(&self, attributes: &mut Attributes) {
        match self {
            Source::Counter(name, counter) => attributes.put(name, counter.get()),
            Source::Gauge(name, read) => attributes.put(name, read()),
            Source::Group(write) => write(attributes),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Attributes under one name.
pub struct Bean {
    name: String,
    modeler_type: String,
    sources: Mutex<Vec<Source>>,
}

impl Bean {
    /// The counter shown as `name`, made at the first call.
    ///
    /// # Panics
    /// If `name` is a gauge.
    pub fn counter(&self, name: &str) -> Arc<Counter> {
        let mut sources = lock(&self.sources);
        match sources.iter().find(|source| source.name() == Some(name)) {
            Some(Source::Counter(_, counter)) => counter.clone(),
            Some(_) => panic!("{name} of {} is a gauge already", self.name),
            None => {
                let counter = Arc::new(Counter::new());
                sources.push(Source::Counter(name.to_owned(), counter.clone()));
                counter
            }
        }
    }

    /// Shows a counter that a component made for itself.
    pub fn show(&self, name: &str, counter: Arc<Counter>) {
        self.replace(Source::Counter(name.to_owned(), counter));
    }

    /// Shows what `read` returns, asked anew each time.
    pub fn gauge<V: Into<Value>>(&self, name: &str, read: impl Fn() -> V + Send + Sync + 'static) {
        self.replace(Source::Gauge(name.to_owned(), Arc::new(move || read().into())));
    }

    /// Shows a text that stays, as `tag.NAME`.
    pub fn tag(&self, name: &str, text: impl Into<String>) {
        let text = text.into();
        self.gauge(&format!("tag.{name}"), move || text.clone());
    }

    /// Shows attributes whose names are known only when somebody looks (one for each region, table, peer).
    pub fn group(&self, write: impl Fn(&mut Attributes) + Send + Sync + 'static) {
        lock(&self.sources).push(Source::Group(Arc::new(write)));
    }

    fn replace(&self, new: Source) {
        let mut sources = lock(&self.sources);
        match sources.iter_mut().find(|source| source.name() == new.name()) {
            Some(source) => *source = new,
            None => sources.push(new),
        }
    }

    /// All attributes with their values of this moment.
    pub fn read(&self) -> Vec<(String, Value)> {
        let sources = lock(&self.sources).clone();
        let mut attributes = Attributes::default();
        for source in &sources {
            source.write(&mut attributes);
        }
        attributes.0
    }

    fn to_json(&self) -> serde_json::Value {
        let mut members = Map::new();
        members.insert("name".to_owned(), self.name.clone().into());
        members.insert("modelerType".to_owned(), self.modeler_type.clone().into());
        members.extend(self.read().into_iter().map(|(name, value)| (name, value.into())));
        members.into()
    }
}

/// The beans of a process.
#[derive(Default)]
pub struct Registry {
    beans: Mutex<Vec<Arc<Bean>>>,
}

impl Registry {
    /// A registry without beans.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// The bean of one of HBase's sources: `hbase_bean("RegionServer", "Server")` is
    /// `Hadoop:service=HBase,name=RegionServer,sub=Server`.
    pub fn hbase_bean(&self, name: &str, sub: &str) -> Arc<Bean> {
        let modeler_type = format!("{name},sub={sub}");
        self.bean(&format!("Hadoop:service=HBase,name={modeler_type}"), &modeler_type)
    }

    /// The bean of a full object name, made at the first call.
    pub fn bean(&self, name: &str, modeler_type: &str) -> Arc<Bean> {
        let mut beans = lock(&self.beans);
        if let Some(bean) = beans.iter().find(|bean| bean.name == name) {
            return bean.clone();
        }
        let bean = Arc::new(Bean {
            name: name.to_owned(),
            modeler_type: modeler_type.to_owned(),
            sources: Mutex::new(Vec::new()),
        });
        beans.push(bean.clone());
        bean
    }

    /// Every bean as an object of `/jmx`, in the order they were made.
    pub fn beans(&self) -> Vec<serde_json::Value> {
        let beans = lock(&self.beans).clone();
        beans.iter().map(|bean| bean.to_json()).collect()
    }

    /// The whole answer of `/jmx`.
    pub fn jmx(&self) -> String {
        let answer = serde_json::json!({ "beans": self.beans() });
        serde_json::to_string_pretty(&answer).expect("an object of texts and numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bean_as_hbase_shows_it() {
        let registry = Registry::new();
        let server = registry.hbase_bean("RegionServer", "Server");
        server.tag("Context", "regionserver");
        let requests = server.counter("totalRequestCount");
        server.gauge("regionCount", || 9usize);
        server.gauge("percentFilesLocal", || 100.0);
        requests.add(3);
        let answer: serde_json::Value = serde_json::from_str(&registry.jmx()).unwrap();
        let expected = serde_json::json!({"beans": [{
            "name": "Hadoop:service=HBase,name=RegionServer,sub=Server",
            "modelerType": "RegionServer,sub=Server",
            "tag.Context": "regionserver",
            "totalRequestCount": 3,
            "regionCount": 9,
            "percentFilesLocal": 100.0,
        }]});
        assert_eq!(answer, expected);
        assert!(registry.jmx().contains("\"percentFilesLocal\": 100.0"), "a double keeps its point");
    }

    #[test]
    fn asking_again_gives_the_same() {
        let registry = Registry::new();
        registry.hbase_bean("Master", "Server").counter("clusterRequests").increment();
        registry.hbase_bean("Master", "Server").counter("clusterRequests").increment();
        assert_eq!(registry.beans().len(), 1);
        assert_eq!(registry.beans()[0]["clusterRequests"], 2);
        let bean = registry.hbase_bean("Master", "Server");
        bean.gauge("averageLoad", || 1.5);
        bean.gauge("averageLoad", || 2.5);
        assert_eq!(
            bean.read(),
            [("clusterRequests".into(), Value::Int(2)), ("averageLoad".into(), 2.5.into())]
        );
    }

    #[test]
    fn numbers_that_json_has_not() {
        let registry = Registry::new();
        let bean = registry.bean("java.lang:type=OperatingSystem", "sun.management.OperatingSystemImpl");
        bean.gauge("ProcessCpuLoad", || f64::NAN);
        bean.gauge("SystemLoadAverage", || f64::INFINITY);
        bean.gauge("big", || u64::MAX);
        let shown = &registry.beans()[0];
        assert_eq!(shown["ProcessCpuLoad"], 0.0);
        assert_eq!(shown["SystemLoadAverage"], 0.0);
        assert_eq!(shown["big"], i64::MAX);
    }

    #[test]
    fn a_group_names_its_attributes_when_read_and_may_use_its_bean() {
        let registry = Registry::new();
        let bean = registry.hbase_bean("RegionServer", "Regions");
        let weak = Arc::downgrade(&bean);
        bean.group(move |attributes| {
            let known = weak.upgrade().map_or(0, |bean| bean.counter("known").get());
            attributes.put("Namespace_default_table_t_metric_\"odd\"", known);
        });
        bean.counter("known").add(4);
        assert_eq!(registry.beans()[0]["Namespace_default_table_t_metric_\"odd\""], 4);
        assert_eq!(bean.read().len(), 2);
    }
}
