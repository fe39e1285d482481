//! `grampus generate`: writes man pages and shell completions from the declarations of the command
//! line and of the options. Packages contain the result.

use base::config::{OPTIONS, variable_of};
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use manual::Setting;

use crate::arguments::{Arguments, GenerateArguments};

/// The argument `--set KEY=VALUE`.
const SET: &str = "overrides";
const OPTIONS_INTRODUCTION: &str = "\
     Options have the keys of hbase-site.xml. They are set in that file, in the directory that --config or \
     HBASE_CONF_DIR names; by environment variables; or with --set KEY=VALUE, which overrides both.";

/// Writes all files.
///
/// # Errors
/// One line that states which directory cannot be written.
pub fn run(arguments: &GenerateArguments) -> Result<(), String> {
    let (dir, command) = (&arguments.dir, Arguments::command());
    let written = manual::write_pages(&command, "grampus", dir)
        .and_then(|()| {
            let title = "options of the server";
            manual::write_settings_page("grampus-config", title, OPTIONS_INTRODUCTION, &settings(), dir)
        })
        .and_then(|()| manual::write_completions(with_keys(visible(command)), "grampus", dir));
    written.map_err(|error| format!("cannot write to {}: {error}", dir.display()))
}

/// The command line without hidden subcommands. clap cannot remove a subcommand, so a new command
/// gets the others.
fn visible(command: Command) -> Command {
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    Command::new("grampus")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .subcommands(shown.cloned())
}

/// With the keys of all options as the values of `--set`.
fn with_keys(command: Command) -> Command {
    let names = command.get_subcommands().map(|subcommand| subcommand.get_name().to_string());
    let names: Vec<String> = names.collect();
    let has_set = command.get_arguments().any(|argument| argument.get_id() == SET);
    let command = match has_set {
        true => {
            let keys = OPTIONS.iter().map(|option| format!("{}=", option.key));
            let keys = PossibleValuesParser::new(keys.collect::<Vec<_>>());
            command.mut_arg(SET, |argument| argument.value_parser(keys))
        }
        false => command,
    };
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_keys))
}

fn settings() -> Vec<Setting> {
    let lines = |doc: &[&str]| doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
    let or_empty = |default: &str| if default.is_empty() { "empty".to_string() } else { default.to_string() };
    let setting = |option: &base::config::OptionInfo| Setting {
        section: option.section.to_string(),
        key: option.key.to_string(),
        purpose: lines(option.doc),
        properties: vec![
            ("default", or_empty(option.default)),
            ("value", option.form.to_string()),
            ("variable", variable_of(option.key)),
        ],
    };
    OPTIONS.iter().map(setting).collect()
}
