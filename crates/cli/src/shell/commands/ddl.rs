//! Commands that make, show and remove tables.

use bytes::Bytes;
use cell::schema::{TableDescriptor, TableName};
use wire::exception::class;
use wire::meta::TableState;

use super::{Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::schema;
use crate::shell::session::Session;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "ddl",
    commands: &[
        Command {
            name: "create",
            aliases: &[],
            summary: "Make a table: its name, its families, and options of the table",
            usage: "  grampus> create 't1', 'f1', 'f2'\n  \
                    grampus> create 't1', {NAME => 'f1', VERSIONS => 5, TTL => 86400, COMPRESSION => 'GZ'}\n  \
                    grampus> create 't1', 'f1', SPLITS => ['10', '20', '30']\n  \
                    grampus> create 'ns1:t1', {NAME => 'f1'}, MAX_FILESIZE => 1073741824, METADATA => {'k' => 'v'}\n  \
                    grampus> create 't1', {NAME => 'f1', CONFIGURATION => {'key' => 'value'}}",
            run: |session, arguments| Box::pin(create(session, arguments)),
        },
        Command {
            name: "list",
            aliases: &[],
            summary: "Show the names of tables, all of them or those that match a regular expression",
            usage: "  grampus> list\n  grampus> list 'abc.*'",
            run: |session, arguments| Box::pin(list(session, arguments)),
        },
        Command {
            name: "describe",
            aliases: &["desc"],
            summary: "Show the families of a table and all attributes",
            usage: "  grampus> describe 't1'\n  grampus> desc 'ns1:t1'",
            run: |session, arguments| Box::pin(describe(session, arguments)),
        },
        Command {
            name: "exists",
            aliases: &[],
            summary: "Say whether there is a table",
            usage: "  grampus> exists 't1'",
            run: |session, arguments| Box::pin(exists(session, arguments)),
        },
        Command {
            name: "enable",
            aliases: &[],
            summary: "Serve a disabled table again",
            usage: "  grampus> enable 't1'",
            run: |session, arguments| Box::pin(enable(session, arguments)),
        },
        Command {
            name: "disable",
            aliases: &[],
            summary: "Stop serving a table; its data stays",
            usage: "  grampus> disable 't1'",
            run: |session, arguments| Box::pin(disable(session, arguments)),
        },
        Command {
            name: "is_enabled",
            aliases: &[],
            summary: "Say whether a table is enabled",
            usage: "  grampus> is_enabled 't1'",
            run: |session, arguments| Box::pin(is_in_state(session, arguments, TableState::Enabled)),
        },
        Command {
            name: "is_disabled",
            aliases: &[],
            summary: "Say whether a table is disabled",
            usage: "  grampus> is_disabled 't1'",
            run: |session, arguments| Box::pin(is_in_state(session, arguments, TableState::Disabled)),
        },
        Command {
            name: "drop",
            aliases: &[],
            summary: "Remove a disabled table and its data",
            usage: "  grampus> drop 't1'",
            run: |session, arguments| Box::pin(drop_table(session, arguments)),
        },
    ],
};

async fn create(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let (table, split_keys) = new_table(&mut arguments)?;
    arguments.finish()?;
    session.client.admin().create_table(&table, &split_keys).await?;
    session.printer.line(&format!("Created table {}", table.name))?;
    Ok(Outcome::Value(format!("Hbase::Table - {}", table.name)))
}

/// The table that the arguments of `create` describe, and where it is split.
fn new_table(arguments: &mut Arguments) -> Result<(TableDescriptor, Vec<Bytes>)> {
    let mut table = TableDescriptor::new(arguments.table()?);
    let mut split_keys = Vec::new();
    while let Some(value) = arguments.next() {
        let mut options = match value {
            Value::Hash(entries) => Options::new("create", entries)?,
            plain => {
                let name = plain.bytes().ok_or_else(|| ShellError::Usage(format!("{plain} is no family")))?;
                add_family(&mut table, schema::family(name, Options::new("create", Vec::new())?)?)?;
                continue;
            }
        };
        options.refuse(&["SPLITS_FILE", "NUMREGIONS", "SPLITALGO"])?;
        if let Some(splits) = options.take("SPLITS") {
            split_keys = schema::split_keys(splits)?;
        }
        match options.bytes("NAME")? {
            Some(name) => add_family(&mut table, schema::family(name, options)?)?,
            None => schema::set_table_options(&mut table, options)?,
        }
    }
    match table.families.is_empty() {
        true => usage("Table must have at least one column family"),
        false => Ok((table, split_keys)),
    }
}

