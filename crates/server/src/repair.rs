//! `grampus repair meta` and `grampus repair master`: repairs of a directory whose server cannot start.
//!
//! Both lock the directory, so they fail while a server uses it. What they replace is kept in `corrupt/`.

use std::sync::Arc;

use cell::region::ServerName;
use engine::recovery::OnDamage;
use master::procedure::journal::Journal;
use master::rebuild;
use master::store::MasterStore;

use crate::arguments::StartArguments;
use crate::os::{self, Runtimes};
use crate::standalone::{Data, load_config};

/// Rebuilds `hbase:meta` from the directories of regions and prints what was found.
///
/// # Errors
/// One line: why it cannot be rebuilt.
pub fn meta(arguments: &StartArguments) -> Result<(), String> {
    let (env, config) = prepare(arguments)?;
    os::block_on(async {
        let data = Data::open_existing(&env, &config).await?;
        let rebuilt = rebuild::rebuild_meta(&env, &data.fs, &data.root).await;
        let rebuilt = rebuilt.map_err(|error| format!("cannot rebuild hbase:meta: {error}"))?;
        println!("{rebuilt}");
        Ok(())
    })
}

/// Moves a damaged `master:store` aside, so that the next start makes an empty one. One that can be read stays.
///
/// # Errors
/// One line: why it cannot be moved.
pub fn master(arguments: &StartArguments) -> Result<(), String> {
    let (env, config) = prepare(arguments)?;
    os::block_on(async {
        let data = Data::open_existing(&env, &config).await?;
        let failed = |error: &dyn std::fmt::Display| format!("cannot repair master:store: {error}");
        let damage = match damage_of_store(&env, &data).await {
            Ok(procedures) => {
                println!("master:store can be read, procedures in it {procedures}: nothing is changed");
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
        println!("old files kept in {to}; the next start makes an empty master:store");
        println!(
            "lost: procedures that were running, such as a table being created, altered or split (repeat them),"
        );
        println!("and the switches of splits and merges, which are on again");
        Ok(())
    })
}

fn prepare(arguments: &StartArguments) -> Result<(base::env::Env, base::config::Config), String> {
    let config = load_config(arguments)?;
    let runtimes = Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    Ok((os::env(Arc::new(runtimes)), config))
}

/// The number of procedures in `master:store`, or why it cannot be read.
async fn damage_of_store(env: &base::env::Env, data: &Data) -> Result<usize, String> {
    let server = ServerName { host: "grampus-repair".into(), port: 1, start_code: env.clock.now_ms() };
    let on_fatal = Arc::new(|_: &wal::Error| ());
    let store = MasterStore::open(env, &data.fs, &data.root, &server, OnDamage::Refuse, on_fatal).await;
    let store = store.map_err(|error| error.to_string())?;
    let loaded = Journal::new(store.region().clone()).load().await;
    let closed = store.close().await;
    let records = loaded.map_err(|error| error.to_string())?;
    closed.map_err(|error| error.to_string())?;
    Ok(records.len())
}
