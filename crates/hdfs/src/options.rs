//! The root, user, settings and time limits of a file system.

use std::collections::HashMap;
use std::time::Duration;

const DEFAULT_PORT: u16 = 8020;
const DEFAULT_BLOCK_BYTES: u64 = 128 << 20;
/// Hadoop's default is 15 s, which is too long for a commit that waits for a new log.
const PAUSE_MAX_MS: u64 = 2000;
/// Hadoop's default is 60 s, which is too long for a client of the database.
const READ_TIMEOUT_MS: u64 = 5000;
/// For 0, which means no limit in Hadoop: a read must not wait permanently for a dead machine. This
/// is Hadoop's default.
const READ_TIMEOUT_UNLIMITED: Duration = Duration::from_secs(60);
/// Timers have this resolution.
const HEDGE_AFTER_MIN: Duration = Duration::from_millis(1);
/// Blocks are multiples of the range that a checksum covers.
const BLOCK_BYTES_UNIT: u64 = 512;
/// Hadoop's default for `fs.permissions.umask-mode`.
const DEFAULT_UMASK: u32 = 0o022;
/// What a value with a variable `${NAME}` that is not set must be.
const WITHOUT_VARIABLES: &str = "a value without unset variables";

/// Where a file system is, and with which settings it is used.
#[derive(Clone, Debug)]
pub struct HdfsOptions {
    /// The root directory: `hdfs://NAMESERVICE/PATH`, `hdfs://HOST/PATH` or
    /// `hdfs://HOST:PORT/PATH`.
    pub url: String,
    /// The user that owns new files.
    pub user: String,
    /// Settings by their names in `core-site.xml` and `hdfs-site.xml`, and the following of
    /// `hbase-site.xml`: `hbase.regionserver.hlog.replication` and
    /// `hbase.regionserver.hlog.blocksize`.
    pub settings: HashMap<String, String>,
    /// Time limits.
    pub limits: Limits,
    /// What to do if the root directory does not exist.
    pub if_missing: IfMissing,
}

/// What to do about a root directory that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// Create it.
    Create,
    /// Fail.
    Fail,
}

/// How long a file system waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the response of one NameNode, before the next one is tried.
    pub call: Duration,
    /// For any active NameNode that is not in safe mode.
    pub namenode: Duration,
    /// For the connection to a DataNode and its response to the setup of a block.
    pub setup: Duration,
    /// For DataNodes that can store a block of a log. Until then, attempts to set it up are
    /// repeated.
    pub log_setup: Duration,
    /// For the acknowledgement of a log's bytes by the first DataNode.
    pub log_ack: Duration,
    /// For the acknowledgement of a log's bytes by the other DataNodes, after that by the first
    /// one. After three failures for this reason within 10 seconds the limit is not applied for 10
    /// seconds.
    pub log_laggard: Duration,
    /// For the acknowledgement of the bytes of any other file.
    pub data_ack: Duration,
    /// For one attempt of a read of an erasure-coded file. That of another file has no limit while
    /// bytes arrive.
    pub read: Duration,
    /// For lease recovery.
    pub recovery: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            call: Duration::from_secs(5),
            namenode: Duration::from_secs(300),
            setup: Duration::from_secs(1),
            log_setup: Duration::from_secs(60),
            log_ack: Duration::from_secs(2),
            log_laggard: Duration::from_millis(300),
            data_ack: Duration::from_secs(30),
            read: Duration::from_secs(10),
            recovery: Duration::from_secs(900),
        }
    }
}

/// Why options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The URL is invalid.
    #[error("{url} is not a URL of the form hdfs://NAMESERVICE/PATH or hdfs://HOST:PORT/PATH")]
    Url {
        /// The URL.
        url: String,
    },
    /// A setting has an invalid value.
    #[error("{key} = {value} is invalid: {expected} is expected")]
    Value {
        /// Name of the setting.
        key: String,
        /// Its value.
        value: String,
        /// What its value must be.
        expected: &'static str,
    },
    /// The name service has a NameNode without an address.
    #[error("the name service {nameservice} has a NameNode {namenode}, but {key} is not set")]
    NoAddress {
        /// The name service.
        nameservice: String,
        /// The NameNode.
        namenode: String,
        /// Name of the missing setting.
        key: String,
    },
    /// The URL has a port although it names a name service.
    #[error("{url} has a port, but {nameservice} is a name service; use hdfs://{nameservice}/PATH")]
    Port {
        /// The URL.
        url: String,
        /// The name service.
        nameservice: String,
    },
    /// The cluster requires a feature that is not supported.
    #[error("{key} = {value} is not supported")]
    Unsupported {
        /// Name of the setting.
        key: String,
        /// Its value.
        value: String,
    },
}

