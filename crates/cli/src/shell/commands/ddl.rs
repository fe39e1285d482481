//! Commands that create, show and delete tables.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use proto::exception::class;
use wire::meta::TableState;

use super::{Arity, Command, Group, Outcome, splits};
use crate::shell::arguments::{Arguments, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::output::Printer;
use crate::shell::schema;
use crate::shell::session::ShellSession;
use crate::shell::text::binary;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "ddl",
    commands: &[
        Command {
            name: "create",
            arity: Arity::from(1),
            aliases: &[],
            summary: "Create a table: name, families, and options of the table",
            usage: "  grampus> create 't1', 'f1', 'f2'\n  \
                    grampus> create 't1', {NAME => 'f1', VERSIONS => 5, TTL => 86400, COMPRESSION => 'GZ'}\n  \
                    grampus> create 't1', 'f1', SPLITS => ['10', '20', '30']\n  \
                    grampus> create 't1', 'f1', SPLITS_FILE => 'splits.txt'\n  \
                    grampus> create 't1', 'f1', {NUMREGIONS => 15, SPLITALGO => 'HexStringSplit'}\n  \
                    grampus> create 'ns1:t1', {NAME => 'f1'}, MAX_FILESIZE => 1073741824, METADATA => {'k' => 'v'}\n  \
                    grampus> create 't1', {NAME => 'f1', CONFIGURATION => {'key' => 'value'}}",
            run: |session, arguments| Box::pin(create(session, arguments)),
        },
        Command {
            name: "get_splits",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show the split keys of a table",
            usage: "  grampus> get_splits 't1'",
            run: |session, arguments| Box::pin(get_splits(session, arguments)),
        },
        Command {
            name: "list",
            arity: Arity::between(0, 1),
            aliases: &[],
            summary: "List tables, optionally those whose names match a regular expression",
            usage: "  grampus> list\n  grampus> list 'abc.*'",
            run: |session, arguments| Box::pin(list(session, arguments)),
        },
        Command {
            name: "describe",
            arity: Arity::exactly(1),
            aliases: &["desc"],
            summary: "Show the families and all attributes of a table",
            usage: "  grampus> describe 't1'\n  grampus> desc 'ns1:t1'",
            run: |session, arguments| Box::pin(describe(session, arguments)),
        },
        Command {
            name: "exists",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show whether a table exists",
            usage: "  grampus> exists 't1'",
            run: |session, arguments| Box::pin(exists(session, arguments)),
        },
        Command {
            name: "enable",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Enable a disabled table",
            usage: "  grampus> enable 't1'",
            run: |session, arguments| Box::pin(enable(session, arguments)),
        },
        Command {
            name: "disable",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Disable a table; its data remains",
            usage: "  grampus> disable 't1'",
            run: |session, arguments| Box::pin(disable(session, arguments)),
        },
        Command {
            name: "is_enabled",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show whether a table is enabled",
            usage: "  grampus> is_enabled 't1'",
            run: |session, arguments| Box::pin(is_in_state(session, arguments, TableState::Enabled)),
        },
        Command {
            name: "is_disabled",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show whether a table is disabled",
            usage: "  grampus> is_disabled 't1'",
            run: |session, arguments| Box::pin(is_in_state(session, arguments, TableState::Disabled)),
        },
        Command {
            name: "drop",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Delete a disabled table and its data",
            usage: "  grampus> drop 't1'",
            run: |session, arguments| Box::pin(drop_table(session, arguments)),
        },
    ],
};

async fn create(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let (table, split_keys) = new_table(&mut arguments, &mut session.printer)?;
    arguments.finish()?;
    session.client.admin().create_table(&table, &split_keys).await?;
    session.printer.line(&format!("Created table {}", table.name))?;
    Ok(Outcome::Value(format!("Hbase::Table - {}", table.name)))
}

