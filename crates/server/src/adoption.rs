//! `grampus adopt` and `grampus release`: take over a root directory of HBase, and hand it back.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use ::adoption::inspection::Request;
use ::adoption::owner::{self, Sign};
use ::adoption::{Inspection, Release, Version};
use cell::schema::TableName;
use layout::ownership::Owner;

use crate::arguments::{AdoptArguments, ReleaseArguments};
use crate::directory::{Bar, Directory, Failure, REFUSED, exit_code, run};

/// The exit code if a living HBase may use the directory.
const OWNED: u8 = 4;

/// Runs `grampus adopt`.
pub fn adopt(arguments: &AdoptArguments) -> ExitCode {
    exit_code(run(&arguments.dir, &arguments.place, async |directory| {
        match (arguments.undo, arguments.check) {
            (true, _) => undo(&directory).await,
            (false, true) => check(&directory, arguments).await,
            (false, false) => take_over(&directory, arguments).await,
        }
    }))
}

/// Runs `grampus release`.
pub fn release(arguments: &ReleaseArguments) -> ExitCode {
    exit_code(run(&arguments.dir, &arguments.place, async |directory| hand_back(&directory, arguments).await))
}

impl Directory {
    /// Inspects the directory, which shows these signs of a living HBase.
    async fn inspect(
        &self,
        arguments: &AdoptArguments,
        signs: Vec<Sign>,
        bar: &Bar,
    ) -> Result<Inspection, Failure> {
        let request = Request { disabled: tables(&arguments.disable)? };
        let (env, fs, root) = (&self.env, &self.fs, &self.root);
        let mut inspection = ::adoption::inspect(env, fs, root, &request, bar).await?;
        inspection.signs = signs;
        bar.0.clear();
        Ok(inspection)
    }

    /// Signs that a living HBase uses the directory, unless it belongs to Grampus.
    async fn signs(&self, arguments: &AdoptArguments, bar: &Bar) -> Result<Vec<Sign>, Failure> {
        let (env, fs, root) = (&self.env, &*self.fs, &self.root);
        if self.owner().await? != Owner::HBase || arguments.ignore_owner {
            return Ok(Vec::new());
        }
        let mut signs = Vec::new();
        if let Some(dir) = self.local() {
            let open = os::open_files_below(dir).into_iter();
            signs.extend(
                open.map(|file| Sign::OpenFile {
                    process: file.process,
                    path: file.path.display().to_string(),
                }),
            );
        }
        if let Some(quorum) = &arguments.zookeeper {
            let servers = quorum_of(quorum)?;
            let found = owner::znodes(env, &servers, &arguments.znode).await;
            signs.extend(found.map_err(|error| {
                format!(
                    "cannot check ZooKeeper for servers of HBase: {error}; omit --zookeeper if it is stopped"
                )
            })?);
        }
        let servers = owner::recorded_servers(fs, root).await?;
        signs.extend(owner::listening(env, &servers, bar).await);
        let watch = Duration::from_secs(arguments.watch.max(1));
        signs.extend(owner::growing_logs(env, fs, root, watch, bar).await?);
        Ok(signs)
    }
}

fn tables(names: &[String]) -> Result<BTreeSet<TableName>, Failure> {
    let parse = |name: &String| {
        TableName::parse(name).map_err(|error| Failure::Failed(format!("--disable {name}: {error}")))
    };
    names.iter().map(parse).collect()
}

/// The servers of `host:port,...`; the port defaults to 2181.
fn quorum_of(text: &str) -> Result<Vec<(String, u16)>, Failure> {
    let server = |server: &str| match server.rsplit_once(':') {
        None => Ok((server.to_string(), 2181)),
        Some((host, port)) => match port.parse() {
            Ok(port) => Ok((host.to_string(), port)),
            Err(_) => Err(Failure::Failed(format!("--zookeeper {server}: expected HOST:PORT"))),
        },
    };
    text.split(',').map(str::trim).filter(|server| !server.is_empty()).map(server).collect()
}

/// The exit code of an inspection.
fn verdict(inspection: &Inspection) -> u8 {
    match (inspection.signs.is_empty(), inspection.has_blockers()) {
        (false, _) => OWNED,
        (true, true) => REFUSED,
        (true, false) => 0,
    }
}

fn print(inspection: &Inspection, directory: &Directory, as_json: bool) {
    match as_json {
        true => println!("{:#}", inspection.to_json(&directory.shown)),
        false => println!("directory       {}\n{inspection}", directory.shown),
    }
}

async fn check(directory: &Directory, arguments: &AdoptArguments) -> Result<u8, Failure> {
    let bar = Bar::default();
    let signs = directory.signs(arguments, &bar).await?;
    let inspection = directory.inspect(arguments, signs, &bar).await?;
    print(&inspection, directory, arguments.json);
    Ok(verdict(&inspection))
}

async fn take_over(directory: &Directory, arguments: &AdoptArguments) -> Result<u8, Failure> {
    let owner = directory.owner().await?;
    if !matches!(owner, Owner::HBase | Owner::Adopting) {
        return check(directory, arguments).await;
    }
    let lock = directory.lock()?;
    let bar = Bar::default();
    let signs = directory.signs(arguments, &bar).await?;
    if owner == Owner::HBase && signs.is_empty() {
        ::adoption::close_logs(&*directory.fs, &directory.root, &bar).await?;
    }
    let inspection = directory.inspect(arguments, signs, &bar).await?;
    // An interrupted adoption was checked before it began.
    if owner == Owner::HBase && verdict(&inspection) != 0 {
        if let Some(lock) = lock {
            lock.remove();
        }
        print(&inspection, directory, arguments.json);
        return Ok(verdict(&inspection));
    }
    ::adoption::adopt(&directory.env, &directory.fs, &directory.root, &inspection, &bar).await?;
    bar.0.clear();
    print(&inspection, directory, arguments.json);
    if !arguments.json {
        println!(
            "adopted: start Grampus on this directory, or undo this with `grampus adopt {} --undo`",
            directory.shown
        );
    }
    Ok(0)
}

async fn undo(directory: &Directory) -> Result<u8, Failure> {
    let lock = directory.lock()?;
    ::adoption::undo(&directory.fs, &directory.root).await?;
    if let Some(lock) = lock {
        lock.remove();
    }
    println!("rolled back: {} is a root directory of HBase again", directory.shown);
    Ok(0)
}

async fn hand_back(directory: &Directory, arguments: &ReleaseArguments) -> Result<u8, Failure> {
    let version = Version::parse(&arguments.to);
    let version = version.ok_or_else(|| format!("--to {}: expected 2.5, 2.6 or 3.0", arguments.to))?;
    let lock = directory.lock()?;
    let bar = Bar::default();
    let (env, fs, root) = (&directory.env, &directory.fs, &directory.root);
    let released = ::adoption::release(env, fs, root, Release { version }, &bar).await?;
    bar.0.clear();
    if let Some(lock) = lock {
        lock.remove();
    }
    println!("{released}");
    Ok(0)
}
