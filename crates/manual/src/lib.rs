//! Man pages and shell completions of a command line, generated from its declaration, so that they
//! never differ from `--help`.
//!
//! Knows nothing about which command line it is.
#![allow(clippy::disallowed_methods, reason = "writes documentation, not files of a store")]

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

/// Writes the completions of `command` to `dir`: `NAME.bash`, `_NAME` for zsh, `NAME.fish`.
///
/// # Errors
/// The error of writing a file.
pub fn write_completions(mut command: Command, name: &str, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, name, dir)?;
    }
    Ok(())
}

/// Writes the man pages of `command` to `dir`: `NAME.1`, and one for each subcommand, such as
/// `NAME-SUBCOMMAND.1`. Hidden subcommands have none.
///
/// # Errors
/// The error of writing a file.
pub fn write_pages(command: &Command, name: &str, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let source = format!("{name} {}", command.get_version().unwrap_or_default());
    write_page(&command.clone().bin_name(name.to_string()), name, &source, dir)
}

fn write_page(command: &Command, name: &str, source: &str, dir: &Path) -> io::Result<()> {
    // The name of a page's file, and what users type: only the first has hyphens.
    let typed = command.get_bin_name().unwrap_or(name).to_string();
    let page = command.clone().name(name.to_string()).disable_help_subcommand(true);
    let mut text = Vec::new();
    Man::new(page).source(source).render(&mut text)?;
    fs::write(dir.join(format!("{name}.1")), text)?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let own = subcommand.get_name();
        let child = subcommand.clone().bin_name(format!("{typed} {own}"));
        write_page(&child, &format!("{name}-{own}"), source, dir)?;
    }
    Ok(())
}

/// A setting, as a man page of section 5 describes it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Heading under which it is listed.
    pub section: String,
    /// Its key.
    pub key: String,
    /// Purpose, in Markdown: paragraphs are separated by empty lines.
    pub purpose: String,
    /// Labels and values, such as the default.
    pub properties: Vec<(&'static str, String)>,
}

/// Writes a man page of section 5: an introduction, and settings in the order of `settings`.
///
/// # Errors
/// The error of writing the file.
pub fn write_settings_page(
    name: &str,
    title: &str,
    introduction: &str,
    settings: &[Setting],
    dir: &Path,
) -> io::Result<()> {
    let mut page = Roff::default();
    page.control("TH", [name, "5"]).control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {title}"))]);
    page.control("SH", ["DESCRIPTION"]).text([roman(introduction)]);
    let mut section = "";
    for setting in settings {
        if setting.section != section {
            section = &setting.section;
            page.control("SH", [section.to_uppercase().as_str()]);
        }
        page.control("TP", []).text([bold(setting.key.as_str())]);
        for (number, paragraph) in setting.purpose.split("\n\n").enumerate() {
            if number > 0 {
                page.control("IP", []);
            }
            page.text(spans(paragraph));
        }
        for (label, value) in &setting.properties {
            page.control("br", []).text([vec![roman(format!("{label}: "))], spans(value)].concat());
        }
    }
    fs::create_dir_all(dir)?;
    fs::write(dir.join(format!("{name}.5")), page.render())
}

/// Markdown's code spans in bold.
fn spans(text: &str) -> Vec<Inline> {
    let joined = text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { bold(part) } else { roman(part) };
    joined.split('`').enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn command() -> Command {
        let nested = Command::new("nested").about("Runs a part").arg(Arg::new("deep").long("deep"));
        let hidden = Command::new("secret").hide(true);
        let sub = Command::new("part").about("Has parts").subcommand(nested);
        Command::new("tool").version("1.2").about("A tool").subcommand(sub).subcommand(hidden)
    }

    fn dir(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("manual-{name}-{}", std::process::id()))
    }

    #[test]
    fn each_visible_subcommand_has_a_page() {
        let dir = dir("pages");
        write_pages(&command(), "tool", &dir).unwrap();
        let mut names: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["tool-part-nested.1", "tool-part.1", "tool.1"]);
        let nested = fs::read_to_string(dir.join("tool-part-nested.1")).unwrap();
        assert!(nested.contains("tool part nested") && nested.contains("deep"), "{nested}");
        let top = fs::read_to_string(dir.join("tool.1")).unwrap();
        assert!(top.contains("part") && !top.contains("secret"), "{top}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn settings_are_listed_with_their_properties() {
        let dir = dir("settings");
        let setting = Setting {
            section: "Memory".to_string(),
            key: "a.b".to_string(),
            purpose: "Bytes of `x`,\nas text.\n\nLarger: more.".to_string(),
            properties: vec![("default", "`1 MiB`".to_string())],
        };
        write_settings_page("tool-config", "options of tool", "All options.", &[setting], &dir).unwrap();
        let page = fs::read_to_string(dir.join("tool-config.5")).unwrap();
        for part in [".SH MEMORY", "\\fBa.b\\fR", "Bytes of \\fBx\\fR, as text.", "default: \\fB1 MiB\\fR"] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
