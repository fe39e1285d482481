//! The settings of Hadoop's own files, which HDFS clients need: `core-site.xml` and
//! `hdfs-site.xml`.
//!
//! As in HBase, from the weakest to the strongest source: these files in `HADOOP_CONF_DIR`, the
//! same files next to `hbase-site.xml`, and Hadoop's keys in `hbase-site.xml` or on the command
//! line. A final value of a file is replaced only on the command line.
//!
//! Hadoop has many keys that this server does not use. So a name that is not set, which is an error
//! in the value of an option, stays in a value of Hadoop, as it does there. The client refuses
//! such a value of a key that it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::layers::{Layers, Origin, Setting};
use super::{Error, Sources, read_site, site};

const FILES: [&str; 2] = ["core-site.xml", "hdfs-site.xml"];
/// The environment variable with the directory of Hadoop's files.
const DIRECTORY_VARIABLE: &str = "HADOOP_CONF_DIR";
/// Environment variables with the user, the strongest first.
const USER_VARIABLES: [&str; 3] = ["HADOOP_USER_NAME", "USER", "LOGNAME"];
/// The user if no variable names one.
const DEFAULT_USER: &str = "hbase";
/// Keys of Hadoop, and HBase's own for its files on HDFS.
const PREFIXES: [&str; 5] = ["dfs.", "fs.", "hadoop.", "ipc.", "hbase.regionserver.hlog."];

/// The settings for an HDFS client, by key.
pub type HadoopSettings = BTreeMap<String, String>;

/// Whether a key that is not an option is Hadoop's.
pub(super) fn is_hadoop_key(key: &str) -> bool {
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The user of HDFS: `HADOOP_USER_NAME`, else the user of the process.
pub(super) fn user(sources: &Sources) -> String {
    let variable = |name: &str| {
        let found = sources.environment.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    let user = USER_VARIABLES.iter().find_map(|name| variable(name));
    user.unwrap_or_else(|| DEFAULT_USER.to_owned())
}

/// The environment for the replacement of `${user.name}`. A Java process knows its user without a
/// variable.
fn environment(sources: &Sources) -> Vec<(String, String)> {
    let mut environment = sources.environment.clone();
    if !environment.iter().any(|(name, _)| name == "USER") {
        environment.push(("USER".to_owned(), user(sources)));
    }
    environment
}

/// The values of the sources that were read so far.
struct Merged {
    values: Layers,
    finals: BTreeSet<String>,
}

impl Merged {
    /// Adds a value that is stronger than the earlier ones.
    fn add(&mut self, setting: Setting, is_final: bool) {
        let is_file = matches!(setting.origin, Origin::File(_));
        if is_file && self.finals.contains(&setting.key) {
            // A directory may be given twice.
            if !self.values.given().any(|given| given.key == setting.key && given.text == setting.text) {
                let Setting { key, origin, .. } = setting;
                self.values.warnings.push(format!("{key} ({origin}): already final, ignored"));
            }
            return;
        }
        if is_final {
            self.finals.insert(setting.key.clone());
        }
        self.values.insert(setting);
    }
}

/// Reads the settings. `layers` has those of `hbase-site.xml` and of the command line, and gets the
/// warnings.
///
/// # Errors
/// [`Error::Malformed`] and [`Error::Unreadable`].
pub(super) fn load(sources: &Sources, layers: &mut Layers) -> Result<HadoopSettings, Error> {
    let mut all = Merged { values: Layers::new(&environment(sources)), finals: BTreeSet::new() };
    let shared = sources.environment.iter().find(|(name, _)| name == DIRECTORY_VARIABLE);
    let shared = shared.map(|(_, directory)| PathBuf::from(directory));
    for directory in shared.iter().chain(&sources.directories) {
        for file in FILES {
            let path = directory.join(file);
            let Some(text) = read_site(directory, &path)? else { continue };
            let malformed =
                |site::Malformed { line, what }| Error::Malformed { path: path.clone(), line, what };
            for property in site::parse(&text).map_err(malformed)? {
                let origin = Origin::File(path.clone());
                let setting = Setting { key: property.key, text: property.value, origin };
                all.add(setting, property.is_final);
            }
        }
    }
    layers
        .given()
        .filter(|setting| is_hadoop_key(&setting.key))
        .for_each(|setting| all.add(setting.clone(), false));
    layers.warnings.append(&mut all.values.warnings);
    let text = |given: &Setting| match all.values.setting(&given.key, "") {
        Ok(setting) => setting.text,
        Err(_) => given.text.trim().to_owned(),
    };
    Ok(all.values.given().map(|given| (given.key.clone(), text(given))).collect())
}
