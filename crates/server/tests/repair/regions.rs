//! Regions that overlap, that lost their directories, or whose files are damaged.

use std::fs;
use std::path::Path;

use crate::common::{Server, TempDir};
use crate::directory::{copy, files, region_dirs, repair, rows, shell, wait_until};

/// Directories in which an earlier version merged the first and the last region of the table `t`,
/// so that the result overlaps two other regions. The table was split at `d`, `e` and `m`.
fn check_overlap(directory: &str, expected: &[&str]) {
    let dir = TempDir::new();
    let data = dir.join("data");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/directories").join(directory), &data);
    let mut merged = Vec::new();
    for start in 0..2 {
        let server = Server::start(&data);
        assert_eq!(rows(&server, "t"), expected);
        for row in expected {
            let (key, value) = row.split_once('=').unwrap();
            let shown = shell(&server, &format!("get 't', '{key}'"));
            assert!(shown.contains(&format!("value={value}")), "{row}: {shown}");
        }
        let log = server.errors();
        assert_eq!(log.contains("regions overlap"), start == 0, "{log}");
        assert_eq!(log.contains("merged into one region"), start == 0, "{log}");
        assert!(repair(&server, &["overlaps"]).contains("no regions of enabled tables overlap"));
        let regions = shell(&server, "scan 'hbase:meta', {COLUMNS => 'info:regioninfo'}");
        merged.push(regions.lines().filter(|line| line.trim_start().starts_with("t,")).count());
        assert_eq!(server.stop().code(), Some(0));
    }
    assert_eq!(merged, [1, 1]);
}

#[test]
fn regions_that_overlap_are_merged_at_start_and_no_row_is_lost() {
    check_overlap("overlap_in_files", &["a=va", "c=vc", "f=vf", "m=vm", "p=vp", "t=vt"]);
}

#[test]
fn regions_that_overlap_with_references_and_edits_in_the_log_are_merged_at_start() {
    let expected = ["a=va", "b=vb", "c=vc", "f=vf", "m=vm", "n=vn", "p=vp", "t=vt"];
    check_overlap("overlap_in_log", &expected);
}

fn with_two_tables(data: &Path) {
    let server = Server::start(data);
    shell(&server, "create 't', 'f', SPLITS => ['m']; create 'other', 'f'");
    shell(&server, "put 't', 'a', 'f:q', '1'; put 't', 'z', 'f:q', '2'; put 'other', 'r', 'f:q', '3'");
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_region_without_its_directory_is_shown_and_others_are_served() {
    let dir = TempDir::new();
    let data = dir.join("data");
    with_two_tables(&data);
    let of_a = region_dirs(&data, "t").into_iter().find(|dir| {
        let info = fs::read(dir.join(".regioninfo")).unwrap();
        // The end key of the first region.
        info.ends_with(b"m") || info.windows(3).any(|part| part == [0x22, 1, b'm'])
    });
    let lost = of_a.unwrap();
    let encoded = lost.file_name().unwrap().to_str().unwrap().to_string();
    fs::rename(&lost, dir.join("aside")).unwrap();
    let server = Server::start(&data);
    assert!(server.errors().contains(&format!("{encoded} is missing")), "{}", server.errors());
    assert!(shell(&server, "get 't', 'z'").contains("value=2"));
    assert_eq!(rows(&server, "other"), ["r=3"]);
    assert!(!lost.exists(), "the directory is not recreated");
    let status = repair(&server, &["status"]);
    assert!(status.contains(&encoded) && status.contains("is missing") && status.contains("repair region"));
    // When the directory comes back, the region opens without a restart.
    fs::rename(dir.join("aside"), &lost).unwrap();
    wait_until("the region opens", || repair(&server, &["status"]) == "no faults\n");
    assert_eq!(rows(&server, "t"), ["a=1", "z=2"]);
    server.stop();
    // The directory is lost permanently, and an operator accepts that.
    fs::remove_dir_all(&lost).unwrap();
    let server = Server::start(&data);
    let accepted = repair(&server, &["region", &encoded]);
    assert!(accepted.contains("has an empty directory; the rows of its files are lost"), "{accepted}");
    assert_eq!(rows(&server, "t"), ["z=2"]);
    shell(&server, "put 't', 'a', 'f:q', '4'");
    assert_eq!(server.stop().code(), Some(0));
    let server = Server::start(&data);
    assert_eq!(rows(&server, "t"), ["a=4", "z=2"]);
}

#[test]
fn a_truncated_store_file_closes_its_region_only() {
    let dir = TempDir::new();
    let data = dir.join("data");
    with_two_tables(&data);
    let is_store_file = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.len() == 32 && path.parent().unwrap().ends_with("f")
    };
    let file = files(&data.join("data/default/other")).into_iter().find(is_store_file).unwrap();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let server = Server::start(&data);
    assert_eq!(rows(&server, "t"), ["a=1", "z=2"]);
    let name = file.file_name().unwrap().to_str().unwrap();
    let status = repair(&server, &["status"]);
    assert!(status.contains("table other: region") && status.contains(name), "{status}");
    // Table changes still work, for this table too.
    shell(&server, "create 'new', 'f'; put 'new', 'r', 'f:q', '5'");
    shell(&server, "disable 'other'; enable 'other'");
    // After its file is restored from a copy, the region opens automatically.
    fs::write(&file, &whole).unwrap();
    wait_until("the region opens", || repair(&server, &["status"]) == "no faults\n");
    assert_eq!(rows(&server, "other"), ["r=3"]);
    assert_eq!(server.stop().code(), Some(0));
}
