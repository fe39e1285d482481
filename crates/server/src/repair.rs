//! `grampus repair meta` and `grampus repair master`: repair a data directory whose server cannot
//! start.
//!
//! Both lock the directory, so they fail while a server uses it. The files that they replace are
//! kept in `corrupt/`.

use std::sync::Arc;

use cell::region::ServerName;
use engine::recovery::other_servers_log_dirs;
use master::procedure::journal::Journal;
use master::rebuild;
use master::store::MasterStore;
use os::Runtimes;

use crate::arguments::ServerArguments;
use crate::data::DataDirectory;
use crate::standalone::load_config;

/// Rebuilds `hbase:meta` from the region directories and prints the result.
///
/// # Errors
/// One line that states why it cannot be rebuilt.
pub fn meta(arguments: &ServerArguments) -> Result<(), String> {
    let (env, config) = prepare(arguments)?;
    os::block_on(async {
        let data = DataDirectory::open_existing(&env, &config).await?;
        let rebuilt = rebuild::rebuild_meta(&env, &data.fs, &data.root).await;
        let rebuilt = rebuilt.map_err(|error| format!("cannot rebuild hbase:meta: {error}"))?;
        println!("{rebuilt}");
        Ok(())
    })
}

/// Moves a damaged `master:store` aside, so that the next start creates an empty one. A readable
/// one is not changed.
///
/// # Errors
/// One line that states why it cannot be moved.
pub fn master(arguments: &ServerArguments) -> Result<(), String> {
    let (env, config) = prepare(arguments)?;
    os::block_on(async {
        let data = DataDirectory::open_existing(&env, &config).await?;
        let failed = |error: &dyn std::fmt::Display| format!("cannot repair master:store: {error}");
        let damage = match count_stored_procedures(&env, &data).await {
            Ok(procedures) => {
                println!("master:store is readable ({procedures} procedures): nothing is changed");
                return Ok(());
            }
            Err(damage) => damage,
        };
        let (fs, root) = (&data.fs, &data.root);
        let from = root.master_data();
        let to = root.corrupt_dir().join(&format!("MasterData-{}", env.clock.now_ms()));
        fs.make_dirs(&root.corrupt_dir()).await.map_err(|error| failed(&error))?;
        fs.rename(from.path(), &to).await.map_err(|error| failed(&error))?;
        fs.sync_dir(&root.corrupt_dir()).await.map_err(|error| failed(&error))?;
        fs.sync_dir(root.path()).await.map_err(|error| failed(&error))?;
        println!("master:store cannot be read: {damage}");
        println!("old files kept in {to}; the next start creates an empty master:store");
        println!("(a cluster then replays all logs first, because the files named the servers to recover)");
        println!(
            "lost: procedures in progress, for example the creation, change or split of a table (repeat them),"
        );
        println!("and the switches for splits and merges, which are on again");
        Ok(())
    })
}

fn prepare(arguments: &ServerArguments) -> Result<(base::env::Env, base::config::Config), String> {
    let config = load_config(arguments)?;
    let runtimes = Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    Ok((os::env(Arc::new(runtimes)), config))
}

/// Returns the number of procedures in `master:store`, or why it cannot be read.
async fn count_stored_procedures(env: &base::env::Env, data: &DataDirectory) -> Result<usize, String> {
    let server = ServerName { host: "grampus-repair".into(), port: 1, start_code: env.clock.now_ms() };
    let on_fatal = Arc::new(|_: &wal::Error| ());
    let root = data.root.master_data();
    let dead_log_dirs =
        other_servers_log_dirs(&*data.fs, &root, &server).await.map_err(|error| error.to_string())?;
    let store = MasterStore::open(env, &data.fs, &data.root, &server, &dead_log_dirs, on_fatal).await;
    let store = store.map_err(|error| error.to_string())?;
    let loaded = Journal::new(store.region().clone()).load().await;
    let closed = store.close().await;
    let records = loaded.map_err(|error| error.to_string())?;
    closed.map_err(|error| error.to_string())?;
    Ok(records.unfinished.len())
}
