//! Damaged, emptied and missing files of `hbase:meta` and of the master's region.

use std::fs;
use std::path::Path;

use crate::common::{Server, TempDir, free_offset, grampus, run, text};
use crate::directory::{damage, files, rows, shell};

/// Starts a server that must fail to start, and returns its last line.
fn refused(data: &Path) -> String {
    let offset = free_offset().to_string();
    let output = run(grampus().args(["start", "--data", data.to_str().unwrap(), "--port-offset", &offset]));
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    errors.lines().last().unwrap().to_string()
}

fn repair(data: &Path, what: &str) -> String {
    let output = run(grampus().args(["repair", what, "--data", data.to_str().unwrap()]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A directory with one table of three regions and one table that was split.
fn prepare(data: &Path) {
    let server = Server::start(data);
    shell(&server, "create 't', 'f', SPLITS => ['d', 'm']; create 'u', 'f', 'g'");
    shell(&server, "put 't', 'a', 'f:q', '1'; put 't', 'f', 'f:q', '2'; put 't', 'z', 'f:q', '3'");
    shell(&server, "put 'u', 'b', 'f:q', '4'; put 'u', 'y', 'g:q', '5'");
    shell(&server, "split 'u', 'm'");
    assert_eq!(server.stop().code(), Some(0));
}

fn check(data: &Path) {
    let server = Server::start(data);
    assert_eq!(rows(&server, "t"), ["a=1", "f=2", "z=3"]);
    assert_eq!(rows(&server, "u"), ["b=4", "y=5"]);
    shell(&server, "put 't', 'n', 'f:q', '6'; create 'v', 'f'; disable 'v'; drop 'v'");
    assert_eq!(server.stop().code(), Some(0));
    let server = Server::start(data);
    assert_eq!(rows(&server, "t"), ["a=1", "f=2", "n=6", "z=3"]);
    assert_eq!(server.stop().code(), Some(0));
}

fn store_files(data: &Path, family: &str) -> Vec<std::path::PathBuf> {
    files(&data.join("data/hbase/meta/1588230740").join(family))
}

fn rebuilt(apply_damage: impl FnOnce(&Path)) {
    let dir = TempDir::new();
    let data = dir.join("data");
    prepare(&data);
    apply_damage(&data);
    let line = refused(&data);
    assert!(line.contains("hbase:meta") && line.contains("grampus repair meta"), "{line}");
    let shown = repair(&data, "meta");
    assert!(shown.contains("table t: regions 3, state ENABLED"), "{shown}");
    assert!(shown.contains("table u: regions 2, state ENABLED"), "{shown}");
    // A second rebuild gives the same result.
    let again = repair(&data, "meta");
    assert!(again.contains("table t: regions 3") && again.contains("old files kept in corrupt/"), "{again}");
    check(&data);
}

#[test]
fn hbase_meta_with_a_damaged_file_is_rebuilt() {
    rebuilt(|data| store_files(data, "info").iter().for_each(|file| damage(file)));
}

#[test]
fn hbase_meta_with_a_truncated_file_is_rebuilt() {
    rebuilt(|data| {
        for file in store_files(data, "info") {
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        }
    });
}

#[test]
fn hbase_meta_without_files_is_rebuilt() {
    rebuilt(|data| {
        for family in ["info", "table"] {
            store_files(data, family).iter().for_each(|file| fs::remove_file(file).unwrap());
        }
    });
}

#[test]
fn hbase_meta_without_its_directory_is_rebuilt() {
    rebuilt(|data| fs::remove_dir_all(data.join("data/hbase/meta")).unwrap());
}

#[test]
fn a_damaged_region_of_the_master_is_replaced() {
    let dir = TempDir::new();
    let data = dir.join("data");
    prepare(&data);
    assert!(repair(&data, "master").contains("nothing is changed"));
    let store = files(&data.join("MasterData/data/master/store"));
    let files = store.iter().filter(|path| path.file_name().unwrap().len() == 32);
    for file in files {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    }
    let line = refused(&data);
    assert!(line.contains("master:store") && line.contains("grampus repair master"), "{line}");
    let shown = repair(&data, "master");
    assert!(
        shown.contains("old files kept in corrupt/MasterData-") && shown.contains("lost: procedures"),
        "{shown}"
    );
    check(&data);
}

#[test]
fn offline_repairs_require_a_directory_and_a_stopped_server() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let failed = |what: &str| {
        let output = run(grampus().args(["repair", what, "--data", data.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    for what in ["meta", "master"] {
        assert!(failed(what).contains("there is no data directory"));
    }
    let server = Server::start(&data);
    for what in ["meta", "master"] {
        assert!(failed(what).contains("in use by another grampus"));
    }
    assert_eq!(server.stop().code(), Some(0));
}