/// Host and port of a NameNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The settings that this crate uses, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) namenodes: Vec<Address>,
    /// `hdfs://` and the authority of the URL.
    pub(crate) service: String,
    /// Absolute path of the root, without a slash at its end; empty for `/`.
    pub(crate) root: String,
    pub(crate) replication: u32,
    pub(crate) block_bytes: u64,
    pub(crate) log_replication: u32,
    pub(crate) log_block_bytes: u64,
    /// The bits that new files and directories do not have in their modes.
    pub(crate) umask: u32,
    /// Whether DataNodes are addressed by host name rather than by IP address.
    pub(crate) by_hostname: bool,
    /// How long a read waits for the next bytes of a DataNode.
    pub(crate) read_timeout: Duration,
    /// Time after which a read is sent to another replica too.
    pub(crate) hedge_after: Option<Duration>,
    /// Maximum number of these additional reads that run at the same time.
    pub(crate) hedges_max: usize,
    /// First and longest pause between two attempts to find the active NameNode.
    pub(crate) pause: Duration,
    pub(crate) pause_max: Duration,
}

impl Settings {
    pub(crate) fn parse(options: &HdfsOptions) -> Result<Settings, OptionsError> {
        let values = Values(&options.settings);
        values.reject_unsupported()?;
        let (authority, root) = split_url(&options.url)?;
        let replication = values.number("dfs.replication", 3)?;
        let block_bytes = values.size("dfs.blocksize", DEFAULT_BLOCK_BYTES)?;
        let hedges_max = values.number("dfs.client.hedged.read.threadpool.size", 0)? as usize;
        let hedge_after = values.millis("dfs.client.hedged.read.threshold.millis", 500)?;
        let read_timeout = values.millis("dfs.client.socket-timeout", READ_TIMEOUT_MS)?;
        Ok(Settings {
            namenodes: values.namenodes(authority, &options.url)?,
            service: format!("hdfs://{authority}"),
            root,
            replication: replication.max(1) as u32,
            block_bytes,
            log_replication: values.number("hbase.regionserver.hlog.replication", replication)?.max(1) as u32,
            log_block_bytes: values
                .size("hbase.regionserver.hlog.blocksize", block_bytes.saturating_mul(2))?,
            umask: values.umask()?,
            by_hostname: values.flag("dfs.client.use.datanode.hostname")?,
            read_timeout: if read_timeout.is_zero() { READ_TIMEOUT_UNLIMITED } else { read_timeout },
            hedge_after: (hedges_max > 0).then_some(hedge_after.max(HEDGE_AFTER_MIN)),
            hedges_max,
            pause: values.millis("dfs.client.failover.sleep.base.millis", 500)?,
            pause_max: values.millis("dfs.client.failover.sleep.max.millis", PAUSE_MAX_MS)?,
        })
    }
}

/// The authority and the path of a URL.
fn split_url(url: &str) -> Result<(&str, String), OptionsError> {
    let invalid = || OptionsError::Url { url: url.to_owned() };
    let rest = url.strip_prefix("hdfs://").ok_or_else(invalid)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let leaves_root = parts.iter().any(|part| matches!(*part, "." | ".."));
    if authority.is_empty() || leaves_root || authority.contains(['@', '?', '#']) {
        return Err(invalid());
    }
    Ok((authority, parts.iter().map(|part| format!("/{part}")).collect()))
}

/// The names of NameNodes in a value of `dfs.ha.namenodes.NAMESERVICE`.
pub(crate) fn namenode_names(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn parse_address(text: &str) -> Option<Address> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, DEFAULT_PORT),
    };
    (!host.is_empty()).then(|| Address { host: host.to_owned(), port })
}