/// The table that the arguments of `create` describe, and its split keys.
fn new_table(arguments: &mut Arguments, printer: &mut Printer) -> Result<(TableDescriptor, Vec<Bytes>)> {
    if arguments.peek().is_some_and(|name| !matches!(name, Value::Text(_))) {
        return usage("Table name must be of type String");
    }
    let mut table = TableDescriptor::new(arguments.table()?);
    let mut split_keys = Vec::new();
    while let Some(value) = arguments.next() {
        let mut options = match value {
            Value::Hash(entries) => Options::new("create", entries)?,
            Value::Text(name) => {
                add_family(&mut table, schema::family(name, Options::new("create", Vec::new())?)?, printer)?;
                continue;
            }
            other => {
                let (class, shown) = (other.ruby_class(), other.inspect());
                return usage(format!("{class} of {shown} is not of Hash or String type"));
            }
        };
        if let Some(name) = options.bytes("NAME")? {
            add_family(&mut table, schema::family(name, options)?, printer)?;
            continue;
        }
        if let Some(keys) = splits::take(&mut options, &mut table)? {
            split_keys = keys;
        }
        schema::set_table_options(&mut table, options)?;
    }
    match table.families.is_empty() {
        true => usage("Table must have at least one column family"),
        false => Ok((table, split_keys)),
    }
}

fn add_family(table: &mut TableDescriptor, family: FamilyDescriptor, printer: &mut Printer) -> Result<()> {
    let name = family.name.clone();
    if table.families.insert(name.clone(), family).is_some() {
        let name = binary(&name);
        printer.line(&format!("Family '{name}' already exists, the old one will be replaced"))?;
    }
    Ok(())
}

async fn get_splits(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    let regions = session.client.table(table).regions().await?;
    let keys: Vec<String> = regions.iter().map(|location| binary(&location.region.start_key)).collect();
    let keys: Vec<String> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    session.printer.line(&format!("Total number of splits = {}", keys.len() + 1))?;
    for key in &keys {
        session.printer.line(key)?;
    }
    let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    Ok(Outcome::Value(format!("[{}]", quoted.join(", "))))
}

/// Rejects a missing table, with the message of HBase's shell.
async fn check_exists(client: &client::Client, table: &TableName) -> Result<()> {
    match client.admin().table_exists(table).await? {
        true => Ok(()),
        false => Err(ShellError::Refused(format!("Table {table} does not exist."))),
    }
}

async fn list(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let regex = match arguments.next() {
        Some(value) => Some(value.string().ok_or_else(|| ShellError::Usage(format!("{value} is not text")))?),
        None => None,
    };
    arguments.finish()?;
    let tables = session.client.admin().list_tables(regex.as_deref(), false).await?;
    session.printer.head("TABLE")?;
    for table in &tables {
        session.printer.row(&table.to_string())?;
    }
    session.printer.footer(tables.len() as u64)?;
    let names: Vec<String> = tables.iter().map(|table| format!("\"{table}\"")).collect();
    Ok(Outcome::Value(format!("[{}]", names.join(", "))))
}

async fn describe(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = arguments.table()?;
    arguments.finish()?;
    check_exists(&session.client, &name).await?;
    let admin = session.client.admin();
    let table = admin.describe(&name).await?;
    let state = if admin.is_enabled(&name).await? { "ENABLED" } else { "DISABLED" };
    let printer = &mut session.printer;
    printer.row(&format!("Table {name} is {state}"))?;
    printer.row(&format!("{name}{}", schema::table_attributes(&table)))?;
    printer.head("COLUMN FAMILIES DESCRIPTION")?;
    for family in table.families.values() {
        printer.row(&schema::family_attributes(family))?;
        printer.line("")?;
    }
    printer.footer(table.families.len() as u64)?;
    // HBase prints the table's quotas here, or this.
    printer.line("Quota is disabled")?;
    if let Some(note) = schema::without_effect(&table) {
        printer.line(&note)?;
    }
    Ok(Outcome::Done)
}

