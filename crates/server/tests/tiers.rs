//! Files on several disks (`grampus.tiers`).
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "pages/html.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod html;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use common::{PORTS, Server, TempDir, free_offset, grampus, run, text};

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
    // Nothing holds the old bytes: neither a name nor an open file.
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

/// The body of a page of the region server.
fn page(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", PORTS[4] + server.offset)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    text(&answer).split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// `grampus tiers` of the server at an offset.
fn tiers_at(offset: u16) -> Output {
    run(grampus().args(["tiers", "--port-offset", &offset.to_string()]))
}

/// The lines of `grampus tiers` as words.
fn tiers(server: &Server) -> Vec<Vec<String>> {
    let output = tiers_at(server.offset);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    lines.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn the_state_of_volumes_is_shown_to_operators() {
    let dir = TempDir::new();
    let (data, fast, slow) = (dir.join("data"), dir.join("fast"), dir.join("slow"));
    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let made = server.shell("create 't', 'f'\nput 't', 'r', 'f:q', 'v'\nflush 't'\n");
    assert!(made.status.success(), "{}", text(&made.stderr));

    let lines = tiers(&server);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[1][..4], ["fast", "ssd", fast.to_str().unwrap(), "good"]);
    assert_eq!(lines[2][..4], ["slow", "hdd", slow.to_str().unwrap(), "good"]);
    let of_shell = text(&server.shell("tiers\n").stdout).to_string();
    assert!(of_shell.contains("TIER") && of_shell.contains(slow.to_str().unwrap()), "{of_shell}");

    let shown = page(&server, "/rs-status");
    html::check(&shown);
    assert!(shown.contains("Storage tiers") && shown.contains(fast.to_str().unwrap()));
    assert!(!shown.contains("The volume "), "no volume has a problem");
    let beans: serde_json::Value =
        serde_json::from_str(&page(&server, "/jmx?qry=Hadoop:service=HBase,name=RegionServer,sub=Grampus,*"))
            .unwrap();
    let beans = beans["beans"].as_array().unwrap();
    let of_fast = beans.iter().find(|bean| bean["tag.Tier"] == "fast").unwrap();
    assert_eq!((&of_fast["tag.Class"], &of_fast["volumeFailed"]), (&"ssd".into(), &0.into()));
    for written in ["volumeLogWrittenBytes", "volumeFlushWrittenBytes", "volumeTotal"] {
        assert!(of_fast[written].as_u64().unwrap() > 0, "{written}");
    }
    let metrics = page(&server, "/prometheus?qry=volume_log_written");
    let samples: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!((samples.len(), metrics.lines().count()), (2, 3), "one type, two samples: {metrics}");
    let label = format!("tier=\"fast\",class=\"ssd\",directory=\"{}\"", fast.display());
    assert!(samples[0].starts_with("grampus_volume_log_written_bytes{") && samples[0].contains(&label));
    server.stop();

    // A disk is missing.
    fs::rename(&slow, dir.join("away")).unwrap();
    let server = Server::start_with(&data, &["--set", &option(&dir)]);
    let lines = tiers(&server);
    assert_eq!(lines[2][..4], ["slow", "hdd", slow.to_str().unwrap(), "failed"]);
    assert!(lines[3].concat().contains("mounted"), "{lines:?}");
    let finding = format!("The volume {} of the tier slow failed (", slow.display());
    assert!(page(&server, "/rs-status").contains(&finding));
    let offset = server.offset.to_string();
    let health = run(grampus().args(["health", "--port-offset", &offset]));
    let output = text(&health.stdout);
    assert!(health.status.success() && output.contains(&format!("warning: {finding}")), "{output}");
    let offset = server.offset;
    server.stop();

    let output = tiers_at(offset);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no server answers at 127.0.0.1:"), "{}", text(&output.stderr));
}

#[test]
fn a_server_without_tiers_states_that() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let output = tiers_at(server.offset);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), "no storage tiers are configured (option grampus.tiers)\n");
    assert!(!page(&server, "/rs-status").contains("Storage tiers"));
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
