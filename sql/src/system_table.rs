//! Stores declarations in the table `grampus:sql_tables` of the cluster, so that all SQL clients
//! see the same tables.
//!
//! A row is a declaration; its key is the table's name in SQL. All cells are text:
//!
//! ```text
//! d:table   ns:sales
//! d:columns 3
//! c:0000    id VARCHAR row raw
//! c:0001    amount BIGINT f:amount bytes_long
//! c:0002    at TIMESTAMP f:at bytes_long millis
//! ```
//!
//! Replacing a declaration writes all its cells atomically. Cells with higher numbers remain and
//! are ignored.

use std::time::Duration;

use async_trait::async_trait;
use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Scan;
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::{Client, Error, Row};
use proto::exception::class;

use crate::declaration::{Declaration, DeclaredColumn};

const NAMESPACE: &str = "grampus";
const TABLE: &str = "sql_tables";
const DECLARATION: &[u8] = b"d";
const COLUMNS: &[u8] = b"c";
/// More than the clock's resolution: a put after a delete gets a later timestamp.
const AFTER_DELETE: Duration = Duration::from_millis(2);

/// The storage of declarations, and information about the tables that they declare.
#[async_trait]
pub trait Declarations: std::fmt::Debug + Send + Sync + 'static {
    /// Loads all declarations. Unreadable ones are skipped and reported as messages.
    async fn load(&self) -> client::Result<(Vec<Declaration>, Vec<String>)>;
    /// Stores a declaration, replacing another one of its name.
    async fn store(&self, declaration: &Declaration) -> client::Result<()>;
    /// Removes a declaration.
    async fn remove(&self, name: &str) -> client::Result<()>;
    /// The families of a table of the cluster.
    async fn families(&self, table: &TableName) -> client::Result<Vec<Bytes>>;
}

/// Declarations in a cluster.
pub struct SystemTable {
    client: Client,
    env: Env,
    name: TableName,
}

impl std::fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SystemTable({})", self.name)
    }
}

impl SystemTable {
    /// The declarations of a cluster.
    pub fn new(client: Client, env: Env) -> SystemTable {
        SystemTable { client, env, name: name() }
    }

    /// Creates the table if it does not exist.
    async fn create(&self) -> client::Result<()> {
        let admin = self.client.admin();
        if admin.table_exists(&self.name).await? {
            return Ok(());
        }
        let namespace = NamespaceDescriptor::new(NAMESPACE).expect("the name is valid");
        unless(admin.create_namespace(&namespace).await, class::NAMESPACE_EXISTS)?;
        let family = |name: &'static [u8]| FamilyDescriptor::new(name);
        let table = TableDescriptor::new(self.name.clone())
            .with_family(family(DECLARATION))
            .with_family(family(COLUMNS));
        unless(admin.create_table(&table, &[]).await, class::TABLE_EXISTS)
    }

    /// Writes the declarations to store files, where an export without a server finds them. They
    /// are durable already, so an error does not matter.
    async fn flush(&self) {
        let _ = self.client.admin().flush(&self.name).await;
    }
}

/// The name of the table.
pub fn name() -> TableName {
    TableName::new(NAMESPACE, TABLE).expect("the name is valid")
}

/// The declarations in rows of the table `name`, and messages about unreadable ones.
pub fn read_all(name: &TableName, rows: &[Row]) -> (Vec<Declaration>, Vec<String>) {
    let (mut declarations, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match read(row) {
            Ok(declaration) => declarations.push(declaration),
            Err(error) => {
                let row = row.key().escape_ascii();
                unreadable.push(format!("skipping {row}: row {row} of {name}: {error}"));
            }
        }
    }
    (declarations, unreadable)
}

/// Treats the error `known` as success: another client was first.
fn unless(outcome: client::Result<()>, known: proto::exception::JavaClass) -> client::Result<()> {
    match outcome {
        Err(error) if error.is_class(known) => Ok(()),
        outcome => outcome,
    }
}

