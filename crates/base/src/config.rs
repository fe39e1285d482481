//! Options: declared once ([`OPTIONS`], in the order of `docs/config.md`), read from the places
//! that HBase users know.
//!
//! From the weakest to the strongest source: the default, `hbase-site.xml` of each given directory
//! (a later file overrides an earlier one, except `final` properties), environment variables
//! `GRAMPUS_…`, `--set` on the command line. Keys are HBase's where HBase has one, and a plain
//! number has HBase's unit. Invariants:
//!
//! * an unknown key is a warning, because a cluster's file has many keys that mean nothing here. It
//!   is an error if the key [promises safety](unsafe_keys) or locates data;
//! * an invalid value of a known key is an error that names key, value and source;
//! * input is bounded and includes no other files.
//!
//! Elsewhere: command-line flags (`server`), and when a file is read.

mod cache_files;
mod declare;
mod document;
mod hadoop;
mod layers;
mod options;
mod root_uri;
mod site;
mod substitute;
mod superseded;
mod unsafe_keys;
mod value;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use cache_files::CacheFiles;
pub use declare::OptionInfo;
pub use document::{document, sinks_document, variable_of};
pub use hadoop::HadoopSettings;
pub use layers::{Origin, Setting};
pub use options::{Config, MemoryParts, OPTIONS};
pub use root_uri::RootUri;
pub use value::{Checksum, MemoryShare, MobCompactionKind, parse_bytes, parse_millis};

use layers::Layers;

/// The key that enables the second level of the block cache.
const CACHE_FILES: &str = "hbase.bucketcache.ioengine";
const SITE_FILE: &str = "hbase-site.xml";
const VARIABLE_PREFIX: &str = "GRAMPUS_";
// Source: HBase `HeapMemorySizeUtil`: a fifth of the memory is left for everything else.
const MEMSTORES_AND_CACHE_MAX: f64 = 0.8;

/// A configuration error; each is one line for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A given file or directory cannot be read.
    #[error("cannot read {}: {message}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The system's message.
        message: String,
    },
    /// A file is not a valid configuration.
    #[error("{}:{line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line of the error, starting at 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// An option's value is invalid or unsupported.
    #[error("{key} = '{value}' ({origin}): {reason}")]
    Invalid {
        /// The option.
        key: String,
        /// Its value, shortened if long.
        value: String,
        /// Source of the value.
        origin: Origin,
        /// The expected value.
        reason: String,
    },
    /// Keys that promise safety or locate data, which this server does not support.
    #[error("{}", lines.join("\ngrampus: "))]
    Unsafe {
        /// One line per key.
        lines: Vec<String>,
    },
    /// An argument of `--set` has no `=`.
    #[error("--set {argument}: expected key=value")]
    NoValue {
        /// The argument.
        argument: String,
    },
}

/// The sources of option values.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Directories with an `hbase-site.xml`, the strongest last.
    pub directories: Vec<PathBuf>,
    /// Keys and values of `--set` on the command line.
    pub overrides: Vec<(String, String)>,
    /// The process's environment: variables `GRAMPUS_…`, and all others for `${env.…}`.
    pub environment: Vec<(String, String)>,
    /// Names of `GRAMPUS_…` variables with another purpose, which cause no warning.
    pub other_variables: Vec<String>,
}

impl Sources {
    /// The environment of this process as the only source. Variables that are not UTF-8 are
    /// skipped.
    pub fn of_process() -> Sources {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Sources { environment: std::env::vars_os().filter_map(text).collect(), ..Sources::default() }
    }

    /// Adds a `key=value` argument of the command line.
    ///
    /// # Errors
    /// [`Error::NoValue`] if the argument has no key or no `=`.
    pub fn set(&mut self, argument: &str) -> Result<(), Error> {
        match argument.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                self.overrides.push((key.trim().to_owned(), value.to_owned()));
                Ok(())
            }
            _ => Err(Error::NoValue { argument: argument.to_owned() }),
        }
    }
}

impl Config {
    /// Reads the options from `sources`. Blocks; meant for process start.
    ///
    /// # Errors
    /// Any of [`Error`]. An unknown key is not an error, see [`Config::warnings`].
    pub fn load(sources: &Sources) -> Result<Config, Error> {
        let mut layers = Layers::new(&sources.environment);
        add_sites(&mut layers, &sources.directories)?;
        add_environment(&mut layers, sources);
        layers.add(sources.overrides.clone(), |_| Origin::CommandLine);
        let mut config = Config::parse(&layers)?;
        layers.check_unsafe_keys(&options::list_of(&config.unsafe_ignored))?;
        if [Some(&config.root), config.wal_dir.as_ref()].into_iter().flatten().any(RootUri::is_remote) {
            config.hadoop = hadoop::load(sources, &mut layers)?;
        }
        config.hadoop_user = hadoop::user(sources);
        config.warnings = layers.warnings;
        config.warn_of_unused_cache_keys();
        config.check()?;
        config.shift_ports()?;
        Ok(config)
    }

    /// Warnings for the operator: unknown keys, missing files.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Hadoop's settings; none if all directories are local.
    pub fn hadoop(&self) -> &HadoopSettings {
        &self.hadoop
    }

    /// The user that owns files on HDFS: `HADOOP_USER_NAME`, or that of the process.
    pub fn hadoop_user(&self) -> &str {
        &self.hadoop_user
    }

    /// Every effective option with its value as given and its source, in the order of [`OPTIONS`].
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The error for an option that was parsed but rejected later by the code that uses it.
    ///
    /// # Panics
    /// If the option does not exist.
    pub fn refused(&self, key: &str, reason: String) -> Error {
        let setting = self.settings.iter().find(|setting| setting.key == key);
        setting.expect("every option has a setting").refused(reason)
    }

