use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Directories of one test, removed when dropped.
struct Dirs(PathBuf);

impl Dirs {
    fn new() -> Dirs {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Dirs(std::env::temp_dir().join(format!("grampus-config-{}-{number}", std::process::id())))
    }

    /// Creates a directory with an `hbase-site.xml` that contains these properties.
    #[allow(clippy::disallowed_methods)] // The files of a test.
    fn site(&self, name: &str, inside: &str) -> PathBuf {
        let dir = self.0.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(SITE_FILE), format!("<configuration>{inside}</configuration>")).unwrap();
        dir
    }
}

impl Drop for Dirs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes one of Hadoop's files.
#[allow(clippy::disallowed_methods)] // The files of a test.
fn write_hadoop_file(dir: &Path, file: &str, inside: &str) {
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join(file), format!("<configuration>{inside}</configuration>")).unwrap();
}

#[test]
fn hadoops_settings_come_from_its_files_and_from_the_site() {
    let dirs = Dirs::new();
    let site =
        dirs.site("hbase", &(property("hbase.rootdir", "hdfs:///hbase") + &property("dfs.replication", "2")));
    let shared = dirs.0.join("hadoop");
    let own = property("fs.defaultFS", "hdfs://${service}") + &property("service", "one");
    write_hadoop_file(&shared, "core-site.xml", &own);
    write_hadoop_file(&shared, "hdfs-site.xml", &property("dfs.replication", "3"));
    write_hadoop_file(&site, "hdfs-site.xml", &property("dfs.blocksize", "64m"));
    let environment = variables(&[("HADOOP_CONF_DIR", shared.to_str().unwrap()), ("USER", "hbase1")]);
    let mut sources = Sources { directories: vec![site], environment, ..Sources::default() };
    let config = Config::load(&sources).unwrap();
    let value = |key: &str| config.hadoop().get(key).map(String::as_str);
    assert_eq!(value("fs.defaultFS"), Some("hdfs://one"));
    assert_eq!(value("dfs.replication"), Some("2"), "the site is stronger");
    assert_eq!(value("dfs.blocksize"), Some("64m"));
    assert_eq!(value("hbase.rootdir"), None);
    assert_eq!((config.hadoop_user(), config.warnings()), ("hbase1", &[][..]));
    sources.set("hbase.rootdir=/local").unwrap();
    assert!(Config::load(&sources).unwrap().hadoop().is_empty(), "a local directory needs none");
}

#[test]
fn an_unset_name_in_a_setting_of_hadoop_stays_as_it_is() {
    let dirs = Dirs::new();
    let site = dirs.site("hbase", &property("hbase.rootdir", "hdfs://one/hbase"));
    let own = property("hadoop.tmp.dir", "/tmp/hadoop-${user.name}") + &property("net.x", " ${nobody}/x ");
    write_hadoop_file(&site, "core-site.xml", &own);
    let mut sources = Sources { directories: vec![site], ..Sources::default() };
    for (variable, user) in [("HADOOP_USER_NAME", "alice"), ("USER", "bob"), ("NONE", "hbase")] {
        sources.environment = variables(&[(variable, user)]);
        let config = Config::load(&sources).unwrap();
        assert_eq!(config.hadoop()["hadoop.tmp.dir"], format!("/tmp/hadoop-{user}"));
        assert_eq!(config.hadoop()["net.x"], "${nobody}/x");
    }
}

#[test]
fn a_final_setting_of_hadoop_is_replaced_only_on_the_command_line() {
    let dirs = Dirs::new();
    let root = property("hbase.rootdir", "hdfs://one/hbase");
    let site = dirs.site("hbase", &(root + &property("dfs.replication", "2")));
    let shared = dirs.0.join("hadoop");
    let own = "<property><name>dfs.replication</name><value>3</value><final>true</final></property>";
    write_hadoop_file(&shared, "core-site.xml", own);
    write_hadoop_file(&shared, "hdfs-site.xml", &property("dfs.replication", "3"));
    write_hadoop_file(&site, "hdfs-site.xml", &property("dfs.replication", "4"));
    let environment = variables(&[("HADOOP_CONF_DIR", shared.to_str().unwrap())]);
    let mut sources = Sources { directories: vec![site], environment, ..Sources::default() };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.hadoop()["dfs.replication"], "3");
    let warnings = config.warnings();
    assert!(warnings.iter().all(|warning| warning.starts_with("dfs.replication (")), "{warnings:?}");
    assert_eq!(warnings.len(), 2, "the same value is no fault: {warnings:?}");
    sources.set("dfs.replication=1").unwrap();
    assert_eq!(Config::load(&sources).unwrap().hadoop()["dfs.replication"], "1");
}