#[async_trait]
impl Declarations for SystemTable {
    async fn load(&self) -> client::Result<(Vec<Declaration>, Vec<String>)> {
        let rows = match self.client.table(self.name.clone()).scan(Scan::default()).collect().await {
            Ok(rows) => rows,
            Err(Error::TableNotFound(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(read_all(&self.name, &rows))
    }

    async fn store(&self, declaration: &Declaration) -> client::Result<()> {
        self.create().await?;
        self.client.table(self.name.clone()).mutate(&written(declaration)).await?;
        self.flush().await;
        Ok(())
    }

    async fn remove(&self, name: &str) -> client::Result<()> {
        let row = Bytes::copy_from_slice(name.as_bytes());
        self.client.table(self.name.clone()).mutate(&Mutation::delete(row, Vec::new())).await?;
        self.flush().await;
        self.env.clock.sleep(AFTER_DELETE).await;
        Ok(())
    }

    async fn families(&self, table: &TableName) -> client::Result<Vec<Bytes>> {
        let descriptor = self.client.admin().describe(table).await?;
        Ok(descriptor.families.keys().cloned().collect())
    }
}

fn written(declaration: &Declaration) -> Mutation {
    let row = declaration.name.as_bytes();
    let cell = |family: &[u8], qualifier: &str, value: &str| {
        let (qualifier, value) = (qualifier.as_bytes(), value.as_bytes());
        KeyValue::new(row, family, qualifier, LATEST_TIMESTAMP, CellType::Put, value)
    };
    let mut cells = vec![
        cell(DECLARATION, "columns", &declaration.columns.len().to_string()),
        cell(DECLARATION, "table", &declaration.table.to_string()),
    ];
    let columns = declaration.columns.iter().enumerate();
    cells.extend(columns.map(|(at, column)| cell(COLUMNS, &qualifier(at), &column.to_text())));
    Mutation::put(Bytes::copy_from_slice(row), cells)
}

fn qualifier(at: usize) -> String {
    format!("{at:04}")
}

fn read(row: &Row) -> Result<Declaration, String> {
    let text = |family: &[u8], qualifier: &str| {
        let value = row.value(family, qualifier.as_bytes());
        let value = value.ok_or_else(|| format!("{}:{qualifier} is missing", family.escape_ascii()))?;
        std::str::from_utf8(value).map_err(|_| format!("{}:{qualifier} is not UTF-8", family.escape_ascii()))
    };
    let table = text(DECLARATION, "table")?;
    let count: usize =
        text(DECLARATION, "columns")?.parse().map_err(|_| "d:columns is not a number".to_string())?;
    let columns = (0..count).map(|at| DeclaredColumn::from_text(text(COLUMNS, &qualifier(at))?));
    Ok(Declaration {
        name: std::str::from_utf8(row.key()).map_err(|_| "the name is not UTF-8".to_string())?.to_string(),
        table: TableName::parse(table).map_err(|error| error.to_string())?,
        columns: columns.collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::tests::declared;

    #[test]
    fn written_values_are_parsed() {
        let sql = "CREATE EXTERNAL TABLE sales (id VARCHAR PRIMARY KEY, a BIGINT, at TIMESTAMP) STORED AS GRAMPUS \
                   LOCATION 'ns:sales' OPTIONS ('at' 'f:at seconds')";
        let declaration = declared(sql, &["f"]).unwrap();
        let mutation = written(&declaration);
        let mut cells = mutation.cells.clone();
        assert_eq!(read(&Row { cells: cells.clone() }), Ok(declaration.clone()));
        // Extra cells of an older declaration are ignored.
        let stale =
            KeyValue::new(b"sales", COLUMNS, b"0003", LATEST_TIMESTAMP, CellType::Put, b"old INT f:old raw");
        cells.push(stale);
        assert_eq!(read(&Row { cells: cells.clone() }), Ok(declaration));
        cells.remove(2);
        assert!(read(&Row { cells }).unwrap_err().contains("c:0000 is missing"));
    }
}
