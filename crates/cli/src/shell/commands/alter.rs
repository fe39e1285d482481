//! Commands that change or truncate existing tables.

use cell::schema::{TableDescriptor, TableName};

use super::{Arity, Command, Group, Outcome};
use crate::shell::arguments::{Arguments, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::schema;
use crate::shell::session::ShellSession;
use crate::shell::value::Value;

pub(super) const GROUP: Group = Group {
    name: "ddl of existing tables",
    commands: &[
        Command {
            name: "alter",
            arity: Arity::from(1),
            aliases: &[],
            summary: "Add, change or delete families, or change attributes of a table, without disabling it",
            usage: "  grampus> alter 't1', NAME => 'f1', VERSIONS => 5\n  \
                    grampus> alter 't1', 'f1', {NAME => 'f2', IN_MEMORY => true}, {NAME => 'f3', TTL => '1 DAY'}\n  \
                    grampus> alter 't1', NAME => 'f1', METHOD => 'delete'\n  \
                    grampus> alter 't1', 'delete' => 'f1'\n  \
                    grampus> alter 't1', MAX_FILESIZE => 134217728, CONFIGURATION => {'key' => 'value'}\n  \
                    grampus> alter 't1', METHOD => 'table_att_unset', NAME => 'MAX_FILESIZE'\n  \
                    grampus> alter 't1', METHOD => 'table_conf_unset', NAME => ['key']",
            run: |session, arguments| Box::pin(alter(session, arguments)),
        },
        Command {
            name: "alter_status",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show how many regions of a table have applied its last change",
            usage: "  grampus> alter_status 't1'",
            run: |session, arguments| Box::pin(alter_status(session, arguments)),
        },
        Command {
            name: "truncate",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Delete all rows of a table, and recreate it with one region",
            usage: "  grampus> truncate 't1'",
            run: |session, arguments| Box::pin(truncate(session, arguments, false)),
        },
        Command {
            name: "truncate_preserve",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Delete all rows of a table, and keep its region boundaries",
            usage: "  grampus> truncate_preserve 't1'",
            run: |session, arguments| Box::pin(truncate(session, arguments, true)),
        },
    ],
};

async fn alter(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = arguments.table()?;
    check_exists(&session.client, &name).await?;
    let old = session.client.admin().describe(&name).await?;
    let new = altered(old, arguments)?;
    session.client.admin().modify_table(&new).await?;
    session.printer.line("Updating all regions with the new schema...")?;
    show_status(session, &name).await?;
    Ok(Outcome::Done)
}

/// Applies the arguments of `alter` to `table`.
fn altered(mut table: TableDescriptor, mut arguments: Arguments) -> Result<TableDescriptor> {
    let mut changes = 0;
    while let Some(value) = arguments.next() {
        changes += 1;
        let mut options = match value {
            Value::Hash(entries) => Options::new("alter", entries)?,
            plain => {
                let name =
                    plain.bytes().ok_or_else(|| ShellError::Usage(format!("{plain} is not a family")))?;
                set_family(&mut table, name, Options::new("alter", Vec::new())?)?;
                continue;
            }
        };
        if let Some(family) = options.bytes("delete")? {
            // As in HBase's shell, deleting a missing family is no error.
            table.families.remove(&family[..]);
            options.finish()?;
            continue;
        }
        match options.bytes("METHOD")? {
            Some(method) => apply_method(&mut table, &method, options)?,
            None => match options.bytes("NAME")? {
                Some(name) => set_family(&mut table, name, options)?,
                None => schema::set_table_options(&mut table, options)?,
            },
        }
    }
    arguments.finish()?;
    match changes {
        0 => usage("There should be at least one argument but the table name"),
        _ => Ok(table),
    }
}

fn apply_method(table: &mut TableDescriptor, method: &[u8], mut options: Options) -> Result<()> {
    let name = || {
        ShellError::Usage(format!("NAME parameter missing for {} method", String::from_utf8_lossy(method)))
    };
    match method {
        b"delete" => {
            let family = options.bytes("NAME")?.ok_or_else(name)?;
            table.families.remove(&family[..]);
            options.finish()
        }
        b"table_att" => schema::set_table_options(table, options),
        b"table_att_unset" => {
            for attribute in names(options.take("NAME").ok_or_else(name)?)? {
                if table.attributes.remove(attribute.as_bytes()).is_none() {
                    return usage(format!("Could not find attribute: {attribute}"));
                }
            }
            options.finish()
        }
        b"table_conf_unset" => {
            for key in names(options.take("NAME").ok_or_else(name)?)? {
                // HBase stores a table's settings among its attributes.
                let of_attributes = table.attributes.remove(key.as_bytes());
                if table.configuration.remove(&key).is_none() && of_attributes.is_none() {
                    return usage(format!("Could not find configuration: {key}"));
                }
            }
            options.finish()
        }
        other => usage(format!("Unknown method: {}", String::from_utf8_lossy(other))),
    }
}

/// Parses one name or an array of names.
fn names(value: Value) -> Result<Vec<String>> {
    let name = |value: &Value| {
        value.string().ok_or_else(|| ShellError::Usage(format!("NAME must be text, not {value}")))
    };
    match &value {
        Value::Array(values) => values.iter().map(name).collect(),
        one => Ok(vec![name(one)?]),
    }
}

/// Changes the attributes of a family that options name, or adds the family.
fn set_family(table: &mut TableDescriptor, name: Vec<u8>, options: Options) -> Result<()> {
    let family = match table.families.get(&name[..]) {
        Some(family) => schema::changed_family(family.clone(), options)?,
        None => schema::family(name, options)?,
    };
    table.families.insert(family.name.clone(), family);
    Ok(())
}

async fn check_exists(client: &client::Client, table: &TableName) -> Result<()> {
    match client.admin().table_exists(table).await? {
        true => Ok(()),
        false => Err(ShellError::Refused(format!("Can't find a table: {table}"))),
    }
}

async fn alter_status(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    check_exists(&session.client, &table).await?;
    show_status(session, &table).await?;
    Ok(Outcome::Done)
}

async fn show_status(session: &mut ShellSession, table: &TableName) -> Result<()> {
    let admin = session.client.admin();
    let (left, all) = match admin.is_enabled(table).await? {
        true => admin.alter_status(table).await?,
        // All regions are closed, so none uses an old schema.
        false => (0, 0),
    };
    session.printer.line(&match all {
        0 => "All regions updated.".to_string(),
        _ => format!("{}/{all} regions updated.", all.saturating_sub(left)),
    })?;
    if left == 0 {
        session.printer.line("Done.")?;
    }
    Ok(())
}

async fn truncate(session: &mut ShellSession, mut arguments: Arguments, preserve: bool) -> Result<Outcome> {
    let table = arguments.table()?;
    arguments.finish()?;
    let admin = session.client.admin();
    session.printer.line(&format!("Truncating '{table}' table (it may take a while):"))?;
    let is_enabled = admin.is_enabled(&table).await?;
    if is_enabled {
        session.printer.line("Disabling table...")?;
        admin.disable_table(&table).await?;
    }
    session.printer.line("Truncating table...")?;
    admin.truncate_table(&table, preserve).await?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::error::Position;
    use crate::shell::parser::parse;
    use cell::schema::FamilyDescriptor;

    fn made(source: &str) -> Result<TableDescriptor> {
        let statement = parse(&format!("alter {source}"), Position::START).unwrap().remove(0);
        let mut arguments = Arguments::new("alter", statement.values);
        let mut table = TableDescriptor::new(arguments.table()?)
            .with_family(FamilyDescriptor::new("f").with("VERSIONS", "2").with("TTL", "7"));
        table.attributes.insert("MAX_FILESIZE".into(), "5".into());
        table.configuration.insert("k".into(), "v".into());
        altered(table, arguments)
    }

    #[test]
    fn only_named_attributes_change() {
        let table = made("'t', NAME => 'f', VERSIONS => 5").unwrap();
        let family = &table.families[&b"f"[..]];
        assert_eq!((family.attribute("VERSIONS"), family.attribute("TTL")), (Some("5"), Some("7")));
        let table = made("'t', 'g', {NAME => 'h', IN_MEMORY => true}, READONLY => true").unwrap();
        assert_eq!(table.families.len(), 3);
        assert_eq!(table.families[&b"h"[..]].attribute("IN_MEMORY"), Some("true"));
        assert_eq!((table.attribute("READONLY"), table.attribute("MAX_FILESIZE")), (Some("true"), Some("5")));
    }

    #[test]
    fn methods_remove() {
        assert!(made("'t', NAME => 'f', METHOD => 'delete'").unwrap().families.is_empty());
        assert!(made("'t', 'delete' => 'f'").unwrap().families.is_empty());
        let unset = made("'t', METHOD => 'table_att_unset', NAME => 'MAX_FILESIZE'").unwrap();
        assert_eq!(unset.attribute("MAX_FILESIZE"), None);
        assert!(made("'t', METHOD => 'table_conf_unset', NAME => ['k']").unwrap().configuration.is_empty());
        assert!(made("'t', 'delete' => 'x'").unwrap().families.len() == 1);
    }

    #[test]
    fn invalid_alterations_are_rejected() {
        for wrong in [
            "'t'",
            "'t', METHOD => 'delete'",
            "'t', METHOD => 'melt'",
            "'t', METHOD => 'table_att_unset', NAME => 'x'",
            "'t', NAME => 'f', VERSION => 5",
        ] {
            assert!(made(wrong).is_err(), "{wrong}");
        }
    }
}