/// The umask that permits the given bits, such as `u=rwx,g=rx,o=`. As in Hadoop, classes that are
/// not named have no permissions.
fn symbolic_umask(text: &str) -> Option<u32> {
    let mut permitted = 0;
    for clause in text.split(',') {
        let (classes, bits) = clause.trim().split_once(['=', '+'])?;
        let bits = bits.chars().try_fold(0, |bits, bit| Some(bits | (4 >> "rwx".find(bit)?)))?;
        let classes = if classes.is_empty() { "a" } else { classes };
        for class in classes.chars() {
            let shifts: &[u32] = match class {
                'u' => &[6],
                'g' => &[3],
                'o' => &[0],
                'a' => &[6, 3, 0],
                _ => return None,
            };
            permitted = shifts.iter().fold(permitted, |all, shift| (all & !(7 << shift)) | (bits << shift));
        }
    }
    Some(0o777 & !permitted)
}

/// Checks that a value has no variable that is not set. The configuration leaves these as they are,
/// because most of Hadoop's values are not used.
pub(crate) fn check_variables(key: &str, value: &str) -> Result<(), OptionsError> {
    match value.contains("${") {
        true => Err(invalid(key, value, WITHOUT_VARIABLES)),
        false => Ok(()),
    }
}

fn invalid(key: &str, value: &str, expected: &'static str) -> OptionsError {
    OptionsError::Value { key: key.to_owned(), value: value.to_owned(), expected }
}

struct Values<'a>(&'a HashMap<String, String>);

