//! Options: declared once ([`OPTIONS`], in the order of `docs/config.md`), read from where HBase's users keep them.
//!
//! From the weakest to the strongest: the default, `hbase-site.xml` of each directory given (a later one over an
//! earlier, but for what is `final`), environment variables `GRAMPUS_…`, the command line's `--set`. Keys are HBase's
//! where HBase has one, and a plain number means what HBase means by it. Invariants:
//!
//! * an unknown key is a warning: a cluster's file has many that mean nothing here. It is an error if it
//!   [promises safety](unsafe_keys) or says where data is;
//! * a known key with a value that cannot be meant is an error that names key, value and source;
//! * what is read is bounded, and reads no other file.
//!
//! Not here: flags of the command line (`server`), when a file is read.

mod declare;
mod document;
mod layers;
mod options;
mod site;
mod substitute;
mod superseded;
mod unsafe_keys;
mod value;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use declare::OptionInfo;
pub use document::{document, variable_of};
pub use layers::{Origin, Setting};
pub use options::{Config, MemoryParts, OPTIONS};
pub use value::{Checksum, RateLimiter, Share};

use layers::Layers;

const SITE_FILE: &str = "hbase-site.xml";
const VARIABLE_PREFIX: &str = "GRAMPUS_";
// Source: HBase `HeapMemorySizeUtil`: a fifth of the memory stays for everything else.
const MEMSTORES_AND_CACHE_MAX: f64 = 0.8;

/// Why there is no configuration; each is one line for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file or directory that was named cannot be read.
    #[error("cannot read {}: {message}", path.display())]
    Unreadable {
        /// What was to be read.
        path: PathBuf,
        /// The system's words.
        message: String,
    },
    /// A file is no configuration.
    #[error("{}:{line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where it was noticed.
        line: usize,
        /// What was noticed.
        what: String,
    },
    /// An option has a value that cannot be meant or is not supported.
    #[error("{key} = '{value}' ({origin}): {reason}")]
    Invalid {
        /// The option.
        key: String,
        /// Its value, shortened if long.
        value: String,
        /// Where it was given.
        origin: Origin,
        /// What was expected instead.
        reason: String,
    },
    /// Keys that promise safety, or say where data is, are not honoured here.
    #[error("{}", lines.join("\ngrampus: "))]
    Unsafe {
        /// A line for each.
        lines: Vec<String>,
    },
    /// An argument of `--set` has no `=`.
    #[error("--set {argument}: expected key=value")]
    NoValue {
        /// The argument.
        argument: String,
    },
}

/// Where options are given.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Directories with an `hbase-site.xml`, the strongest last.
    pub directories: Vec<PathBuf>,
    /// Keys and values of the command line.
    pub overrides: Vec<(String, String)>,
    /// The process's environment: variables `GRAMPUS_…`, and all others for `${env.…}`.
    pub environment: Vec<(String, String)>,
    /// Names of variables `GRAMPUS_…` that mean something else, so that nobody is warned of them.
    pub other_variables: Vec<String>,
}

impl Sources {
    /// The environment of this process, and nothing else. Variables that are no text are left out.
    pub fn of_process() -> Sources {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Sources { environment: std::env::vars_os().filter_map(text).collect(), ..Sources::default() }
    }

    /// Adds an argument `key=value` of the command line.
    ///
    /// # Errors
    /// [`Error::NoValue`] if it is none.
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
    /// Reads the options from `sources`. Blocks; for the start of a process.
    ///
    /// # Errors
    /// Any of [`Error`]; an unknown key is none, see [`Config::warnings`].
    pub fn load(sources: &Sources) -> Result<Config, Error> {
        let mut layers = Layers::new(&sources.environment);
        add_sites(&mut layers, &sources.directories)?;
        add_environment(&mut layers, sources);
        layers.add(sources.overrides.clone(), |_| Origin::CommandLine);
        let mut config = Config::parse(&layers)?;
        layers.check_promises(&options::list_of(&config.unsafe_ignored))?;
        config.warnings = layers.warnings;
        config.check()?;
        config.shift_ports()?;
        Ok(config)
    }

    /// What is worth telling the person who started the server: unknown keys, files that are missing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Every option in force with its value as given and where it comes from, in the order of [`OPTIONS`].
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The error for an option whose value only its user can judge.
    ///
    /// # Panics
    /// If there is no such option.
    pub fn refused(&self, key: &str, reason: String) -> Error {
        let setting = self.settings.iter().find(|setting| setting.key == key);
        setting.expect("every option has a setting").refused(reason)
    }

    // What no option can check by itself.
    fn check(&self) -> Result<(), Error> {
        let sum = self.memstore_fraction + self.block_cache_fraction;
        // A little above, since 0.4 + 0.4 is not 0.8 in binary.
        if sum > MEMSTORES_AND_CACHE_MAX + 1e-6 {
            let reason = format!(
                "with {} of hbase.regionserver.global.memstore.size more than {MEMSTORES_AND_CACHE_MAX} of the memory",
                self.memstore_fraction
            );
            return Err(self.refused("hfile.block.cache.size", reason));
        }
        if self.compaction_files_max < self.compaction_files_min {
            let reason = format!("less than {} of hbase.hstore.compaction.min", self.compaction_files_min);
            return Err(self.refused("hbase.hstore.compaction.max", reason));
        }
        Ok(())
    }

    fn shift_ports(&mut self) -> Result<(), Error> {
        let offset = self.port_offset;
        let error =
            |port: u16| self.refused("grampus.port.offset", format!("port {port} would be above 65535"));
        let shifted = |port: u16| match port {
            0 => Ok(0),
            port => port.checked_add(offset).ok_or_else(|| error(port)),
        };
        let (master, region_server) = (shifted(self.master_port)?, shifted(self.region_server_port)?);
        let zookeeper = shifted(self.zookeeper_port)?;
        let master_info = self.master_info_port.map(&shifted).transpose()?;
        let region_server_info = self.region_server_info_port.map(&shifted).transpose()?;
        (self.master_port, self.region_server_port, self.zookeeper_port) = (master, region_server, zookeeper);
        (self.master_info_port, self.region_server_info_port) = (master_info, region_server_info);
        Ok(())
    }
}

impl Default for Config {
    /// Every option at its default.
    fn default() -> Config {
        Config::load(&Sources::default()).expect("the defaults are valid, as a test holds")
    }
}

fn add_sites(layers: &mut Layers, directories: &[PathBuf]) -> Result<(), Error> {
    let mut finals: Vec<(String, String)> = Vec::new();
    for directory in directories {
        let path = directory.join(SITE_FILE);
        let Some(text) = read_site(directory, &path)? else {
            layers.warnings.push(format!("{}: no such file, so it sets nothing", path.display()));
            continue;
        };
        let malformed = |site::Malformed { line, what }| Error::Malformed { path: path.clone(), line, what };
        let mut given = Vec::new();
        for property in site::parse(&text).map_err(malformed)? {
            match finals.iter().find(|(key, _)| *key == property.key) {
                Some((_, value)) if *value == property.value => {}
                Some((key, _)) => {
                    layers.warnings.push(format!("{key} ({}): final already, ignored", path.display()));
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
// Read directly and not through a FileSystem: this comes before there is an environment, and is no data of ours.
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
                layers.warnings.push(format!("environment variable {name}: not known to Grampus, ignored"))
            }
        }
    }
    layers.add(given, |key| Origin::Variable(variable_of(key)));
}

#[cfg(test)]
mod tests;
