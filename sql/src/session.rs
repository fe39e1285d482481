//! DataFusion, set up for the tables of a cluster.

use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;

use crate::aggregate::rule::PushAggregates;
use crate::catalog::{Catalog, SCHEMA};

/// The database's name.
pub const DATABASE: &str = "grampus";

/// What statements run in.
///
/// # Errors
/// DataFusion's, if it cannot be set up.
pub fn context(catalog: &Arc<Catalog>, memory_bytes_max: usize) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(DATABASE, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true);
    // Strings of cells come as they are; views of them would be made only to be unmade at the wire.
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let memory = Arc::new(FairSpillPool::new(memory_bytes_max));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).build_arc()?;
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(PushAggregates));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .build();
    let context = SessionContext::new_with_state(state);
    let database = MemoryCatalogProvider::new();
    database.register_schema(SCHEMA, Arc::clone(catalog) as _)?;
    context.register_catalog(DATABASE, Arc::new(database));
    setup_pg_catalog(&context, DATABASE, EmptyContextProvider)
        .map_err(|error| DataFusionError::External(error))?;
    Ok(context)
}