async fn exists(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    let exists = session.client.admin().table_exists(&table).await?;
    let does = if exists { "does exist" } else { "does not exist" };
    session.printer.row(&format!("Table {table} {does}"))?;
    Ok(Outcome::Value(exists.to_string()))
}

async fn is_in_state(
    session: &mut ShellSession,
    mut arguments: Arguments,
    wanted: TableState,
) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    let is_so = state(&session.client, &table).await? == wanted;
    session.printer.row(&is_so.to_string())?;
    Ok(Outcome::Value(is_so.to_string()))
}

async fn state(client: &client::Client, table: &TableName) -> Result<TableState> {
    let state = client.admin().table_state(table).await?;
    state.ok_or_else(|| client::Error::TableNotFound(table.clone()).into())
}

async fn enable(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    check_exists(&session.client, &table).await?;
    // As in HBase's shell, enabling an enabled table is no error.
    if state(&session.client, &table).await? != TableState::Enabled {
        session.client.admin().enable_table(&table).await?;
    }
    Ok(Outcome::Done)
}

async fn disable(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    check_exists(&session.client, &table).await?;
    if state(&session.client, &table).await? != TableState::Disabled {
        session.client.admin().disable_table(&table).await?;
    }
    Ok(Outcome::Done)
}

async fn drop_table(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    check_exists(&session.client, &table).await?;
    let enabled = || ShellError::Refused(format!("Table {table} is enabled. Disable it first."));
    if state(&session.client, &table).await? == TableState::Enabled {
        return Err(enabled());
    }
    match session.client.admin().delete_table(&table).await {
        Ok(()) => Ok(Outcome::Done),
        Err(error) if error.is_class(class::TABLE_NOT_DISABLED) => Err(enabled()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;

    fn made(source: &str) -> Result<(TableDescriptor, Vec<Bytes>)> {
        let statement = parse(&format!("create {source}"), Position::START).unwrap().remove(0);
        let mut printer = Printer::new(Box::new(std::io::sink()), None, crate::shell::output::Style::Plain);
        new_table(&mut Arguments::new("create", statement.values), &mut printer)
    }

    fn refused(source: &str) -> String {
        made(source).unwrap_err().to_string()
    }

    #[test]
    fn a_table_is_built_from_families_and_options() {
        let (table, split_keys) = made(
            "'n:t', 'f', {NAME => 'g', VERSIONS => 3, CONFIGURATION => {'c' => 1}}, SPLITS => ['a', \"b\\xff\"], \
             MAX_FILESIZE => 5, METADATA => {'m' => 'x'}",
        )
        .unwrap();
        assert_eq!(table.name.to_string(), "n:t");
        assert_eq!(table.families.len(), 2);
        assert_eq!(table.families[&b"f"[..]].max_versions(), 1);
        assert_eq!(table.families[&b"g"[..]].max_versions(), 3);
        assert_eq!(table.families[&b"g"[..]].configuration["c"], "1");
        assert_eq!((table.attribute("MAX_FILESIZE"), table.attribute("m")), (Some("5"), Some("x")));
        assert_eq!(split_keys, [&b"a"[..], b"b\xff"]);
    }

    #[test]
    fn invalid_tables_are_rejected() {
        assert_eq!(refused("'t'"), "Table must have at least one column family");
        assert_eq!(refused("'t', 'f', 5"), "Integer of 5 is not of Hash or String type");
        assert_eq!(refused("5, 'f'"), "Table name must be of type String");
        assert_eq!(refused("'t', 'f', NUMREGIONS => 5"), "Split algorithm must be specified");
        assert_eq!(
            refused("'t', {NAME => 'f', COLOUR => 1}"),
            "create has no option COLOUR; see: help 'create'"
        );
        assert_eq!(refused("'t', 'f', COLOUR => 1"), "create has no option COLOUR; see: help 'create'");
        assert_eq!(refused("'t', ['f']"), "Array of [\"f\"] is not of Hash or String type");
        assert!(refused("").contains("requires the name of a table"));
    }
}
