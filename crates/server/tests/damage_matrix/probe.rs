//! Starts a server on a damaged copy and compares what a client reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::common::{PORTS, free_offset, grampus, text};
use crate::content::{self, Content};
use crate::damage::Damage;
use crate::image::{Image, OPTIONS};
use crate::kinds::Target;
use crate::remedy::{self, AppliedRemedy};

/// A start that takes longer hangs.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The outcome of a damage.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub availability: Availability,
    /// Lines that the server logged because of the damage, with variable parts masked.
    pub lines: Vec<String>,
    /// The output of `grampus health`.
    pub health: String,
    /// The remedies that messages named, with their results.
    pub remedies: Vec<AppliedRemedy>,
}

/// The result for a client.
#[derive(Clone, Debug)]
pub enum Availability {
    /// The process ended or did not become ready.
    Down(String),
    /// The server serves.
    Serving(Differences),
}

/// Differences between the expected and the actual content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// Failures by table, with their exceptions.
    pub failing: BTreeMap<String, Failing>,
    /// Wrong responses: rows with other cells, changed descriptors.
    pub wrong: Vec<String>,
    /// Rows that are missing without an error, or have an older value, by table.
    pub lost: BTreeMap<String, usize>,
}

/// Failing reads of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failing {
    pub gets: usize,
    pub rows: usize,
    pub scan: bool,
    pub count: bool,
    pub classes: BTreeSet<String>,
}

/// Damages a copy of the image, starts a server on it, and reads all tables.
pub fn probe(image: &Image, target: &Target, damage: Damage) -> Outcome {
    let name = format!("case-{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let data = image.copy(&name);
    damage.apply(&data.join(&target.path));
    let mut outcome = start_and_read(image, &data, &[]);
    if !outcome.is_well() {
        outcome.remedies = remedy::apply_remedies(image, &data, &outcome);
    }
    let _ = fs::remove_dir_all(&data);
    outcome
}

/// Starts a server on `data` and reads all tables.
pub fn start_and_read(image: &Image, data: &Path, options: &[String]) -> Outcome {
    let mut server = match StartedServer::start(data, options) {
        Ok(server) => server,
        Err(errors) => {
            let message = errors.lines().rfind(|line| line.starts_with("grampus: ")).unwrap_or("no message");
            return Outcome {
                availability: Availability::Down(masked(message, data)),
                lines: unusual_lines(&errors, data, &image.usual),
                health: String::new(),
                remedies: Vec::new(),
            };
        }
    };
    let content = server.content(image);
    let health = server.health(data);
    let availability = match server.has_ended() {
        true => Availability::Down("the process ended during the reads".into()),
        false => Availability::Serving(compare(&image.content, &content)),
    };
    let lines = unusual_lines(&server.errors(), data, &image.usual);
    Outcome { availability, lines, health, remedies: Vec::new() }
}

impl Outcome {
    /// Whether nothing is affected.
    pub fn is_well(&self) -> bool {
        matches!(&self.availability, Availability::Serving(differences) if *differences == Differences::default())
    }
}

/// A started server.
pub struct StartedServer {
    child: Child,
    errors: PathBuf,
    offset: u16,
}

impl StartedServer {
    /// Starts a server. Returns its standard error if it does not become ready.
    pub fn start(data: &Path, options: &[String]) -> Result<StartedServer, String> {
        loop {
            let offset = free_offset();
            let errors = data.with_extension("stderr");
            let mut child = grampus()
                .args(["start", "--data"])
                .arg(data)
                .args(["--port-offset", &offset.to_string()])
                .args(OPTIONS)
                .args(options)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(File::create(&errors).unwrap())
                .spawn()
                .unwrap();
            let stdout = BufReader::new(child.stdout.take().unwrap());
            let (send, lines) = channel();
            std::thread::spawn(move || {
                for line in stdout.lines().map_while(Result::ok) {
                    let _ = send.send(line);
                }
            });
            let mut server = StartedServer { child, errors, offset };
            match server.wait_ready(&lines) {
                Ok(()) => return Ok(server),
                Err(errors) if errors.contains("choose another port") => {}
                Err(errors) => return Err(errors),
            }
        }
    }

    fn wait_ready(&mut self, lines: &Receiver<String>) -> Result<(), String> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(" is ready after ") => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.errors()),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("{}\ngrampus: not ready after {READY_WITHIN:?}", self.errors()));
                }
            }
        }
    }

    fn zookeeper(&self) -> String {
        format!("127.0.0.1:{}", PORTS[0] + self.offset)
    }

    /// Runs `grampus COMMAND --port-offset N` with this server.
    pub fn command(&self, words: &[&str]) -> Result<String, String> {
        let output = grampus()
            .args(words)
            .args(["--port-offset", &self.offset.to_string()])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        if output.status.success() { Ok(printed) } else { Err(printed) }
    }

    pub fn content(&self, image: &Image) -> Content {
        let zookeeper = self.zookeeper();
        image.on_a_runtime(async |env, image| {
            content::read(&env, &content::client(&env, &zookeeper), &image.rows).await
        })
    }

    fn health(&self, data: &Path) -> String {
        let printed = self.command(&["health"]);
        masked(printed.unwrap_or_else(|printed| printed).trim(), data)
    }

    /// Everything written to standard error.
    pub fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compares `found` with the known content.
