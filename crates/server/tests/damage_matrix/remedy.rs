//! Ways forward that a message names, taken as an operator would.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{grampus, run, text};
use crate::image::Image;
use crate::probe::{Differences, Failing, Outcome, Seen, Started, compare, start_and_read};

/// What was done, and what is left to be seen.
#[derive(Clone, Debug)]
pub struct Remedied {
    /// The command or option.
    pub command: String,
    /// Whether the server serves after it, and no answer is wrong.
    pub result: Result<String, String>,
}

/// Commands for a stopped server.
const OFFLINE: [&[&str]; 3] = [&["repair", "meta"], &["repair", "master"], &["repair", "root"]];
/// Options that let a server start.
const OPTIONS: [&str; 1] = ["hbase.hlog.split.skip.errors"];
/// Commands for a running server, and whether a region is named behind them.
const ONLINE: [(&str, bool); 3] = [("repair region", true), ("repair adopt", true), ("repair holes", false)];
/// What a message says of a table that is lost as a whole; the table is named before it.
const DROP: &str = ", or disable and drop the table";

/// Does what the messages name.
pub fn follow(image: &Image, data: &Path, outcome: &Outcome) -> Vec<Remedied> {
    let mut said = outcome.lines.join("\n");
    if let Seen::Down(message) = &outcome.seen {
        said.push_str(message);
    }
    let is_named = |words: &[&str]| said.contains(&format!("grampus {}", words.join(" ")));
    let mut done = Vec::new();
    let is_down = matches!(outcome.seen, Seen::Down(_));
    if is_down && said.contains("printf 'Grampus root directory") {
        done.push(restore_marker(image, data));
    }
    if is_down && said.contains("or begin with another root directory") {
        done.push(Remedied {
            command: "another root directory".into(),
            result: Ok("all tables are lost".into()),
        });
    }
    for words in OFFLINE.iter().filter(|words| is_named(words)) {
        let output = run(grampus().args(*words).arg("--data").arg(data));
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let result = match output.status.success() {
            true => judge(&start_and_read(image, data, &[])),
            false => Err(printed),
        };
        done.push(Remedied { command: format!("grampus {}", words.join(" ")), result });
    }
    for option in OPTIONS.iter().filter(|option| said.contains(**option)) {
        let setting = ["--set".to_string(), format!("{option}=true")];
        let result = judge(&start_and_read(image, data, &setting));
        done.push(Remedied { command: format!("--set {option}=true"), result });
    }
    let names_online = ONLINE.iter().any(|(command, _)| is_named(&[command])) || said.contains(DROP);
    if !is_down && done.is_empty() && names_online {
        done.extend(online(image, data));
    }
    done
}

/// The command that the message shows, whose numbers and names are masked.
fn restore_marker(image: &Image, data: &Path) -> Remedied {
    let shown = "printf 'Grampus root directory\\nformat 1\\n' > 'DIR/grampus.root'";
    let command = shown.replace("DIR", data.to_str().unwrap());
    let output = run(std::process::Command::new("sh").args(["-c", &command]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    Remedied { command: shown.into(), result: judge(&start_and_read(image, data, &[])) }
}

/// Runs the commands that the log names, until it names no new ones.
fn online(image: &Image, data: &Path) -> Vec<Remedied> {
    let server = match Started::start(data, &[]) {
        Ok(server) => server,
        Err(errors) => return vec![Remedied { command: "start".into(), result: Err(errors) }],
    };
    // Regions are opened, and what is wrong with them is logged.
    server.content(image);
    let mut done: BTreeMap<String, Result<(), String>> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    loop {
        let log = server.errors();
        let next = commands_in(&log).into_iter().find(|(_, words)| !taken.contains(words));
        let Some((shown, words)) = next else { break };
        let result = server.command(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(drop);
        let known = done.entry(shown).or_insert(Ok(()));
        *known = std::mem::replace(known, Ok(())).and(result);
        taken.insert(words);
    }
    let differences = compare(&image.content, &server.content(image));
    let outcome = judge_differences(&differences);
    let with_outcome = |result: Result<(), String>| result.and(outcome.clone());
    done.into_iter().map(|(command, result)| Remedied { command, result: with_outcome(result) }).collect()
}

/// The commands that a log names: as the page shows them, and with their arguments.
fn commands_in(log: &str) -> Vec<(String, Vec<String>)> {
    let mut commands = Vec::new();
    for (command, has_region) in ONLINE {
        for rest in log.split(&format!("grampus {command}")).skip(1) {
            let region = rest.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next();
            let mut words: Vec<String> = command.split(' ').map(String::from).collect();
            words.extend(region.filter(|_| has_region).map(String::from));
            commands.push((format!("grampus {command}"), words));
        }
    }
    for (before, _) in log.match_indices(DROP).map(|(at, _)| log.split_at(at)) {
        let table = before.rsplit(' ').next().unwrap();
        let dropping = format!("disable '{table}'; drop '{table}'");
        let words = ["shell", "-e", &dropping].map(String::from).to_vec();
        commands.push(("disable and drop the table".into(), words));
    }
    commands
}

/// Whether a server that was started after a repair serves without wrong answers.
fn judge(outcome: &Outcome) -> Result<String, String> {
    match &outcome.seen {
        Seen::Down(message) => Err(format!("still down: {message}")),
        Seen::Serving(differences) => judge_differences(differences),
    }
}

fn judge_differences(differences: &Differences) -> Result<String, String> {
    if !differences.wrong.is_empty() {
        return Err(format!("{:?}", differences.wrong));
    }
    // A table that was dropped is not found: that is what was asked for.
    let is_dropped = |failing: &&Failing| failing.classes.iter().eq(["TableNotFoundException"]);
    let dropped = differences.failing.values().filter(is_dropped).count();
    let failing = differences.failing.len() - dropped;
    if failing > 0 {
        return Err(format!("still failing: {:?}", differences.failing));
    }
    let lost: usize = differences.lost.values().sum();
    Ok(match (lost, dropped) {
        (0, 0) => "all is read again".into(),
        (lost, 0) => format!("{lost} rows lost"),
        (0, 1) => "the table is lost".into(),
        (0, dropped) => format!("{dropped} tables are lost"),
        (lost, dropped) => format!("{lost} rows and {dropped} tables are lost"),
    })
}