fn add_family(table: &mut TableDescriptor, family: cell::schema::FamilyDescriptor) -> Result<()> {
    let name = family.name.clone();
    match table.families.insert(name.clone(), family) {
        Some(_) => usage(format!("family {} is given twice", crate::shell::text::quoted(&name))),
        None => Ok(()),
    }
}

async fn list(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let regex = match arguments.next() {
        Some(value) => Some(value.string().ok_or_else(|| ShellError::Usage(format!("{value} is no text")))?),
        None => None,
    };
    arguments.finish()?;
    let tables = session.client.admin().list_tables(regex.as_deref(), false).await?;
    session.printer.row("TABLE")?;
    for table in &tables {
        session.printer.row(&table.to_string())?;
    }
    session.printer.footer(tables.len() as u64)?;
    let names: Vec<String> = tables.iter().map(|table| format!("\"{table}\"")).collect();
    Ok(Outcome::Value(format!("[{}]", names.join(", "))))
}

async fn describe(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let name = arguments.table()?;
    arguments.finish()?;
    let admin = session.client.admin();
    let table = admin.describe(&name).await?;
    let state = if admin.is_enabled(&name).await? { "ENABLED" } else { "DISABLED" };
    let printer = &mut session.printer;
    printer.row(&format!("Table {name} is {state}"))?;
    printer.row(&format!("{name}{}", schema::table_attributes(&table)))?;
    printer.row("COLUMN FAMILIES DESCRIPTION")?;
    for family in table.families.values() {
        printer.row(&schema::family_attributes(family))?;
        printer.line("")?;
    }
    printer.footer(table.families.len() as u64)?;
    // HBase tells the table's quotas here, or this.
    printer.line("Quota is disabled")?;
    Ok(Outcome::Done)
}

async fn exists(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    let exists = session.client.admin().table_exists(&table).await?;
    let does = if exists { "does exist" } else { "does not exist" };
    session.printer.row(&format!("Table {table} {does}"))?;
    Ok(Outcome::Value(exists.to_string()))
}

async fn is_in_state(session: &mut Session, mut arguments: Arguments, wanted: TableState) -> Result<Outcome> {
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

async fn enable(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    // As in HBase's shell: what is so already is no error.
    if state(&session.client, &table).await? != TableState::Enabled {
        session.client.admin().enable_table(&table).await?;
    }
    Ok(Outcome::Done)
}

async fn disable(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    if state(&session.client, &table).await? != TableState::Disabled {
        session.client.admin().disable_table(&table).await?;
    }
    Ok(Outcome::Done)
}

async fn drop_table(session: &mut Session, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
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
        new_table(&mut Arguments::new("create", statement.values))
    }

    fn refused(source: &str) -> String {
        made(source).unwrap_err().to_string()
    }

    #[test]
    fn a_table_is_made_of_families_and_options() {
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
    fn what_makes_no_table_is_refused() {
        assert_eq!(refused("'t'"), "Table must have at least one column family");
        assert_eq!(refused("'t', 'f', 'f'"), "family 'f' is given twice");
        assert_eq!(refused("'t', 'f', NUMREGIONS => 5"), "NUMREGIONS of create is not supported yet");
        assert_eq!(
            refused("'t', {NAME => 'f', COLOUR => 1}"),
            "create has no option COLOUR; see: help 'create'"
        );
        assert_eq!(refused("'t', 'f', COLOUR => 1"), "create has no option COLOUR; see: help 'create'");
        assert!(refused("'t', ['f']").contains("no family"));
        assert!(refused("").contains("wants the name of a table"));
    }
}