pub fn compare(known: &Content, found: &Content) -> Differences {
    let mut differences = Differences::default();
    for (name, known) in &known.tables {
        let found = &found.tables[name];
        let mut failing = Failing { rows: known.gets.len(), ..Failing::default() };
        let mut lost = 0;
        for (row, expected) in &known.gets {
            match (&found.gets[row], expected) {
                (Err(class), _) => {
                    failing.gets += 1;
                    failing.classes.insert(class.clone());
                }
                (Ok(cells), Ok(expected)) if is_older(cells, expected) => {
                    lost += usize::from(cells != expected)
                }
                (Ok(_), _) => differences.wrong.push(format!("get of {name} {}", row.escape_ascii())),
            }
        }
        match (&found.scan, &known.scan) {
            (Err(class), _) => {
                failing.scan = true;
                failing.classes.insert(class.clone());
            }
            (Ok(rows), Ok(expected)) => {
                let wrong = rows.iter().filter(|(row, cells)| {
                    !expected.get(*row).is_some_and(|expected| is_older(cells, expected))
                });
                let wrong = wrong.map(|(row, _)| format!("scan of {name} {}", row.escape_ascii()));
                differences.wrong.extend(wrong);
                let is_lost =
                    |(row, expected): &(&Vec<u8>, &content::Cells)| rows.get(*row) != Some(*expected);
                lost = lost.max(expected.iter().filter(is_lost).count());
            }
            (Ok(_), Err(_)) => unreachable!("the image is whole"),
        }
        match &found.count {
            Err(class) => {
                failing.count = true;
                failing.classes.insert(class.clone());
            }
            Ok(_) if found.count == known.count || lost > 0 => {}
            Ok(count) => differences.wrong.push(format!("count of {name}: {count}")),
        }
        if !failing.classes.is_empty() {
            differences.failing.insert(name.clone(), failing);
        }
        if lost > 0 {
            differences.lost.insert(name.clone(), lost);
        }
    }
    compare_schema(known, found, &mut differences);
    differences
}

/// Whether `cells` may be an earlier state of the row: columns are missing or have an earlier
/// version.
fn is_older(cells: &content::Cells, newest: &content::Cells) -> bool {
    cells.iter().all(|cell| {
        newest.iter().any(|new| (&cell.0, &cell.1) == (&new.0, &new.1) && (cell == new || cell.2 < new.2))
    })
}

fn compare_schema(known: &Content, found: &Content, differences: &mut Differences) {
    if let Some(class) = &found.schema_error {
        let failing = Failing { classes: [class.clone()].into(), ..Failing::default() };
        differences.failing.insert("list of tables".into(), failing);
    } else {
        for (table, descriptor) in &known.schema {
            match found.schema.get(table) {
                Some(found) if found == descriptor => {}
                Some(_) => differences.wrong.push(format!("the descriptor of {table} changed")),
                None if differences.failing.contains_key(table) => {}
                None => differences.wrong.push(format!("{table} is not listed")),
            }
        }
    }
    for (what, known, found) in [
        ("namespaces", &known.namespaces, &found.namespaces),
        ("snapshots", &known.snapshots, &found.snapshots),
    ] {
        match (known, found) {
            (_, Some(Err(class))) => {
                let failing = Failing { classes: [class.clone()].into(), ..Failing::default() };
                differences.failing.insert(format!("list of {what}"), failing);
            }
            (Some(Ok(known)), Some(Ok(found))) if known != found => {
                differences.wrong.push(format!("the list of {what} is {found}"));
            }
            _ => {}
        }
    }
}

/// The warnings and errors that an undamaged start does not log, with variable parts masked.
pub fn unusual_lines(errors: &str, data: &Path, usual: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in errors.lines() {
        let Some(at) = [" WARN ", " ERROR "].iter().find_map(|level| line.find(level)) else {
            if line.starts_with("grampus: ") || line.contains("panicked") {
                lines.push(masked(line, data));
            }
            continue;
        };
        let line = masked(line[at..].trim(), data);
        if !usual.contains(&line) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Masks times, names and numbers that differ between runs.
pub fn masked(line: &str, data: &Path) -> String {
    let line = line.replace(data.to_str().unwrap(), "DIR");
    let mut masked = String::new();
    let mut word = String::new();
    for character in line.chars().chain([' ']) {
        if character.is_ascii_alphanumeric() {
            word.push(character);
            continue;
        }
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_hex = word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = word.trim_end_matches("ms").trim_end_matches('s');
        match () {
            () if is_hex && word != "1588230740" => masked.push_str("HASH"),
            () if word == "1588230740" => masked.push_str(&word),
            () if digits > 0 && digits == number.len() && !number.is_empty() => masked.push('N'),
            () => masked.push_str(&word),
        }
        word.clear();
        masked.push(character);
    }
    masked.trim_end().to_string()
}