fn property(key: &str, value: &str) -> String {
    format!("<property><name>{key}</name><value>{value}</value></property>")
}

fn set(arguments: &[&str]) -> Result<Config, Error> {
    let mut sources = Sources::default();
    for argument in arguments {
        sources.set(argument)?;
    }
    Config::load(&sources)
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_defaults() {
    let config = Config::default();
    assert_eq!(config.root, RootUri::Local("./grampus-data".into()));
    assert_eq!((config.master_port, config.region_server_port, config.zookeeper_port), (16000, 16020, 2181));
    assert_eq!((config.master_info_port, config.region_server_info_port), (Some(16010), Some(16030)));
    assert!(config.region_server_address.is_loopback());
    assert_eq!(config.memstore_flush_bytes, 128 << 20);
    assert_eq!(config.scanner_lease_ms, 60_000);
    assert_eq!(config.cell_bytes_max, Some(10 << 20));
    assert_eq!(config.checksum, Checksum::Crc32c);
    assert_eq!(config.wal_roll_bytes(), 128 << 20);
    assert_eq!(config.wal_files_max_for(1 << 30), 32);
    assert_eq!(config.wal_files_max_for(64 << 30), 1024);
    let parts = config.memory_parts(10 << 30);
    assert_eq!(parts.total, 4 << 30);
    assert_eq!((parts.memstores, parts.cache), (1_717_986_918, 1_717_986_918));
    assert_eq!((parts.requests, parts.responses), (286_331_153, 286_331_153), "thirds of the rest");
    assert_eq!(config.request_bytes_max_of(1 << 30), 256 << 20);
    assert_eq!(config.request_bytes_max_of(64 << 20), (48 << 20) - (64 << 10), "at least one request fits");
    assert_eq!((config.calls_max(), config.connections_max_of(20_000)), (None, 15_000 - 2 * 512 - 1250));
    assert!(config.warnings().is_empty());
    assert_eq!(config.settings().len(), OPTIONS.len());
    assert!(config.settings().iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn keys_and_variables_are_unique() {
    let keys: Vec<&str> =
        OPTIONS.iter().flat_map(|o| std::iter::once(o.key).chain(o.aliases.iter().copied())).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    assert_eq!(keys.iter().map(|key| variable_of(key)).collect::<BTreeSet<_>>().len(), keys.len());
    assert_eq!(
        variable_of("hbase.zookeeper.property.clientPort"),
        "GRAMPUS_HBASE_ZOOKEEPER_PROPERTY_CLIENTPORT"
    );
    assert_eq!(variable_of("grampus.memory"), "GRAMPUS_MEMORY");
}

#[test]
fn the_stronger_source_wins() {
    let dirs = Dirs::new();
    let mut sources = Sources::default();
    let port = |sources: &Sources| Config::load(sources).unwrap().master_port;
    let origin = |sources: &Sources| {
        let config = Config::load(sources).unwrap();
        config.settings().iter().find(|setting| setting.key == "hbase.master.port").unwrap().origin.clone()
    };
    sources.directories.push(dirs.site("weak", &property("hbase.master.port", "1")));
    assert_eq!(port(&sources), 1);
    sources.directories.push(dirs.site("strong", &property("hbase.master.port", "2")));
    assert_eq!((port(&sources), origin(&sources)), (2, Origin::File(dirs.0.join("strong/hbase-site.xml"))));
    sources.environment = variables(&[("GRAMPUS_HBASE_MASTER_PORT", "3")]);
    assert_eq!(
        (port(&sources), origin(&sources).to_string()),
        (3, "environment variable GRAMPUS_HBASE_MASTER_PORT".into())
    );
    sources.set("hbase.master.port=4").unwrap();
    assert_eq!((port(&sources), origin(&sources)), (4, Origin::CommandLine));
    sources.set("hbase.master.port = 5").unwrap();
    assert_eq!(port(&sources), 5, "the last --set wins");
}

#[test]
fn only_the_command_line_overrides_final_values() {
    let dirs = Dirs::new();
    let fixed = "<property><name>hbase.master.port</name><value>1</value><final>true</final></property>";
    let mut sources = Sources {
        directories: vec![
            dirs.site("first", fixed),
            dirs.site("second", &property("hbase.master.port", "2")),
        ],
        ..Sources::default()
    };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.master_port, 1);
    assert!(config.warnings()[0].contains("already final"), "{:?}", config.warnings());
    sources.set("hbase.master.port=3").unwrap();
    assert_eq!(Config::load(&sources).unwrap().master_port, 3);
    // Within one file, too, the first final value wins.
    sources = Sources::default();
    let twice = format!("{fixed}{}", property("hbase.master.port", "2"));
    sources.directories.push(dirs.site("twice", &twice));
    assert_eq!(Config::load(&sources).unwrap().master_port, 1);
}

#[test]
fn older_keys_mean_the_same() {
    let dirs = Dirs::new();
    assert_eq!(set(&["hbase.hstore.compactionThreshold=5"]).unwrap().compaction_files_min, 5);
    // Within one source the current key wins, in any order.
    let both =
        [property("hbase.hstore.compaction.min", "4"), property("hbase.hstore.compactionThreshold", "5")];
    for (name, inside) in [("one", both.concat()), ("other", [&*both[1], &*both[0]].concat())] {
        let mut sources = Sources { directories: vec![dirs.site(name, &inside)], ..Sources::default() };
        assert_eq!(Config::load(&sources).unwrap().compaction_files_min, 4);
        // A stronger source may use the older key.
        sources.set("hbase.hstore.compactionThreshold=6").unwrap();
        assert_eq!(Config::load(&sources).unwrap().compaction_files_min, 6);
    }
}

#[test]
fn unknown_keys_are_warned_of() {
    let dirs = Dirs::new();
    let mut sources = Sources {
        directories: vec![dirs.site("d", &property("hbase.cluster.unknown", "true"))],
        environment: variables(&[("GRAMPUS_NO_SUCH", "x"), ("GRAMPUS_LOG", "debug"), ("PATH", "/bin")]),
        other_variables: vec!["GRAMPUS_LOG".to_owned()],
        ..Sources::default()
    };
    sources.set("hbase.mistyped=1").unwrap();
    let config = Config::load(&sources).unwrap();
    let warned = config.warnings().join("\n");
    for part in ["hbase.cluster.unknown (", "GRAMPUS_NO_SUCH", "hbase.mistyped (command line)"] {
        assert!(warned.contains(part), "{part} in {warned}");
    }
    assert_eq!(config.warnings().len(), 3);
}

#[test]
fn the_second_level_cache_needs_files_and_a_size() {
    let load = |set: &[&str]| {
        let mut sources = Sources::default();
        set.iter().for_each(|argument| sources.set(argument).unwrap());
        Config::load(&sources)
    };
    let sized = load(&["hbase.bucketcache.ioengine=file:/ssd", "hbase.bucketcache.size=8192.0"]).unwrap();
    assert_eq!((sized.cache_files.paths(), sized.cache_file_bytes), (&["/ssd".into()][..], Some(8 << 30)));
    assert!(sized.warnings().is_empty(), "{:?}", sized.warnings());
    for (set, part) in [
        (&["hbase.bucketcache.ioengine=file:/ssd"][..], "needs hbase.bucketcache.size"),
        (&["hbase.bucketcache.ioengine=file:/ssd", "hbase.bucketcache.size=0.4"], "at least 1"),
        (&["hbase.bucketcache.ioengine=disk:/ssd"], "expected `file:PATH`"),
    ] {
        let error = load(set).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let in_memory = load(&["hbase.bucketcache.ioengine=offheap", "hbase.bucketcache.size=8192"]).unwrap();
    assert!(in_memory.cache_files.paths().is_empty());
    let warnings = in_memory.warnings();
    assert!(
        warnings.len() == 2 && warnings.iter().all(|warning| warning.contains("ignored")),
        "{warnings:?}"
    );
}

#[test]
fn values_refer_to_others() {
    let dirs = Dirs::new();
    let inside = [
        property("site.base", "${env.BASE:-/srv}"),
        property("hbase.rootdir", "file://${site.base}/${user.name}"),
        property("hbase.master.info.port", "${hbase.master.port}"),
    ];
    let mut sources = Sources { directories: vec![dirs.site("d", &inside.concat())], ..Sources::default() };
    sources.environment = variables(&[("USER", "me")]);
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.root, RootUri::Local("/srv/me".into()));
    assert_eq!(config.master_info_port, Some(16000), "an unset option has its default");
    sources.environment = variables(&[("USER", "me"), ("BASE", "/else")]);
    assert_eq!(Config::load(&sources).unwrap().root, RootUri::Local("/else/me".into()));
    sources.environment.clear();
    let error = Config::load(&sources).unwrap_err().to_string();
    assert!(error.contains("hbase.rootdir") && error.contains("${user.name} is not set"), "{error}");
}

#[test]
fn refusals_name_key_origin_and_reason() {
    let message = |arguments: &[&str]| set(arguments).unwrap_err().to_string();
    assert_eq!(
        message(&["hbase.rootdir=file:relative"]),
        "hbase.rootdir = 'file:relative' (command line): expected a local directory, as a path or as `file:///…`; \
         in a cluster also `hdfs://NAMESERVICE/PATH`"
    );
    assert_eq!(
        message(&["hbase.master.port=many"]),
        "hbase.master.port = 'many' (command line): expected a port from 0 to 65535; 0: any free port"
    );
    assert_eq!(message(&["nonsense"]), "--set nonsense: expected key=value");
    assert!(message(&["=x"]).contains("expected key=value"));
    assert!(message(&["hfile.block.cache.size=0.5"]).contains("more than 0.8 of the memory"));
    assert!(set(&["hfile.block.cache.size=0.5", "hbase.regionserver.global.memstore.size=0.3"]).is_ok());
    assert!(message(&["hbase.hstore.compaction.max=2"]).contains("hbase.hstore.compaction.min"));
    let long = message(&[&format!("hbase.master.port={}\n", "9".repeat(10_000))]);
    assert!(long.len() < 300 && !long.contains('\n'), "{long}");
}

#[test]
fn files_that_cannot_be_read() {
    let dirs = Dirs::new();
    let load = |dir: PathBuf| Config::load(&Sources { directories: vec![dir], ..Sources::default() });
    let missing = load(dirs.0.join("missing")).unwrap_err();
    assert!(matches!(missing, Error::Unreadable { .. }), "{missing}");
    let empty = dirs.0.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    assert!(load(empty).unwrap().warnings()[0].contains("no such file"));
    let broken = load(dirs.site("broken", "\n\n<property>")).unwrap_err();
    assert!(matches!(broken, Error::Malformed { line: 3, .. }), "{broken:?}");
    let large = load(dirs.site("large", &" ".repeat(site::FILE_BYTES_MAX as usize))).unwrap_err();
    assert!(large.to_string().contains("more than 4 MiB"), "{large}");
    let directory = dirs.0.join("directory");
    std::fs::create_dir_all(directory.join(SITE_FILE)).unwrap();
    assert!(matches!(load(directory), Err(Error::Unreadable { .. })));
}

#[test]
fn all_ports_shift_by_the_offset() {
    let config =
        set(&["grampus.port.offset=100", "hbase.master.info.port=-1", "hbase.master.port=0"]).unwrap();
    assert_eq!((config.master_port, config.region_server_port, config.zookeeper_port), (0, 16120, 2281));
    assert_eq!((config.master_info_port, config.region_server_info_port), (None, Some(16130)));
    let config =
        set(&["grampus.port.offset=100", "hbase.rest.port=8080", "grampus.thrift2.port=9091"]).unwrap();
    assert_eq!((config.rest_port, config.thrift_port, config.thrift2_port), (Some(8180), None, Some(9191)));
    let cluster = set(&["grampus.port.offset=100", "hbase.cluster.distributed=true"]).unwrap();
    assert_eq!((cluster.master_port, cluster.zookeeper_port), (16100, 2181), "its ZooKeeper is not ours");
    let error = set(&["grampus.port.offset=60000"]).unwrap_err().to_string();
    assert!(error.contains("above 65535"), "{error}");
}

#[test]
fn one_of_the_pages_names_each_option() {
    let page = document() + &sinks_document();
    for option in OPTIONS {
        assert!(page.contains(&format!("### `{}`", option.key)), "{}", option.key);
        assert!(!option.doc.is_empty());
    }
    assert!(page.contains("* older key: `hbase.hstore.compactionThreshold`"));
}

#[test]
fn limits_are_set_or_derived() {
    let given = |arguments: &[&str]| {
        let mut sources = Sources::default();
        arguments.iter().for_each(|argument| sources.set(argument).unwrap());
        Config::load(&sources).unwrap()
    };
    let config = given(&["hbase.ipc.server.max.callqueue.length=300", "grampus.connections.max=7"]);
    assert_eq!((config.calls_max(), config.connections_max_of(20_000)), (Some(330), 7));
    let config = given(&["grampus.memory=1 GiB", "hbase.ipc.server.max.callqueue.size=1 MiB"]);
    let parts = config.memory_parts(1 << 40);
    assert_eq!((parts.total, parts.requests), (1 << 30, 1 << 20));
    assert!(parts.memstores + parts.cache + parts.requests + parts.responses < parts.total);
    assert_eq!(
        config.memory_parts(1 << 40).to_string(),
        "1024 MiB: memstores 409 MiB, block cache 409 MiB, requests 1 MiB, responses 68 MiB, other 135 MiB"
    );
}

fn started_with(pairs: &[(&str, &str)]) -> Result<Config, Error> {
    let overrides = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Config::load(&Sources { overrides, ..Sources::default() })
}

#[test]
fn a_key_that_promises_safety_stops_the_start_unless_it_is_named() {
    for entry in super::unsafe_keys::UNSAFE_KEYS {
        let key = entry.pattern.replace('*', "x");
        let Err(Error::Unsafe { lines }) = started_with(&[(&key, "kerberos")]) else {
            panic!("{key} is accepted");
        };
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(
            line.starts_with(&format!("{key} = 'kerberos' (command line): ")) && !line.contains('\n'),
            "{line}"
        );
        assert!(line.contains(&format!("grampus.unsafe.ignore.keys={key}")), "{line}");
        let ignored =
            started_with(&[(&key, "kerberos"), ("grampus.unsafe.ignore.keys", &format!("a, {key}"))]);
        let warnings = ignored.unwrap().warnings().join(" ");
        assert!(warnings.contains(&key) && warnings.contains("unsafe"), "{warnings}");
        for neutral in entry.neutral {
            started_with(&[(&key, neutral)]).unwrap();
        }
    }
}

#[test]
fn each_unsafe_key_has_a_line_of_its_own() {
    let refused = started_with(&[
        ("hbase.security.authorization", "true"),
        ("hbase.security.authentication", "kerberos"),
        ("hbase.ssl.enabled", "false"),
    ]);
    let text = refused.unwrap_err().to_string();
    let lines: Vec<&str> = text.split('\n').collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("hbase.security.authentication = 'kerberos'"), "{text}");
    assert!(lines[1].starts_with("grampus: hbase.security.authorization = 'true'"), "{text}");
}

#[test]
fn all_ports_together_leave_a_quarter_of_the_descriptors_to_files() {
    let config = Config::default();
    for files in [256, 1024, 4096, 20_000, 1 << 20] {
        let (pages, zookeeper) =
            (config.page_connections_max_of(files), config.zookeeper_connections_max_of(files));
        let all = u64::from(2 * pages + zookeeper + config.connections_max_of(files));
        assert!(all <= files - files / 4, "{all} of {files}");
    }
}
