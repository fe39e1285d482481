//! The tables that SQL sees: declarations as they are in the cluster, remembered for a short time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base::env::Env;
use datafusion::catalog::{SchemaProvider, Session, TableProvider, TableProviderFactory};
use datafusion::common::{exec_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;
use tokio::runtime::Handle;

use crate::declaration::Declaration;
use crate::source::{Source, external};
use crate::system_table::Declarations;
use crate::table::GrampusTable;

/// How long declarations are believed: what another server declared is seen after that.
const FRESH: Duration = Duration::from_secs(1);

/// All declared tables, DataFusion's schema `public`.
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
        let Some(own) = table.downcast_ref::<GrampusTable>() else {
            return plan_err!(
                "views and tables of queries are not kept: there are CREATE EXTERNAL TABLE .. STORED AS GRAMPUS and \
                 WITH .. AS (SELECT ..)"
            );
        };
        let table = self.table_of(own.declaration().clone());
        let before = self.known().tables.insert(name, table);
        Ok(before.map(|table| table as Arc<dyn TableProvider>))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.table_exist(name) {
            return Ok(None);
        }
        // DataFusion has no way to wait here; the other threads go on meanwhile.
        let removed = tokio::task::block_in_place(|| Handle::current().block_on(self.declarations.remove(name)));
        removed.map_err(external)?;
        Ok(self.known().tables.remove(name).map(|table| table as Arc<dyn TableProvider>))
    }
}

/// `CREATE EXTERNAL TABLE .. STORED AS GRAMPUS`.
#[derive(Debug)]
pub struct Declaring(pub Arc<Catalog>);

#[async_trait]
impl TableProviderFactory for Declaring {
    async fn create(&self, _: &dyn Session, create: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let Declaring(catalog) = self;
        let location = create.locations.first().cloned().unwrap_or_default();
        let name = cell::schema::TableName::parse(&location)
            .map_err(|error| plan_datafusion_err!("LOCATION '{location}' names no table: {error}"))?;
        let families = match catalog.declarations.families(&name).await {
            Ok(families) => families,
            Err(client::Error::TableNotFound(table)) => {
                return exec_err!("there is no table {table}; LOCATION names one that is there, as list in the shell shows them");
            }
            Err(error) => return Err(external(error)),
        };
        let declaration = Declaration::of_statement(create, &families).map_err(|error| plan_datafusion_err!("{error}"))?;
        catalog.declarations.store(&declaration).await.map_err(external)?;
        Ok(catalog.table_of(declaration))
    }
}
