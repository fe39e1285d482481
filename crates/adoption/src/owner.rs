//! Signs that a living HBase still uses a root directory.
//!
//! No sign is certain on its own. A process that was killed leaves its logs; a process that is idle
//! writes nothing. The operating system adds signs of its own, such as open files.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base::env::Env;
use cell::region::ServerName;
use fs::FileSystem;
use layout::RootDir;

use crate::scratch::walk;
use crate::{Progress, Result};

/// How long a connection to a server is attempted.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A sign of a living HBase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A log grew, or a log was added, while it was watched.
    GrowingLog {
        /// Its path.
        path: String,
    },
    /// A server that is recorded in the directory accepts connections.
    Listening {
        /// The server.
        server: ServerName,
    },
    /// A process has a file of the directory open.
    OpenFile {
        /// The process id.
        process: u32,
        /// The path of the file.
        path: String,
    },
    /// ZooKeeper has an entry that exists only while a server lives.
    Znode {
        /// Its path.
        path: String,
    },
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sign::GrowingLog { path } => write!(f, "log {path} changed while it was watched"),
            Sign::Listening { server } => {
                write!(f, "{}:{} accepts connections (recorded server {server})", server.host, server.port)
            }
            Sign::OpenFile { process, path } => write!(f, "process {process} has {path} open"),
            Sign::Znode { path } => write!(f, "ZooKeeper has {path}"),
        }
    }
}

/// The lengths and times of all logs.
type Logs = BTreeMap<String, (u64, u64)>;

async fn logs(fs: &dyn FileSystem, root: &RootDir) -> Result<Logs> {
    let mut logs = Logs::new();
    for dir in [root.wals_dir(), root.master_data().wals_dir()] {
        for (path, status) in walk(fs, &dir).await?.into_iter().filter(|(_, status)| !status.is_dir) {
            // The NameNode of HDFS does not know the length of a log that is being written.
            let len = fs.open(&path).await.map_or(status.len, |reader| reader.len());
            logs.insert(path.to_string(), (len, status.modified_ms));
        }
    }
    Ok(logs)
}

/// Watches the logs for a time, and reports those that changed.
///
/// # Errors
/// File system errors.
pub async fn growing_logs(
    env: &Env,
    fs: &dyn FileSystem,
    root: &RootDir,
    watch: Duration,
    progress: &dyn Progress,
) -> Result<Vec<Sign>> {
    let before = logs(fs, root).await?;
    let steps = watch.as_millis().div_ceil(100) as u64;
    progress.begin("watch logs for writes", steps);
    for _ in 0..steps {
        env.clock.sleep(watch / steps as u32).await;
        progress.advance(1);
    }
    let after = logs(fs, root).await?;
    let changed = after.into_iter().filter(|(path, status)| before.get(path) != Some(status));
    Ok(changed.map(|(path, _)| Sign::GrowingLog { path }).collect())
}

/// The servers whose logs are in the directory.
///
/// # Errors
/// File system errors.
pub async fn recorded_servers(fs: &dyn FileSystem, root: &RootDir) -> Result<Vec<ServerName>> {
    let mut servers = Vec::new();
    for dir in [root.wals_dir(), root.master_data().wals_dir()] {
        for entry in crate::scratch::list(fs, &dir).await? {
            let name = entry.name.trim_end_matches("-dead");
            servers.extend(RootDir::server_of_wal_dir(name).map(|(server, _)| server));
        }
    }
    servers.sort();
    servers.dedup();
    Ok(servers)
}

/// Those of the servers that accept connections.
pub async fn listening(env: &Env, servers: &[ServerName], progress: &dyn Progress) -> Vec<Sign> {
    progress.begin("connect to recorded servers", servers.len() as u64);
    let mut signs = Vec::new();
    let mut probed = BTreeMap::new();
    for server in servers {
        let address = (server.host.clone(), server.port);
        if let std::collections::btree_map::Entry::Vacant(entry) = probed.entry(address) {
            let connected = env.timeout(CONNECT_TIMEOUT, env.net.connect(&server.host, server.port)).await;
            let accepts = matches!(connected, Some(Ok(_)));
            entry.insert(accepts);
            signs.extend(accepts.then(|| Sign::Listening { server: server.clone() }));
        }
        progress.advance(1);
    }
    signs
}

/// The ephemeral entries of masters and region servers in ZooKeeper, below `parent`.
///
/// # Errors
/// One line that states why ZooKeeper cannot be read.
pub async fn znodes(
    env: &Env,
    quorum: &[(String, u16)],
    parent: &str,
) -> std::result::Result<Vec<Sign>, String> {
    let connected = zk::client::Client::connect(env, quorum, Duration::from_secs(10)).await;
    let mut client = connected.map_err(|error| error.to_string())?;
    let mut signs = Vec::new();
    let master = format!("{parent}/master");
    match client.get_data(&master).await {
        Ok(_) => signs.push(Sign::Znode { path: master }),
        Err(zk::client::Error::NoNode(_)) => {}
        Err(error) => return Err(error.to_string()),
    }
    for dir in ["rs", "backup-masters"] {
        let dir = format!("{parent}/{dir}");
        match client.get_children(&dir).await {
            Ok(names) => signs.extend(names.iter().map(|name| Sign::Znode { path: format!("{dir}/{name}") })),
            Err(zk::client::Error::NoNode(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    client.close().await;
    Ok(signs)
}
