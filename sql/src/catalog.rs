//! The tables that SQL sees: the cluster's declarations, cached for a short time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base::env::Env;
use cell::schema::TableName;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;

use crate::declaration::Declaration;
use crate::source::{Source, external};
use crate::system_table::Declarations;
use crate::table::GrampusTable;

/// How long cached declarations are used. Declarations of other servers become visible after that.
const CACHE_LIFETIME: Duration = Duration::from_secs(1);
/// DataFusion's schema that contains all declared tables.
pub const SCHEMA: &str = "public";
/// The format of tables in STORED AS.
const FORMAT: &str = "GRAMPUS";

/// All declared tables, as a schema for DataFusion.
pub struct Catalog {
    declarations: Arc<dyn Declarations>,
    source: Arc<dyn Source>,
    env: Env,
    cached: Mutex<CachedDeclarations>,
}

#[derive(Default)]
struct CachedDeclarations {
    tables: BTreeMap<String, Arc<GrampusTable>>,
    /// When they were read.
    read_at: Option<Duration>,
    /// Messages about declarations that were skipped.
    unreadable: Vec<String>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Catalog({:?})", self.declarations)
    }
}

impl Catalog {
    /// A catalog of the tables in `declarations`, with rows from `source`.
    pub fn new(declarations: Arc<dyn Declarations>, source: Arc<dyn Source>, env: Env) -> Catalog {
        Catalog { declarations, source, env, cached: Mutex::default() }
    }

    /// Rereads the declarations if the cached ones are too old. Call this before each statement.
    ///
    /// # Errors
    /// The cluster's.
    pub async fn refresh(&self) -> Result<()> {
        let now = self.env.clock.monotonic();
        let is_fresh = self.cached().read_at.is_some_and(|read_at| now < read_at + CACHE_LIFETIME);
        if is_fresh {
            return Ok(());
        }
        let (declarations, unreadable) = self.declarations.load().await.map_err(external)?;
        let mut cached = self.cached();
        let old = std::mem::take(&mut cached.tables);
        cached.tables = declarations
            .into_iter()
            .map(|declaration| {
                let unchanged =
                    old.get(&declaration.name).filter(|table| *table.declaration() == declaration);
                let table = unchanged.cloned().unwrap_or_else(|| self.new_table(declaration));
                (table.declaration().name.clone(), table)
            })
            .collect();
        cached.unreadable = unreadable;
        cached.read_at = Some(now);
        Ok(())
    }

    /// Messages about unreadable declarations.
    pub fn unreadable(&self) -> Vec<String> {
        self.cached().unreadable.clone()
    }

    /// The declaration of a table.
    pub fn declaration(&self, name: &str) -> Option<Declaration> {
        self.cached().tables.get(name).map(|table| table.declaration().clone())
    }

    /// A declared table. Call [`refresh`](Self::refresh) before.
    ///
    /// # Errors
    /// A message, if there is none.
    pub fn find(&self, name: &str) -> Result<Arc<GrampusTable>> {
        self.cached().tables.get(name).cloned().ok_or_else(|| {
            plan_datafusion_err!(
                "table '{name}' is not declared; SHOW TABLES in grampus sql lists declared tables, and CREATE EXTERNAL \
                 TABLE declares the types of a table's columns"
            )
        })
    }

    /// Executes `CREATE EXTERNAL TABLE .. STORED AS GRAMPUS`.
    ///
    /// # Errors
    /// What is wrong with the declaration; nothing was changed then. The cluster's.
    pub async fn declare(&self, create: &CreateExternalTable) -> Result<()> {
        let name = table_name(&create.name)?;
        if !create.file_type.eq_ignore_ascii_case(FORMAT) {
            return plan_err!(
                "tables must be STORED AS {FORMAT}, with the table's name in the cluster as LOCATION; unsupported format {}",
                create.file_type
            );
        }
        // Also considers the most recent declarations of other servers.
        self.cached().read_at = None;
        self.refresh().await?;
        match self.table_exist(name) {
            true if create.if_not_exists => return Ok(()),
            true if !create.or_replace => {
                return plan_err!(
                    "table '{name}' is already declared: use DROP TABLE or CREATE OR REPLACE EXTERNAL TABLE"
                );
            }
            _ => {}
        }
        let location = create.locations.first().cloned().unwrap_or_default();
        let table = TableName::parse(&location)
            .map_err(|error| plan_datafusion_err!("LOCATION '{location}' is not a table name: {error}"))?;
        let families = match self.declarations.families(&table).await {
            Ok(families) => families,
            Err(client::Error::TableNotFound(table)) => {
                return plan_err!(
                    "there is no table {table}; LOCATION must name an existing table, as `list` in the shell shows it"
                );
            }
            Err(error) => return Err(external(error)),
        };
        let declaration = Declaration::from_statement(create, &families)
            .map_err(|error| plan_datafusion_err!("{error}"))?;
        self.declarations.store(&declaration).await.map_err(external)?;
        let table = self.new_table(declaration);
        self.cached().tables.insert(name.to_string(), table);
        Ok(())
    }

    /// Executes `DROP TABLE`: removes a declaration.
    ///
    /// # Errors
    /// If it does not exist, unless `if_exists`. The cluster's.
    pub async fn undeclare(&self, name: &TableReference, if_exists: bool) -> Result<()> {
        let name = table_name(name)?;
        match self.table_exist(name) {
            true => {
                self.declarations.remove(name).await.map_err(external)?;
                self.cached().tables.remove(name);
                Ok(())
            }
            false if if_exists => Ok(()),
            false => plan_err!("table '{name}' is not declared; SHOW TABLES lists declared tables"),
        }
    }

    fn new_table(&self, declaration: Declaration) -> Arc<GrampusTable> {
        Arc::new(GrampusTable::new(declaration, Arc::clone(&self.source)))
    }

    fn cached(&self) -> MutexGuard<'_, CachedDeclarations> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SchemaProvider for Catalog {
    fn table_names(&self) -> Vec<String> {
        self.cached().tables.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.cached().tables.get(name).map(|table| Arc::clone(table) as Arc<dyn TableProvider>))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.cached().tables.contains_key(name)
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let _ = (name, table);
        plan_err!(
            "views and tables of queries are not supported: use CREATE EXTERNAL TABLE .. STORED AS GRAMPUS or \
             WITH .. AS (SELECT ..)"
        )
    }
}

/// The name of a table in the only schema with declared tables.
fn table_name(name: &TableReference) -> Result<&str> {
    match name.schema().is_none_or(|schema| schema == SCHEMA) {
        true => Ok(name.table()),
        false => plan_err!(
            "declared tables are in the schema {SCHEMA}, not in {}",
            name.schema().unwrap_or_default()
        ),
    }
}
