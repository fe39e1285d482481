//! The tables that SQL sees: declarations as they are in the cluster, remembered for a short time.

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

/// How long declarations are believed: what another server declared is seen after that.
const FRESH: Duration = Duration::from_secs(1);
/// DataFusion's schema of all declared tables.
pub const SCHEMA: &str = "public";
/// What tables are STORED AS.
const FORMAT: &str = "GRAMPUS";

/// All declared tables, as a schema of DataFusion's.
pub struct Catalog {
    declarations: Arc<dyn Declarations>,
    source: Arc<dyn Source>,
    env: Env,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    tables: BTreeMap<String, Arc<GrampusTable>>,
    /// When they were read.
    read_at: Option<Duration>,
    /// What was left out.
    unreadable: Vec<String>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Catalog({:?})", self.declarations)
    }
}

impl Catalog {
    /// The tables that `declarations` has, their rows from `source`.
    pub fn new(declarations: Arc<dyn Declarations>, source: Arc<dyn Source>, env: Env) -> Catalog {
        Catalog { declarations, source, env, known: Mutex::default() }
    }

    /// Reads the declarations again, unless that was done just now. To be called before a statement.
    ///
    /// # Errors
    /// The cluster's.
    pub async fn refresh(&self) -> Result<()> {
        let now = self.env.clock.monotonic();
        let is_fresh = self.known().read_at.is_some_and(|read_at| now < read_at + FRESH);
        if is_fresh {
            return Ok(());
        }
        let (declarations, unreadable) = self.declarations.load().await.map_err(external)?;
        let mut known = self.known();
        let old = std::mem::take(&mut known.tables);
        known.tables = declarations
            .into_iter()
            .map(|declaration| {
                let same = old.get(&declaration.name).filter(|table| *table.declaration() == declaration);
                let table = same.cloned().unwrap_or_else(|| self.table_of(declaration));
                (table.declaration().name.clone(), table)
            })
            .collect();
        known.unreadable = unreadable;
        known.read_at = Some(now);
        Ok(())
    }

    /// Declarations that could not be read, in words.
    pub fn unreadable(&self) -> Vec<String> {
        self.known().unreadable.clone()
    }

    /// How a table was declared.
    pub fn declaration(&self, name: &str) -> Option<Declaration> {
        self.known().tables.get(name).map(|table| table.declaration().clone())
    }

    /// `CREATE EXTERNAL TABLE .. STORED AS GRAMPUS`.
    ///
    /// # Errors
    /// What is wrong with the declaration; then nothing was changed. The cluster's.
    pub async fn declare(&self, create: &CreateExternalTable) -> Result<()> {
        let name = own_name(&create.name)?;
        if !create.file_type.eq_ignore_ascii_case(FORMAT) {
            return plan_err!(
                "tables here are STORED AS {FORMAT}, with the name in the cluster as LOCATION; there is no {}",
                create.file_type
            );
        }
        // What another server declared counts as well, however short ago.
        self.known().read_at = None;
        self.refresh().await?;
        match self.table_exist(name) {
            true if create.if_not_exists => return Ok(()),
            true if !create.or_replace => {
                return plan_err!(
                    "table '{name}' is declared already: DROP TABLE, or CREATE OR REPLACE EXTERNAL TABLE"
                );
            }
            _ => {}
        }
        let location = create.locations.first().cloned().unwrap_or_default();
        let table = TableName::parse(&location)
            .map_err(|error| plan_datafusion_err!("LOCATION '{location}' names no table: {error}"))?;
        let families = match self.declarations.families(&table).await {
            Ok(families) => families,
            Err(client::Error::TableNotFound(table)) => {
                return plan_err!(
                    "there is no table {table}; LOCATION names one that is there, as list in the shell shows them"
                );
            }
            Err(error) => return Err(external(error)),
        };
        let declaration =
            Declaration::of_statement(create, &families).map_err(|error| plan_datafusion_err!("{error}"))?;
        self.declarations.store(&declaration).await.map_err(external)?;
        let table = self.table_of(declaration);
        self.known().tables.insert(name.to_string(), table);
        Ok(())
    }

    /// `DROP TABLE`: forgets a declaration.
    ///
    /// # Errors
    /// There is none, unless `if_exists`. The cluster's.
    pub async fn forget(&self, name: &TableReference, if_exists: bool) -> Result<()> {
        let name = own_name(name)?;
        match self.table_exist(name) {
            true => {
                self.declarations.remove(name).await.map_err(external)?;
                self.known().tables.remove(name);
                Ok(())
            }
            false if if_exists => Ok(()),
            false => plan_err!("table '{name}' is not declared; SHOW TABLES lists those that are"),
        }
    }

    fn table_of(&self, declaration: Declaration) -> Arc<GrampusTable> {
        Arc::new(GrampusTable::new(declaration, Arc::clone(&self.source)))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SchemaProvider for Catalog {
    fn table_names(&self) -> Vec<String> {
        self.known().tables.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.known().tables.get(name).map(|table| Arc::clone(table) as Arc<dyn TableProvider>))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.known().tables.contains_key(name)
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let _ = (name, table);
        plan_err!(
            "views and tables of queries are not kept: there are CREATE EXTERNAL TABLE .. STORED AS GRAMPUS and \
             WITH .. AS (SELECT ..)"
        )
    }
}

/// The name of a table in the one schema that has declared ones.
fn own_name(name: &TableReference) -> Result<&str> {
    match name.schema().is_none_or(|schema| schema == SCHEMA) {
        true => Ok(name.table()),
        false => plan_err!(
            "declared tables are in the schema {SCHEMA}, not in {}",
            name.schema().unwrap_or_default()
        ),
    }
}