impl Values<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// A value of text.
    fn text(&self, key: &str) -> Result<Option<&str>, OptionsError> {
        let value = self.get(key);
        value.map_or(Ok(()), |value| check_variables(key, value))?;
        Ok(value)
    }

    fn flag(&self, key: &str) -> Result<bool, OptionsError> {
        Ok(self.text(key)?.is_some_and(|value| value.eq_ignore_ascii_case("true")))
    }

    /// The address of a NameNode, if it is set.
    fn address(&self, key: &str) -> Result<Option<Address>, OptionsError> {
        let Some(value) = self.text(key)? else { return Ok(None) };
        let address = parse_address(value);
        address.map(Some).ok_or_else(|| invalid(key, value, "HOST or HOST:PORT"))
    }

    fn parsed<T>(
        &self,
        key: &str,
        default: T,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, OptionsError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        parse(value).ok_or_else(|| invalid(key, value, expected))
    }

    fn number(&self, key: &str, default: u64) -> Result<u64, OptionsError> {
        self.parsed(key, default, "a number", |value| value.parse::<u32>().ok().map(u64::from))
    }

    fn millis(&self, key: &str, default: u64) -> Result<Duration, OptionsError> {
        self.number(key, default).map(Duration::from_millis)
    }

    fn umask(&self) -> Result<u32, OptionsError> {
        let expected = "an octal umask such as 022, or the permitted bits such as u=rwx,g=rx,o=";
        self.parsed("fs.permissions.umask-mode", DEFAULT_UMASK, expected, |value| {
            let octal = u32::from_str_radix(value, 8).ok().filter(|umask| *umask <= 0o777);
            octal.or_else(|| symbolic_umask(value))
        })
    }

    /// A number of bytes with an optional suffix `k`, `m`, `g` or `t`.
    fn size(&self, key: &str, default: u64) -> Result<u64, OptionsError> {
        let expected = "a number of bytes, optionally with a suffix k, m, g or t, that is a multiple of 512";
        let size = self.parsed(key, default, expected, |value| {
            let digits = value.trim_end_matches(|last: char| last.is_ascii_alphabetic());
            let shift = match value[digits.len()..].to_ascii_lowercase().as_str() {
                "" => 0,
                "k" => 10,
                "m" => 20,
                "g" => 30,
                "t" => 40,
                _ => return None,
            };
            let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
            (bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES_UNIT)).then_some(bytes)
        });
        size.map(|bytes| bytes.max(BLOCK_BYTES_UNIT))
    }

    fn reject_unsupported(&self) -> Result<(), OptionsError> {
        let unsupported = |key: &str| {
            let value = self.get(key).unwrap_or_default().to_owned();
            Err(OptionsError::Unsupported { key: key.to_owned(), value })
        };
        let authentication = "hadoop.security.authentication";
        if self.get(authentication).is_some_and(|value| !value.eq_ignore_ascii_case("simple")) {
            return unsupported(authentication);
        }
        if self.get("dfs.data.transfer.protection").is_some() {
            return unsupported("dfs.data.transfer.protection");
        }
        match self.flag("dfs.encrypt.data.transfer")? {
            true => unsupported("dfs.encrypt.data.transfer"),
            false => Ok(()),
        }
    }

    /// The addresses of all NameNodes of a name service, or the one in the URL.
    fn namenodes(&self, authority: &str, url: &str) -> Result<Vec<Address>, OptionsError> {
        let key = format!("dfs.ha.namenodes.{authority}");
        let Some(names) = self.text(&key)? else {
            self.reject_port_of_service(authority, url)?;
            // A name service with one NameNode has this setting.
            let single = self.address(&format!("dfs.namenode.rpc-address.{authority}"))?;
            let address = single.or_else(|| parse_address(authority));
            let invalid = || OptionsError::Url { url: url.to_owned() };
            return address.map(|address| vec![address]).ok_or_else(invalid);
        };
        let address_of = |name: &str| {
            let key = format!("dfs.namenode.rpc-address.{authority}.{name}");
            let (nameservice, namenode) = (authority.to_owned(), name.to_owned());
            let address = self.address(&key)?;
            address.ok_or(OptionsError::NoAddress { nameservice, namenode, key })
        };
        let addresses: Vec<Address> = namenode_names(names).map(address_of).collect::<Result<_, _>>()?;
        match addresses.is_empty() {
            true => Err(invalid(&key, names, "names of NameNodes, separated by commas")),
            false => Ok(addresses),
        }
    }

    /// As Hadoop does: the name of a name service is not that of a host.
    fn reject_port_of_service(&self, authority: &str, url: &str) -> Result<(), OptionsError> {
        let host = authority.rsplit_once(':').map(|(host, _)| host);
        match host.filter(|host| self.get(&format!("dfs.ha.namenodes.{host}")).is_some()) {
            Some(host) => Err(OptionsError::Port { url: url.to_owned(), nameservice: host.to_owned() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, settings: &[(&str, &str)]) -> Result<Settings, OptionsError> {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let limits = Limits::default();
        Settings::parse(&HdfsOptions {
            url: url.to_owned(),
            user: "u".to_owned(),
            settings,
            limits,
            if_missing: IfMissing::Create,
        })
    }

    fn addresses(settings: &Settings) -> Vec<String> {
        settings.namenodes.iter().map(|address| format!("{}:{}", address.host, address.port)).collect()
    }

    #[test]
    fn a_name_service_has_all_addresses_and_a_host_has_one() {
        let ha = [
            ("dfs.nameservices", "ns"),
            ("dfs.ha.namenodes.ns", "a, b"),
            ("dfs.namenode.rpc-address.ns.a", "one:8020"),
            ("dfs.namenode.rpc-address.ns.b", "two:9000"),
        ];
        let settings = parse("hdfs://ns//hbase/", &ha).unwrap();
        assert_eq!(addresses(&settings), ["one:8020", "two:9000"]);
        assert_eq!((settings.root.as_str(), settings.service.as_str()), ("/hbase", "hdfs://ns"));
        assert!(matches!(parse("hdfs://ns/x", &ha[..3]), Err(OptionsError::NoAddress { .. })));
        assert!(matches!(parse("hdfs://ns:8020/x", &ha), Err(OptionsError::Port { .. })));
        let empty = parse("hdfs://ns/x", &[("dfs.ha.namenodes.ns", " , ")]);
        assert!(matches!(empty, Err(OptionsError::Value { .. })));
        assert_eq!(addresses(&parse("hdfs://host:1/", &[]).unwrap()), ["host:1"]);
        assert_eq!(addresses(&parse("hdfs://host", &[]).unwrap()), ["host:8020"]);
        for url in ["file:///x", "hdfs:///x", "hdfs://host:port/x", "hdfs://host/../x"] {
            assert!(matches!(parse(url, &[]), Err(OptionsError::Url { .. })), "{url}");
        }
    }

    #[test]
    fn a_value_with_a_variable_that_is_not_set_is_refused() {
        let names = ("dfs.ha.namenodes.ns", "a");
        let address = "dfs.namenode.rpc-address.ns.a";
        for settings in [
            &[names, (address, "${nn.host}:8020")][..],
            &[names, (address, "host:${nn.port}")],
            &[names, (address, "host:port")],
            &[("dfs.ha.namenodes.ns", "${nn.names}")],
            &[("dfs.namenode.rpc-address.ns", "${nn.host}")],
            &[("dfs.client.use.datanode.hostname", "${by.name}")],
            &[("dfs.encrypt.data.transfer", "${encrypt}")],
            &[("dfs.replication", "${replicas}")],
        ] {
            let (key, value) = settings[settings.len() - 1];
            match parse("hdfs://ns/", settings) {
                Err(OptionsError::Value { key: at, value: given, .. }) => {
                    assert_eq!((&*at, &*given), (key, value))
                }
                other => panic!("{key} = {value}: {other:?}"),
            }
        }
        assert!(parse("hdfs://ns/", &[names, (address, "host"), ("dfs.unused", "${x}")]).is_ok());
    }

    #[test]
    fn settings_are_parsed_and_have_defaults() {
        let settings = parse("hdfs://h/", &[]).unwrap();
        assert_eq!((settings.replication, settings.log_replication), (3, 3));
        assert_eq!((settings.block_bytes, settings.log_block_bytes), (128 << 20, 256 << 20));
        assert_eq!((settings.umask, settings.hedge_after), (0o022, None));
        let set = [
            ("dfs.blocksize", "64m"),
            ("dfs.replication", "2"),
            ("hbase.regionserver.hlog.replication", "1"),
            ("fs.permissions.umask-mode", "077"),
            ("dfs.client.hedged.read.threadpool.size", "5"),
        ];
        let settings = parse("hdfs://h/", &set).unwrap();
        assert_eq!((settings.replication, settings.log_replication), (2, 1));
        assert_eq!((settings.block_bytes, settings.log_block_bytes), (64 << 20, 128 << 20));
        assert_eq!(settings.umask, 0o077);
        assert_eq!(settings.hedge_after, Some(Duration::from_millis(500)));
        for (key, value) in [("dfs.blocksize", "1000"), ("dfs.replication", "-1"), ("dfs.blocksize", "1q")] {
            assert!(
                matches!(parse("hdfs://h/", &[(key, value)]), Err(OptionsError::Value { .. })),
                "{value}"
            );
        }
    }

    #[test]
    fn a_read_without_a_time_limit_has_a_long_one() {
        let timeout =
            |value| parse("hdfs://h/", &[("dfs.client.socket-timeout", value)]).unwrap().read_timeout;
        assert_eq!(timeout("100"), Duration::from_millis(100));
        assert_eq!(timeout("0"), Duration::from_secs(60));
        assert_eq!(timeout(""), Duration::from_secs(5));
    }

    #[test]
    fn a_read_is_not_hedged_before_a_timer_can_end() {
        let hedge_after = |value| {
            let pool = ("dfs.client.hedged.read.threadpool.size", "5");
            let settings = [pool, ("dfs.client.hedged.read.threshold.millis", value)];
            parse("hdfs://h/", &settings).unwrap().hedge_after
        };
        assert_eq!(hedge_after("0"), Some(Duration::from_millis(1)));
        assert_eq!(hedge_after("2"), Some(Duration::from_millis(2)));
    }

    #[test]
    fn a_umask_is_octal_or_names_the_permitted_bits() {
        let umask = |value: &str| parse("hdfs://h/", &[("fs.permissions.umask-mode", value)]);
        let known = [
            ("027", 0o027),
            ("0002", 0o002),
            ("u=rwx,g=rx,o=", 0o027),
            ("u=rwx, g=rwx, o=rx", 0o002),
            ("a=rwx", 0),
            ("u+rwx", 0o077),
            ("go=r,u=rw", 0o133),
        ];
        for (value, expected) in known {
            assert_eq!(umask(value).unwrap().umask, expected, "{value}");
        }
        for value in ["1777", "8", "u=z", "x=r", "rwx", "-1"] {
            assert!(matches!(umask(value), Err(OptionsError::Value { .. })), "{value}");
        }
    }

    #[test]
    fn unsupported_security_is_rejected() {
        for (key, value) in [
            ("hadoop.security.authentication", "kerberos"),
            ("dfs.data.transfer.protection", "privacy"),
            ("dfs.encrypt.data.transfer", "true"),
        ] {
            assert!(matches!(parse("hdfs://h/", &[(key, value)]), Err(OptionsError::Unsupported { .. })));
        }
        assert!(parse("hdfs://h/", &[("hadoop.security.authentication", "SIMPLE")]).is_ok());
    }
}
