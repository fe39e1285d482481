//! Commands about namespaces.

use cell::schema::NamespaceDescriptor;

use super::{Arity, Command, Group, Outcome, pattern};
use crate::shell::arguments::{Arguments, Options};
use crate::shell::error::{Result, ShellError, usage};
use crate::shell::session::ShellSession;

pub(super) const GROUP: Group = Group {
    name: "namespace",
    commands: &[
        Command {
            name: "create_namespace",
            arity: Arity::from(1),
            aliases: &[],
            summary: "Create a namespace",
            usage: "  grampus> create_namespace 'ns1'\n  grampus> create_namespace 'ns1', {'key' => 'value'}",
            run: |session, arguments| Box::pin(create(session, arguments)),
        },
        Command {
            name: "alter_namespace",
            arity: Arity::from(1),
            aliases: &[],
            summary: "Set or remove a property of a namespace",
            usage: "  grampus> alter_namespace 'ns1', {METHOD => 'set', 'key' => 'value'}\n  \
                    grampus> alter_namespace 'ns1', {METHOD => 'unset', NAME => 'key'}",
            run: |session, arguments| Box::pin(alter(session, arguments)),
        },
        Command {
            name: "describe_namespace",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Show a namespace and its properties",
            usage: "  grampus> describe_namespace 'ns1'",
            run: |session, arguments| Box::pin(describe(session, arguments)),
        },
        Command {
            name: "drop_namespace",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "Delete an empty namespace",
            usage: "  grampus> drop_namespace 'ns1'",
            run: |session, arguments| Box::pin(remove(session, arguments)),
        },
        Command {
            name: "list_namespace",
            arity: Arity::between(0, 1),
            aliases: &[],
            summary: "List namespaces, optionally those whose names match a regular expression",
            usage: "  grampus> list_namespace\n  grampus> list_namespace 'abc.*'",
            run: |session, arguments| Box::pin(list(session, arguments)),
        },
        Command {
            name: "list_namespace_tables",
            arity: Arity::exactly(1),
            aliases: &[],
            summary: "List the tables of a namespace",
            usage: "  grampus> list_namespace_tables 'ns1'",
            run: |session, arguments| Box::pin(tables(session, arguments)),
        },
    ],
};

fn name(arguments: &mut Arguments) -> Result<String> {
    String::from_utf8(arguments.bytes("the name of a namespace")?)
        .map_err(|_| ShellError::Usage("the name of a namespace must be UTF-8".into()))
}

/// Sets the properties that the remaining options name.
fn set(namespace: &mut NamespaceDescriptor, options: Options) -> Result<()> {
    for (key, value) in options.into_rest() {
        let text =
            value.string().ok_or_else(|| ShellError::Usage(format!("{key} must be text, not {value}")))?;
        namespace.configuration.insert(key, text);
    }
    Ok(())
}

async fn create(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    let mut namespace =
        NamespaceDescriptor::new(&name).map_err(|error| ShellError::Usage(error.to_string()))?;
    set(&mut namespace, arguments.options()?)?;
    arguments.finish()?;
    session.client.admin().create_namespace(&namespace).await?;
    Ok(Outcome::Done)
}

async fn alter(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    let mut options = arguments.options()?;
    arguments.finish()?;
    let admin = session.client.admin();
    let mut namespace = admin.namespace(&name).await?;
    match options.bytes("METHOD")?.as_deref() {
        Some(b"set") => set(&mut namespace, options)?,
        Some(b"unset") => {
            let Some(key) = options.bytes("NAME")? else {
                return usage("NAME parameter missing for unset method");
            };
            options.finish()?;
            namespace.configuration.remove(&*String::from_utf8_lossy(&key));
        }
        Some(other) => return usage(format!("Unknown method {}", String::from_utf8_lossy(other))),
        None => return usage("Unknown method "),
    }
    admin.modify_namespace(&namespace).await?;
    Ok(Outcome::Done)
}

async fn describe(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    arguments.finish()?;
    let namespace = session.client.admin().namespace(&name).await?;
    let mut parts = vec![format!("NAME => '{}'", namespace.name)];
    parts.extend(namespace.configuration.iter().map(|(key, value)| format!("{key} => '{value}'")));
    session.printer.head("DESCRIPTION")?;
    session.printer.row(&format!("{{{}}}", parts.join(", ")))?;
    // HBase prints the namespace's quotas here, or this.
    session.printer.line("Quota is disabled")?;
    Ok(Outcome::Done)
}

async fn remove(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    arguments.finish()?;
    session.client.admin().delete_namespace(&name).await?;
    Ok(Outcome::Done)
}

async fn list(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let wanted = pattern(&mut arguments)?;
    arguments.finish()?;
    let all = session.client.admin().list_namespaces().await?;
    let names = all.into_iter().map(|namespace| namespace.name).filter(|name| wanted.is_match(name));
    show(session, "NAMESPACE", names.collect())?;
    Ok(Outcome::Done)
}

async fn tables(session: &mut ShellSession, mut arguments: Arguments) -> Result<Outcome> {
    let name = name(&mut arguments)?;
    arguments.finish()?;
    session.printer.head("TABLE")?;
    let tables = session.client.admin().list_namespace_tables(&name).await?;
    // Names without the namespace, which the user gave.
    show_names(session, tables.iter().map(|table| table.qualifier().to_string()).collect())
}

fn show(session: &mut ShellSession, head: &str, names: Vec<String>) -> Result<Outcome> {
    session.printer.head(head)?;
    show_names(session, names)
}

pub(super) fn show_names(session: &mut ShellSession, names: Vec<String>) -> Result<Outcome> {
    for name in &names {
        session.printer.row(name)?;
    }
    session.printer.footer(names.len() as u64)?;
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    Ok(Outcome::Value(format!("[{}]", names.join(", "))))
}