    // Checks that involve several options.
    fn check(&self) -> Result<(), Error> {
        let sum = self.memstore_fraction + self.block_cache_fraction;
        // Tolerance, because 0.4 + 0.4 is not exactly 0.8 in binary.
        if sum > MEMSTORES_AND_CACHE_MAX + 1e-6 {
            let reason = format!(
                "together with hbase.regionserver.global.memstore.size ({}) more than {MEMSTORES_AND_CACHE_MAX} of the memory",
                self.memstore_fraction
            );
            return Err(self.refused("hfile.block.cache.size", reason));
        }
        if self.compaction_files_max < self.compaction_files_min {
            let reason = format!("less than hbase.hstore.compaction.min ({})", self.compaction_files_min);
            return Err(self.refused("hbase.hstore.compaction.max", reason));
        }
        if !self.cache_files.paths().is_empty() && self.cache_file_bytes.is_none() {
            let reason = "needs hbase.bucketcache.size, the size of the files in MiB".to_owned();
            return Err(self.refused(CACHE_FILES, reason));
        }
        Ok(())
    }

    /// Without files, HBase's keys of the second level of the block cache have no effect.
    fn warn_of_unused_cache_keys(&mut self) {
        if !self.cache_files.paths().is_empty() {
            return;
        }
        let keys = [CACHE_FILES, "hbase.bucketcache.size", "hbase.bucketcache.persistent.path"];
        let is_given = |setting: &&Setting| {
            keys.contains(&setting.key.as_str())
                && setting.origin != Origin::Default
                && !setting.text.is_empty()
        };
        for Setting { key, origin, .. } in self.settings.iter().filter(is_given) {
            self.warnings.push(format!("{key} ({origin}): {}", superseded::CACHE));
        }
    }

    fn shift_ports(&mut self) -> Result<(), Error> {
        // The ZooKeeper servers of a cluster are other processes.
        let own_zookeeper_port = (!self.is_distributed).then_some(&mut self.zookeeper_port);
        let ports =
            [&mut self.master_port, &mut self.region_server_port].into_iter().chain(own_zookeeper_port);
        let optional_ports = [
            &mut self.master_info_port,
            &mut self.region_server_info_port,
            &mut self.rest_port,
            &mut self.thrift_port,
            &mut self.thrift2_port,
        ];
        let ports = ports.chain(optional_ports.into_iter().flatten());
        let mut too_high = None;
        // Port 0 stays: the system chooses a free port.
        for port in ports.filter(|port| **port != 0) {
            match port.checked_add(self.port_offset) {
                Some(shifted) => *port = shifted,
                None => _ = too_high.get_or_insert(*port),
            }
        }
        let Some(port) = too_high else { return Ok(()) };
        Err(self.refused("grampus.port.offset", format!("port {port} would be above 65535")))
    }
}

impl Default for Config {
    /// Every option with its default value.
    fn default() -> Config {
        Config::load(&Sources::default()).expect("a test checks that the defaults are valid")
    }
}

fn add_sites(layers: &mut Layers, directories: &[PathBuf]) -> Result<(), Error> {
    let mut finals: Vec<(String, String)> = Vec::new();
    for directory in directories {
        let path = directory.join(SITE_FILE);
        let Some(text) = read_site(directory, &path)? else {
            layers.warnings.push(format!("{}: no such file, ignored", path.display()));
            continue;
        };
        let malformed = |site::Malformed { line, what }| Error::Malformed { path: path.clone(), line, what };
        let mut given = Vec::new();
        for property in site::parse(&text).map_err(malformed)? {
            match finals.iter().find(|(key, _)| *key == property.key) {
                Some((_, value)) if *value == property.value => {}
                Some((key, _)) => {
                    layers.warnings.push(format!("{key} ({}): already final, ignored", path.display()));
                }
                None => {
                    if property.is_final {
                        finals.push((property.key.clone(), property.value.clone()));
                    }
                    given.push((property.key, property.value));
                }
            }
        }
        layers.add(given, |_| Origin::File(path.clone()));
    }
    Ok(())
}

// The text of a file, or `None` if the directory has no such file.
//
// Read directly and not through a FileSystem: there is no environment yet, and the file is not
// application data.
#[allow(clippy::disallowed_methods)]
fn read_site(directory: &Path, path: &Path) -> Result<Option<String>, Error> {
    let unreadable = |path: &Path, message: String| Error::Unreadable { path: path.to_owned(), message };
    std::fs::read_dir(directory).map_err(|error| unreadable(directory, error.to_string()))?;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error.to_string())),
    };
    let mut bytes = Vec::new();
    file.take(site::FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, error.to_string()))?;
    if bytes.len() as u64 > site::FILE_BYTES_MAX {
        return Err(unreadable(path, format!("more than {} MiB", site::FILE_BYTES_MAX >> 20)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unreadable(path, "not UTF-8".to_owned()))
}

fn add_environment(layers: &mut Layers, sources: &Sources) {
    let mut given = Vec::new();
    for (name, value) in &sources.environment {
        if !name.starts_with(VARIABLE_PREFIX) || sources.other_variables.contains(name) {
            continue;
        }
        let keys = OPTIONS.iter().flat_map(|option| std::iter::once(&option.key).chain(option.aliases));
        match keys.into_iter().find(|key| variable_of(key) == *name) {
            Some(key) => given.push(((*key).to_owned(), value.clone())),
            None => {
                layers.warnings.push(format!("environment variable {name}: not a Grampus option, ignored"))
            }
        }
    }
    layers.add(given, |key| Origin::Variable(variable_of(key)));
}

#[cfg(test)]
mod tests;
