//! Remedies that a message names, applied as by an operator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{grampus, run, text};
use crate::image::Image;
use crate::probe::{Availability, Differences, Failing, Outcome, StartedServer, compare, start_and_read};

/// An applied remedy and its result.
#[derive(Clone, Debug)]
pub struct AppliedRemedy {
    /// The command or option.
    pub command: String,
    /// The remaining loss if the server serves afterwards and no response is wrong; otherwise the
    /// failure.
    pub result: Result<String, String>,
}

/// Commands for a stopped server.
const OFFLINE: [&[&str]; 3] = [&["repair", "meta"], &["repair", "master"], &["repair", "root"]];
/// Options that allow a server to start.
const OPTIONS: [&str; 1] = ["hbase.hlog.split.skip.errors"];
/// Commands for a running server, and whether a region name follows them.
const ONLINE: [(&str, bool); 3] = [("repair region", true), ("repair adopt", true), ("repair holes", false)];
/// A message's suggestion for a completely lost table. The table's name precedes it.
const DROP: &str = ", or disable and drop the table";

/// Applies the remedies that the messages name.
pub fn apply_remedies(image: &Image, data: &Path, outcome: &Outcome) -> Vec<AppliedRemedy> {
    let mut messages = outcome.lines.join("\n");
    if let Availability::Down(message) = &outcome.availability {
        messages.push_str(message);
    }
    let is_named = |words: &[&str]| messages.contains(&format!("grampus {}", words.join(" ")));
    let mut done = Vec::new();
    let is_down = matches!(outcome.availability, Availability::Down(_));
    if is_down && messages.contains("printf 'Grampus root directory") {
        done.push(restore_marker(image, data));
    }
    if is_down && messages.contains("or begin with another root directory") {
        done.push(AppliedRemedy {
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
        done.push(AppliedRemedy { command: format!("grampus {}", words.join(" ")), result });
    }
    for option in OPTIONS.iter().filter(|option| messages.contains(**option)) {
        let setting = ["--set".to_string(), format!("{option}=true")];
        let result = judge(&start_and_read(image, data, &setting));
        done.push(AppliedRemedy { command: format!("--set {option}=true"), result });
    }
    let names_online = ONLINE.iter().any(|(command, _)| is_named(&[command])) || messages.contains(DROP);
    if !is_down && done.is_empty() && names_online {
        done.extend(apply_online_remedies(image, data));
    }
    done
}

/// Runs the displayed command that restores the marker. In the message, its numbers and names are
/// masked.
fn restore_marker(image: &Image, data: &Path) -> AppliedRemedy {
    let shown = "printf 'Grampus root directory\\nformat 1\\n' > 'DIR/grampus.root'";
    let command = shown.replace("DIR", data.to_str().unwrap());
    let output = run(std::process::Command::new("sh").args(["-c", &command]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    AppliedRemedy { command: shown.into(), result: judge(&start_and_read(image, data, &[])) }
}

/// Runs the commands that the log names until it names no new ones.
fn apply_online_remedies(image: &Image, data: &Path) -> Vec<AppliedRemedy> {
    let server = match StartedServer::start(data, &[]) {
        Ok(server) => server,
        Err(errors) => return vec![AppliedRemedy { command: "start".into(), result: Err(errors) }],
    };
    // A read opens the regions, which logs their problems.
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
    done.into_iter()
        .map(|(command, result)| AppliedRemedy { command, result: with_outcome(result) })
        .collect()
}

/// The commands that a log names: as shown on the page, and as arguments.
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

/// The result of a start after a repair.
fn judge(outcome: &Outcome) -> Result<String, String> {
    match &outcome.availability {
        Availability::Down(message) => Err(format!("still down: {message}")),
        Availability::Serving(differences) => judge_differences(differences),
    }
}

fn judge_differences(differences: &Differences) -> Result<String, String> {
    if !differences.wrong.is_empty() {
        return Err(format!("{:?}", differences.wrong));
    }
    // A dropped table is missing as intended.
    let is_dropped = |failing: &&Failing| failing.classes.iter().eq(["TableNotFoundException"]);
    let dropped = differences.failing.values().filter(is_dropped).count();
    let failing = differences.failing.len() - dropped;
    if failing > 0 {
        return Err(format!("still failing: {:?}", differences.failing));
    }
    let lost: usize = differences.lost.values().sum();
    Ok(match (lost, dropped) {
        (0, 0) => "all rows are readable".into(),
        (lost, 0) => format!("{lost} rows lost"),
        (0, 1) => "the table is lost".into(),
        (0, dropped) => format!("{dropped} tables are lost"),
        (lost, dropped) => format!("{lost} rows and {dropped} tables are lost"),
    })
}
