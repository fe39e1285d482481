//! Configures DataFusion for the tables of a cluster.

use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;

use crate::aggregate::rule::PushAggregates;
use crate::catalog::{Catalog, SCHEMA};
use crate::copy::CompleteCopy;
use crate::durable::DurableFiles;
use crate::yielding::YieldingJoins;

/// The database's name.
pub const DATABASE: &str = "grampus";

/// The origin of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The shell. Its user may write files of this machine by COPY.
    User,
    /// Clients that connect to it.
    Clients,
}

/// The context in which statements run.
///
/// # Errors
/// DataFusion's, if the configuration fails.
pub fn context(catalog: &Arc<Catalog>, memory_bytes_max: usize, sender: Sender) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(DATABASE, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true);
    // Use strings as they are stored in cells: string views would have to be converted back for the
    // protocol.
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let memory = Arc::new(FairSpillPool::new(memory_bytes_max));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).build_arc()?;
    let local = ObjectStoreUrl::local_filesystem();
    runtime.register_object_store(local.as_ref(), Arc::new(DurableFiles::new()));
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(PushAggregates));
    rules.push(Arc::new(YieldingJoins));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rules(rules);
    state = match sender {
        Sender::User => state.with_analyzer_rule(Arc::new(CompleteCopy)),
        Sender::Clients => state.with_analyzer_rule(Arc::new(RejectCopy)),
    };
    let context = SessionContext::new_with_state(state.build());
    let database = MemoryCatalogProvider::new();
    database.register_schema(SCHEMA, Arc::clone(catalog) as _)?;
    context.register_catalog(DATABASE, Arc::new(database));
    setup_pg_catalog(&context, DATABASE, EmptyContextProvider)
        .map_err(|error| DataFusionError::External(error))?;
    // From here on, schemas are fixed.
    let database = context.catalog(DATABASE).map(|catalog| Arc::new(FixedCatalog(catalog)));
    let database =
        database.ok_or_else(|| DataFusionError::Internal(format!("{DATABASE} is not registered")))?;
    context.register_catalog(DATABASE, database);
    Ok(context)
}

/// A catalog with fixed schemas: none can be registered or deregistered.
#[derive(Debug)]
struct FixedCatalog(Arc<dyn CatalogProvider>);

impl CatalogProvider for FixedCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.0.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.0.schema(name)
    }
}

/// Rejects COPY, which would write files of this machine. Tables reject changes themselves.
#[derive(Debug)]
struct RejectCopy;

impl AnalyzerRule for RejectCopy {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        match plan.exists(|part| Ok(matches!(part, LogicalPlan::Copy(_))))? {
            true => Err(DataFusionError::Plan(
                "COPY is only possible in the shell of grampus sql, not through its port".to_owned(),
            )),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "grampus_writes_no_files"
    }
}
