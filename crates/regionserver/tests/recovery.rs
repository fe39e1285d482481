//! Which logs a starting server takes over: those of dead servers, and no others.

use std::sync::Arc;

use crate::world::{World, run, server_name, start_server};
use cell::schema::FamilyDescriptor;
use engine::recovery::other_servers_log_dirs;
use fs::{FilePath, FileSystem};
use layout::RootDir;

/// Names and sizes of the files in the log directory of a server.
async fn logs(fs: &dyn FileSystem, dir: &FilePath) -> Vec<(String, u64)> {
    let files = fs.list(dir).await.unwrap();
    files.into_iter().map(|file| (file.name, file.len)).collect()
}

#[test]
fn a_starting_server_does_not_touch_the_log_of_a_server_that_is_not_listed_as_dead() {
    run(async {
        let live = World::begin().await;
        live.put("a").await;
        let fs: Arc<dyn FileSystem> = Arc::new(live.disk.clone());
        let dir = RootDir::new(FilePath::root()).wal_dir(live.server.name());
        let before = logs(&*fs, &dir).await;
        assert!(!before.is_empty(), "the live server has a log");
        let other = server_name(live.server.name().start_code + 1_000_000);
        start_server(&live.env, fs.clone(), other, Vec::new()).await;
        assert_eq!(logs(&*fs, &dir).await, before);
        live.put("b").await;
        live.get("b").await;
        // Its edits are still recovered from its own directory.
        let recovered = live.after_power_loss(FamilyDescriptor::new("f")).await;
        recovered.get("a").await;
        recovered.get("b").await;
    });
}

#[test]
fn log_directories_of_other_servers_exclude_the_own_one() {
    run(async {
        let world = World::begin().await;
        let (fs, root) = (world.disk.clone(), RootDir::new(FilePath::root()));
        let own = world.server.name();
        assert_eq!(other_servers_log_dirs(&fs, &root, own).await.unwrap(), Vec::<FilePath>::new());
        let others = other_servers_log_dirs(&fs, &root, &server_name(own.start_code + 1)).await.unwrap();
        assert_eq!(others, [root.wal_dir(own)]);
    });
}
