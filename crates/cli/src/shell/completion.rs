//! Completion with the Tab key: commands at the start of a command, tables and families within
//! quotes, names of options elsewhere. Names of tables are fetched in the background before each
//! prompt, so that Tab never waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use client::Client;

use super::commands;
use super::text::binary;

/// Names of options that completion offers.
const OPTIONS: &[&str] = &[
    "BLOCKCACHE",
    "BLOCKSIZE",
    "BLOOMFILTER",
    "BY",
    "CACHE",
    "CACHE_BLOCKS",
    "COLUMN",
    "COLUMNS",
    "COMPRESSION",
    "CONFIGURATION",
    "DATA_BLOCK_ENCODING",
    "DURABILITY",
    "FILTER",
    "FORMATTER",
    "INTERVAL",
    "IN_MEMORY",
    "KEEP_DELETED_CELLS",
    "LIMIT",
    "MAXLENGTH",
    "MAX_FILESIZE",
    "MEMSTORE_FLUSHSIZE",
    "METADATA",
    "METHOD",
    "MIN_VERSIONS",
    "NAME",
    "NUMREGIONS",
    "ONLY",
    "RAW",
    "READONLY",
    "REVERSED",
    "ROWPREFIXFILTER",
    "SKIP_FLUSH",
    "SPLITALGO",
    "SPLITS",
    "SPLITS_FILE",
    "STARTROW",
    "STOPROW",
    "TIMERANGE",
    "TIMESTAMP",
    "TTL",
    "VERSIONS",
];

/// The names of tables and families, as of the last refresh.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

impl Names {
    /// Fetches the names of tables and their families. A failure leaves them unchanged.
    pub(crate) async fn refresh(&self, client: &Client) {
        let Ok(tables) = client.admin().list_descriptors(None, false).await else { return };
        let families = |table: &cell::schema::TableDescriptor| {
            table.families.keys().map(|family| format!("{}:", binary(family))).collect()
        };
        let names = tables.iter().map(|table| (table.name.to_string(), families(table))).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    fn with_prefix(&self, prefix: &str, table: Option<&str>) -> Vec<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |name: &&String| name.starts_with(prefix);
        match table.and_then(|table| names.get(table)) {
            Some(families) => families.iter().filter(fits).cloned().collect(),
            None => names.keys().filter(fits).cloned().collect(),
        }
    }
}

/// The candidates for the last word of `before`, and the position where that word begins.
pub(crate) fn complete(before: &str, names: &Names) -> (usize, Vec<String>) {
    let command_start = start_of_command(before);
    let command = &before[command_start..];
    if let Some((open, quote)) = open_quote(command) {
        let prefix = &command[open + 1..];
        let table = first_text(&command[..open]);
        let closed = |name: String| if name.ends_with(':') { name } else { format!("{name}{quote}") };
        let found = names.with_prefix(prefix, table).into_iter().map(closed).collect();
        return (command_start + open + 1, found);
    }
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let word_start = command.rfind(|c| !is_of_word(c)).map_or(0, |at| at + 1);
    let prefix = &command[word_start..];
    let found = match command[..word_start].trim().is_empty() {
        true => command_names(prefix),
        false if prefix.is_empty() => Vec::new(),
        false => OPTIONS.iter().filter(|name| name.starts_with(prefix)).map(ToString::to_string).collect(),
    };
    (command_start + word_start, found)
}

fn command_names(prefix: &str) -> Vec<String> {
    let all = commands::GROUPS.iter().flat_map(|group| group.commands);
    let names = all.flat_map(|command| std::iter::once(&command.name).chain(command.aliases));
    let mut found: Vec<String> =
        names.filter(|name| name.starts_with(prefix)).map(ToString::to_string).collect();
    found.sort_unstable();
    found
}

/// The start of the last command of a line: after a semicolon outside of quotes.
fn start_of_command(before: &str) -> usize {
    let mut quote = None;
    let mut start = 0;
    for (at, c) in before.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ';') => start = at + 1,
            _ => {}
        }
    }
    start
}

/// The quote that is open at the end, and its position.
fn open_quote(command: &str) -> Option<(usize, char)> {
    let mut open = None;
    for (at, c) in command.char_indices() {
        match open {
            None if c == '\'' || c == '"' => open = Some((at, c)),
            Some((_, quote)) if quote == c => open = None,
            _ => {}
        }
    }
    open
}

/// The first quoted text: the table, for most commands.
fn first_text(command: &str) -> Option<&str> {
    let start = command.find(['\'', '"'])?;
    let quote = command[start..].chars().next()?;
    let rest = &command[start + 1..];
    rest.find(quote).map(|end| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, start: usize, expected: &str) {
        let tables = [("t1", vec!["cf:", "cg:", "f:"]), ("t2", vec![]), ("user", vec!["a:"])];
        let owned = |(name, families): (&str, Vec<&str>)| {
            (name.to_string(), families.into_iter().map(str::to_string).collect())
        };
        let names = Names(Arc::new(Mutex::new(tables.into_iter().map(owned).collect())));
        let (at, found) = complete(before, &names);
        assert_eq!((at, found.join(" ").as_str()), (start, expected), "{before}");
    }

    #[test]
    fn each_position_completes_its_own_names() {
        check("trunc", 0, "truncate truncate_preserve");
        check("list; des", 6, "desc describe describe_namespace");
        check("scan 't", 6, "t1' t2'");
        check("scan \"us", 6, "user\"");
        check("get 't1', 'r', 'c", 16, "cf: cg:");
        check("put 't2', 'a;b", 11, "");
        check("scan 't1', {LIM", 12, "LIMIT");
        check("scan 't1', {COL", 12, "COLUMN COLUMNS");
        check("scan 't1', ", 11, "");
        check("scan '\u{e9}", 6, "");
    }
}
