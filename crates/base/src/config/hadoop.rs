//! The settings of Hadoop's own files, which HDFS clients need: `core-site.xml` and
//! `hdfs-site.xml`.
//!
//! As in HBase, from the weakest to the strongest source: these files in `HADOOP_CONF_DIR`, the
//! same files next to `hbase-site.xml`, and Hadoop's keys in `hbase-site.xml` or on the command
//! line.

use std::collections::BTreeMap;
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

/// Reads the settings. `layers` has those of `hbase-site.xml` and of the command line.
///
/// # Errors
/// [`Error::Malformed`] and [`Error::Unreadable`]; [`Error::Invalid`] for a variable without an
/// end.
pub(super) fn load(sources: &Sources, layers: &Layers) -> Result<HadoopSettings, Error> {
    let mut all = Layers::new(&sources.environment);
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
                all.insert(Setting { key: property.key, text: property.value, origin });
            }
        }
    }
    layers
        .given()
        .filter(|setting| is_hadoop_key(&setting.key))
        .for_each(|setting| all.insert(setting.clone()));
    let keys: Vec<String> = all.given().map(|setting| setting.key.clone()).collect();
    let value = |key: String| all.setting(&key, "").map(|setting| (key, setting.text));
    keys.into_iter().map(value).collect()
}
