//! Files on several disks (`grampus.tiers`).
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Server, TempDir, free_offset, grampus, run, text};

/// Two tiers: logs and flushed files on `fast`, files of major compactions on `slow`.
fn option(dir: &TempDir) -> String {
    let (fast, slow) = (dir.join("fast"), dir.join("slow"));
    format!("grampus.tiers=fast ssd {}; slow hdd {}", fast.display(), slow.display())
}

/// The files of a volume.
fn files(volume: &Path) -> Vec<PathBuf> {
    let id = fs::read_to_string(volume.join("grampus.volume")).unwrap().lines().next().unwrap().to_owned();
    fs::read_dir(volume.join(id)).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The links at or below a directory.
fn links(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() {
            found.push(entry.path());
        } else if kind.is_dir() {
            found.extend(links(&entry.path()));
        }
    }
    found
}

fn is_file_of(table: &str) -> impl Fn(&&PathBuf) -> bool {
    // Not those in the archive.
    let part = format!("/data/data/default/{table}/");
    move |link| link.to_str().unwrap().contains(&part)
}

#[test]
fn files_are_on_the_disks_of_their_tiers_and_survive_a_kill() {
    let dir = TempDir::new();
    let (data, fast, slow) = (dir.join("data"), dir.join("fast"), dir.join("slow"));
    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let script = "create 'new', 'f'\ncreate 'old', 'f'\ncreate 'cold', {NAME => 'f', STORAGE_POLICY => 'HOT'}\n\
                  put 'new', 'r', 'f:q', 'flushed'\nput 'old', 'r', 'f:q', 'compacted'\nput 'cold', 'r', 'f:q', \
                  'by policy'\nflush 'new'\nflush 'cold'\nflush 'old'\nput 'old', 's', 'f:q', 'x'\nflush 'old'\n\
                  major_compact 'old'\nput 'new', 's', 'f:q', 'in the log'\n";
    let made = server.shell(script);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let is_compacted = || {
        // A link may be gone since it was listed.
        let found = links(&data).into_iter().filter(|link| is_file_of("old")(&link));
        let targets: Vec<_> = found.filter_map(|link| fs::read_link(link).ok()).collect();
        targets.len() == 1 && targets[0].starts_with(&slow)
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_compacted() {
        assert!(Instant::now() < deadline, "the compacted file is on the slow disk");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill();

    let target = |table: &str| {
        let links: Vec<_> = links(&data).into_iter().filter(|link| is_file_of(table)(&link)).collect();
        assert_eq!(links.len(), 1, "{table}");
        fs::read_link(&links[0]).unwrap()
    };
    assert!(target("new").starts_with(&fast) && target("cold").starts_with(&slow));
    assert!(links(&data.join("WALs")).iter().all(|log| fs::read_link(log).unwrap().starts_with(&fast)));

    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let found = text(&server.shell("scan 'new'\nscan 'old'\nscan 'cold'\n").stdout).to_string();
    for value in ["flushed", "in the log", "compacted", "by policy"] {
        assert!(found.contains(value), "{value}: {found}");
    }
    // The bytes of deleted tables go, too. The archive keeps files for a time.
    server.stop();
    let named = links(&data).len();
    assert_eq!(files(&fast).len() + files(&slow).len(), named);

    // Without the option, the links lead to the same files.
    let server = Server::start(&data);
    let found = text(&server.shell("scan 'old'\n").stdout).to_string();
    assert!(found.contains("compacted"), "{found}");
    server.stop();
}

#[test]
fn files_move_when_a_policy_changes() {
    let dir = TempDir::new();
    let (data, fast, slow) = (dir.join("data"), dir.join("fast"), dir.join("slow"));
    // The disk of the machine that runs this test may be nearly full.
    let (fast_dir, slow_dir) = (fast.display(), slow.display());
    let tiers = format!("grampus.tiers=fast ssd {fast_dir} fill.max=100%; slow hdd {slow_dir} fill.max=100%");
    let server = Server::start_with(&data, &["--set", &tiers, "--set", "grampus.tier.move.period=100 ms"]);
    let script = "create 't', 'f'\nput 't', 'r', 'f:q', 'first'\nflush 't'\nput 't', 's', 'f:q', 'second'\n\
                  flush 't'\n";
    let made = server.shell(script);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let targets = || -> Vec<_> {
        let links = links(&data).into_iter().filter(|link| is_file_of("t")(&link));
        links.filter_map(|link| fs::read_link(link).ok()).collect()
    };
    assert!(targets().iter().all(|target| target.starts_with(&fast)) && targets().len() == 2);
    server.shell("alter 't', {NAME => 'f', STORAGE_POLICY => 'HOT'}\n");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !targets().iter().all(|target| target.starts_with(&slow)) {
        assert!(Instant::now() < deadline, "the files follow the policy");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Nobody holds the old bytes: neither a name nor an open file.
    let open_on_fast = || {
        let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
        let targets = open.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        targets
            .filter(|target| target.starts_with(&fast) && target.to_str().unwrap().contains("(deleted)"))
            .count()
    };
    while open_on_fast() > 0 {
        assert!(Instant::now() < deadline, "the server closes files that moved away");
        std::thread::sleep(Duration::from_millis(50));
    }
    let found = text(&server.shell("scan 't'\n").stdout).to_string();
    assert!(found.contains("first") && found.contains("second"), "{found}");
    server.stop();
}

#[test]
fn a_missing_disk_makes_its_files_unavailable_and_not_empty() {
    let dir = TempDir::new();
    let (data, slow) = (dir.join("data"), dir.join("slow"));
    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let script =
        "create 't', {NAME => 'f', STORAGE_POLICY => 'HOT'}\nput 't', 'r', 'f:q', 'kept'\nflush 't'\n";
    let made = server.shell(script);
    assert!(made.status.success(), "{}", text(&made.stderr));
    server.stop();

    let away = dir.join("away");
    fs::rename(&slow, &away).unwrap();
    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let output = server.shell("create 'other', 'f'\nput 'other', 'r', 'f:q', 'v'\nget 'other', 'r'\n");
    assert!(text(&output.stdout).contains("value=v"), "other tables are served: {}", text(&output.stdout));
    server.kill();
    assert!(!slow.join("grampus.volume").exists(), "the directory below a missing disk is not a volume");

    fs::remove_dir_all(&slow).unwrap();
    fs::rename(&away, &slow).unwrap();
    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let found = text(&server.shell("get 't', 'r'\n").stdout).to_string();
    assert!(found.contains("kept"), "{found}");
    server.stop();
}

#[test]
fn a_model_slows_down_the_disks_of_its_tier() {
    const PUTS: u32 = 5;
    const SYNC: Duration = Duration::from_millis(300);
    let dir = TempDir::new();
    let (data, fast, slow) = (dir.join("data"), dir.join("fast"), dir.join("slow"));
    // Each put is a sync of the log, which is on `fast`.
    let option = format!(
        "grampus.tiers=fast ssd {} model=ssd,sync={}ms bus=1GB/s; slow hdd {}",
        fast.display(),
        SYNC.as_millis(),
        slow.display()
    );
    let server = Server::start_with(&data, &["--set", &option]);
    assert!(server.shell("create 't', 'f'\n").status.success());
    let script: String = (0..PUTS).map(|row| format!("put 't', '{row}', 'f:q', 'v'\n")).collect();
    let begun = Instant::now();
    assert!(server.shell(&script).status.success());
    assert!(begun.elapsed() >= SYNC * PUTS, "{:?}", begun.elapsed());
    assert!(server.errors().contains("a model slows down the disks"), "{}", server.errors());
    server.stop();
}

#[test]
fn wrong_options_are_refused() {
    let dir = TempDir::new();
    let other = dir.join("other");
    let used = option(&dir);
    Server::start_with(&other, &["--set", &used]).stop();
    for (value, part) in [
        ("fast", "name, a class and directories".to_owned()),
        ("fast floppy /a", "floppy".to_owned()),
        ("fast ssd /a model=hdd,seek=8", "`8` is not a time".to_owned()),
        (used.strip_prefix("grampus.tiers=").unwrap(), "files of the database".to_owned()),
    ] {
        let data = dir.join("data").display().to_string();
        let set = format!("grampus.tiers={value}");
        let mut start = grampus();
        start.args(["start", "--data", &data, "--set", &set, "--port-offset", &free_offset().to_string()]);
        let output = run(&mut start);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.contains("grampus.tiers") && error.contains(&part), "{error}");
    }
}
