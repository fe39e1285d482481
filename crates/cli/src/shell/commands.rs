//! The commands, one file per group. A command has a name, help texts, and a function on the
//! session.

mod aggregate;
mod alter;
mod ddl;
mod formatter;
mod general;
mod namespaces;
mod procedures;
mod read;
mod regions;
mod selection;
mod servers;
mod snapshots;
mod splits;
mod tools;
mod write;

use base::BoxFuture;
use regex::Regex;

use super::arguments::{Arguments, Options};
use super::error::{Result, ShellError, usage};
use super::session::ShellSession;
use super::value::Value;

/// What the shell prints after a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The duration.
    Done,
    /// The duration, and at a prompt the command's value as Ruby would show it.
    Value(String),
    /// Nothing.
    Silent,
    /// Nothing; the shell ends.
    Exit,
}

type RunCommand = for<'a> fn(&'a mut ShellSession, Arguments) -> BoxFuture<'a, Result<Outcome>>;

/// The number of values that a command takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arity {
    min: usize,
    /// `None`: unlimited.
    max: Option<usize>,
}

impl Arity {
    const fn exactly(count: usize) -> Arity {
        Arity { min: count, max: Some(count) }
    }

    const fn between(min: usize, max: usize) -> Arity {
        Arity { min, max: Some(max) }
    }

    const fn from(min: usize) -> Arity {
        Arity { min, max: None }
    }

    /// Rejects a wrong number of values with the message of HBase's shell, which is Ruby's.
    pub(crate) fn check(self, given: usize) -> Result<()> {
        let expected = match self.max {
            Some(max) if (self.min..=max).contains(&given) => return Ok(()),
            None if given >= self.min => return Ok(()),
            Some(max) if max == self.min => format!("{max}"),
            Some(max) => format!("{}..{max}", self.min),
            None => format!("{}+", self.min),
        };
        Err(ShellError::Usage(format!("wrong number of arguments (given {given}, expected {expected})")))
    }
}

/// A command of the shell.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The number of values that it takes.
    pub(crate) arity: Arity,
    /// Other names for it.
    pub(crate) aliases: &'static [&'static str],
    /// A description in one line, without a period.
    pub(crate) summary: &'static str,
    /// Examples, one per line, and further explanations.
    pub(crate) usage: &'static str,
    pub(crate) run: RunCommand,
}

/// A group of commands. Names follow HBase's groups.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) commands: &'static [Command],
}

/// All groups.
pub(crate) const GROUPS: &[Group] = &[
    general::GROUP,
    ddl::GROUP,
    alter::GROUP,
    namespaces::GROUP,
    read::GROUP,
    write::GROUP,
    aggregate::GROUP,
    tools::GROUP,
    regions::GROUP,
    servers::GROUP,
    snapshots::GROUP,
    procedures::GROUP,
];

/// Commands of HBase's shell that are not supported yet. They get an error of their own.
const UNSUPPORTED: &[&str] = &[
    "alter_async",
    "clear_slowlog_responses",
    "clone_table_schema",
    "close_region",
    "compact_rs",
    "compaction_state",
    "disable_all",
    "drop_all",
    "enable_all",
    "get_balancer_decisions",
    "get_balancer_rejections",
    "get_largelog_responses",
    "get_slowlog_responses",
    "get_table",
    "grant",
    "list_peers",
    "list_quotas",
    "list_regions",
    "locate_region",
    "normalize",
    "processlist",
    "revoke",
    "set_quota",
    "show_filters",
    "table_help",
    "update_all_config",
    "update_config",
    "user_permission",
    "wal_roll",
    "zk_dump",
];

/// Looks up a command by name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    let mut all = GROUPS.iter().flat_map(|group| group.commands);
    all.find(|command| command.name == name || command.aliases.contains(&name))
}

/// Whether HBase's shell has the command, but this one does not yet.
pub(crate) fn is_unsupported(name: &str) -> bool {
    UNSUPPORTED.contains(&name)
}

/// Checks `ATTRIBUTES` and drops them: without coprocessors they have no effect.
fn take_attributes(options: &mut Options) -> Result<()> {
    match options.take("ATTRIBUTES") {
        None | Some(Value::Hash(_)) => Ok(()),
        Some(_) => usage("Attributes must be a Hash type"),
    }
}

/// Maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Parses a pattern for whole names. Without an argument, the pattern matches all names.
fn pattern(arguments: &mut Arguments) -> Result<Regex> {
    let text = match arguments.next() {
        Some(value) => value.string().ok_or_else(|| ShellError::Usage(format!("{value} is not text")))?,
        None => ".*".to_string(),
    };
    regex::RegexBuilder::new(&format!("^(?:{text})$"))
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| ShellError::Usage(format!("invalid pattern {text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_command_has_help() {
        let mut names: Vec<&str> = UNSUPPORTED.to_vec();
        for command in GROUPS.iter().flat_map(|group| group.commands) {
            names.push(command.name);
            names.extend(command.aliases);
            assert!(!command.summary.is_empty() && !command.summary.ends_with('.'), "{}", command.name);
            assert!(command.usage.lines().all(|line| line.len() <= 110), "{}", command.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn examples_in_the_help_are_in_the_language() {
        for command in GROUPS.iter().flat_map(|group| group.commands) {
            let examples = command.usage.lines().filter_map(|line| line.strip_prefix("  grampus> "));
            let mut seen = 0;
            for example in examples {
                let found = crate::shell::parser::parse(example, crate::shell::error::Position::START);
                let statements = found.unwrap_or_else(|error| panic!("{example}: {error}"));
                let written = statements[0].name.as_str();
                assert!(written == command.name || command.aliases.contains(&written), "{example}");
                seen += 1;
            }
            assert!(seen > 0, "{} has no example", command.name);
        }
    }
}
