//! Ways forward that a message names, taken as an operator would.

use std::path::Path;

use crate::common::{grampus, run, text};
use crate::image::Image;
use crate::probe::{Outcome, Seen, Started, compare, start_and_read};

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
/// Commands for a running server; the region or table is in the message.
const ONLINE: [&[&str]; 4] =
    [&["repair", "region"], &["repair", "adopt"], &["repair", "holes"], &["repair", "table"]];

/// Does what the messages name.
pub fn follow(image: &Image, data: &Path, outcome: &Outcome) -> Vec<Remedied> {
    let mut said = outcome.lines.join("\n");
    if let Seen::Down(message) = &outcome.seen {
        said.push_str(message);
    }
    let is_named = |words: &[&str]| said.contains(&format!("grampus {}", words.join(" ")));
    let mut done = Vec::new();
    if matches!(outcome.seen, Seen::Down(_)) {
        if said.contains("printf 'Grampus root directory") {
            done.push(restore_marker(image, data));
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
        return done;
    }
    let named: Vec<_> = ONLINE.iter().filter(|words| is_named(words)).collect();
    if !named.is_empty() {
        done.extend(online(image, data, &named));
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

fn online(image: &Image, data: &Path, named: &[&&[&str]]) -> Vec<Remedied> {
    let server = match Started::start(data, &[]) {
        Ok(server) => server,
        Err(errors) => return vec![Remedied { command: "start".into(), result: Err(errors) }],
    };
    let mut done = Vec::new();
    // The message in the log names the region.
    let before = server.errors();
    for words in named {
        let command = words.join(" ");
        let argument = before.split(&format!("grampus {command} ")).nth(1);
        let argument =
            argument.and_then(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').next());
        let mut all = words.to_vec();
        all.extend(argument.filter(|_| words[1] != "holes"));
        let result = server.command(&all);
        let differences = compare(&image.content, &server.content(image));
        let result = match result {
            Err(printed) => Err(printed),
            Ok(_) if !differences.failing.is_empty() => {
                Err(format!("still failing: {:?}", differences.failing))
            }
            Ok(_) => Ok(format!("{} rows lost", differences.lost.values().sum::<usize>())),
        };
        done.push(Remedied { command: format!("grampus {command}"), result });
    }
    done
}

/// Whether a server that was started after a repair serves without wrong answers.
fn judge(outcome: &Outcome) -> Result<String, String> {
    match &outcome.seen {
        Seen::Down(message) => Err(format!("still down: {message}")),
        Seen::Serving(differences) if !differences.wrong.is_empty() => {
            Err(format!("{:?}", differences.wrong))
        }
        Seen::Serving(differences) => {
            let lost: usize = differences.lost.values().sum();
            let failing = differences.failing.len();
            match (lost, failing) {
                (0, 0) => Ok("all is read again".into()),
                (lost, 0) => Ok(format!("{lost} rows lost")),
                (lost, failing) => Ok(format!("{lost} rows lost, {failing} tables affected")),
            }
        }
    }
}
