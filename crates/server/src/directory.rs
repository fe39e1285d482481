//! A root directory that a command reads or changes while no server runs.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ::adoption::{Error, Progress};
use base::config::{Config, RootUri};
use base::env::Env;
use cli::StageBar;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use layout::ownership::Owner;
use os::Runtimes;

use crate::arguments::{PlaceArguments, ServerArguments};
use crate::data::{lock_alone, lock_unchanged, open_files};
use crate::lock::DirectoryLock;
use crate::standalone::load_config;

/// The exit code if something in the directory prevents the operation.
pub const REFUSED: u8 = 3;

/// Shows progress on the terminal.
#[derive(Default)]
pub struct Bar(pub StageBar);

impl Progress for Bar {
    fn begin(&self, stage: &str, total: u64) {
        self.0.begin(stage, total);
    }

    fn advance(&self, units: u64) {
        self.0.advance(units);
    }
}

/// Why a command failed.
pub enum Failure {
    /// Something failed.
    Failed(String),
    /// The directory is not in a state in which this is possible.
    Refused(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Refused(reason) => Failure::Refused(reason),
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Failed(message)
    }
}

/// The exit code of a command. Prints why it failed.
pub fn exit_code(outcome: Result<u8, Failure>) -> ExitCode {
    let (message, code) = match outcome {
        Ok(code) => return ExitCode::from(code),
        Err(Failure::Failed(message)) => (message, 1),
        Err(Failure::Refused(reason)) => (reason, REFUSED),
    };
    eprintln!("grampus: {message}");
    ExitCode::from(code)
}

/// The directory of a command.
pub struct Directory {
    pub env: Env,
    config: Config,
    /// The file system whose root is the directory.
    pub fs: Arc<dyn FileSystem>,
    pub root: RootDir,
    /// The directory in messages.
    pub shown: String,
}

/// Opens the file system of a directory, and runs a command.
pub fn run(
    dir: &str,
    place: &PlaceArguments,
    command: impl AsyncFnOnce(Directory) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let arguments = ServerArguments {
        data: Some(dir.into()),
        config: place.config.clone(),
        overrides: place.overrides.clone(),
        ..ServerArguments::default()
    };
    let config = load_config(&arguments)?;
    let runtimes = Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    os::raise_open_files();
    let env = os::env(Arc::new(runtimes));
    os::block_on(async {
        if config.wal_dir.is_some() {
            let reason = "hbase.wal.dir is set: directories whose logs are elsewhere are not supported here";
            return Err(Failure::Refused(reason.into()));
        }
        let fs = open_files(&env, &config).await?;
        let (root, shown) = (RootDir::new(FilePath::root()), config.root.to_string());
        command(Directory { env, config, fs, root, shown }).await
    })
}

impl Directory {
    /// The directory of this machine, if it is one.
    pub fn local(&self) -> Option<&Path> {
        match &self.config.root {
            RootUri::Local(dir) => Some(dir),
            RootUri::Other { .. } => None,
        }
    }

    /// Locks a local directory, so that no server of Grampus uses it. HDFS has no such lock.
    pub fn lock(&self) -> Result<Option<DirectoryLock>, Failure> {
        self.local().map(|dir| lock_alone(dir, &self.root)).transpose().map_err(Failure::Refused)
    }

    /// The same for a command that changes nothing: a missing lock file is not created.
    pub fn lock_unchanged(&self) -> Result<Option<DirectoryLock>, Failure> {
        let lock = self.local().map(|dir| lock_unchanged(dir, &self.root)).transpose();
        lock.map(Option::flatten).map_err(Failure::Refused)
    }

    /// Which program owns it.
    pub async fn owner(&self) -> Result<Owner, Failure> {
        Ok(self.root.owner(&*self.fs).await.map_err(Error::from)?)
    }
}
