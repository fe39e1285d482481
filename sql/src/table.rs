//! Declared tables, as table providers for DataFusion.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use client::columns::RowRange;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoClause};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::declaration::Declaration;
use crate::predicate::{self, range};
use crate::request::{Declared, RowSelection};
use crate::scan::GrampusScan;
use crate::source::Source;

/// A declared table.
pub struct GrampusTable {
    declared: Arc<Declared>,
    /// The only ranges of rows that it shows, unless it shows all rows.
    ranges: Option<Vec<RowRange>>,
}

impl fmt::Debug for GrampusTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrampusTable({})", self.declared.declaration.table)
    }
}

impl GrampusTable {
    /// The table of a declaration.
    pub fn new(declaration: Declaration, source: Arc<dyn Source>) -> GrampusTable {
        let schema = Arc::new(declaration.schema());
        GrampusTable { declared: Arc::new(Declared { declaration, schema, source }), ranges: None }
    }

    /// The same table with only the rows of one range.
    pub fn within(&self, range: RowRange) -> GrampusTable {
        GrampusTable { declared: Arc::clone(&self.declared), ranges: Some(vec![range]) }
    }

    /// The ranges of row keys that are its regions.
    ///
    /// # Errors
    /// The cluster's.
    pub async fn region_ranges(&self) -> Result<Vec<RowRange>> {
        let all = [RowRange::default()];
        let regions = self.declared.source.regions(&self.declaration().table, &all).await?;
        Ok(regions.concat())
    }

    /// The table's declaration.
    pub fn declaration(&self) -> &Declaration {
        &self.declared.declaration
    }

    fn read_only(&self, what: &str) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!(
            "{what} is not possible, SQL here only reads: write into table {} with the shell's put, or with any HBase \
             client",
            self.declaration().table
        )
    }
}

#[async_trait]
impl TableProvider for GrampusTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.declared.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match predicate::translate(filter, self.declaration()) {
            Some(predicate) if predicate::is_small(&predicate) => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let declaration = self.declaration();
        let mut parts = Vec::new();
        for filter in filters {
            let Some(part) = predicate::translate(filter, declaration) else {
                return plan_err!(
                    "the condition {filter} was accepted for pushdown but cannot be translated"
                );
            };
            parts.push(part);
        }
        let parts = predicate::select_fitting(parts);
        let predicate = predicate::all(parts.iter().flat_map(predicate::conjuncts).cloned().collect());
        let all = || vec![RowRange::default()];
        let ranges = match &self.ranges {
            Some(ranges) => ranges.clone(),
            None => predicate.as_ref().map_or_else(all, |one| range::row_ranges(one, declaration)),
        };
        let regions = self.declared.source.regions(&declaration.table, &ranges).await?;
        let selection = RowSelection { table: Arc::clone(&self.declared), predicate, ranges, regions };
        let columns = projection.cloned().unwrap_or_else(|| (0..declaration.columns.len()).collect());
        let partitions_max = state.config().target_partitions();
        Ok(Arc::new(GrampusScan::new(selection, columns, limit, partitions_max)))
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.read_only("INSERT")
    }

    async fn delete_from(&self, _: &dyn Session, _: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        self.read_only("DELETE")
    }

    async fn update(
        &self,
        _: &dyn Session,
        _: Vec<(String, Expr)>,
        _: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.read_only("UPDATE")
    }

    async fn truncate(&self, _: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.read_only("TRUNCATE")
    }

    async fn merge_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: DFSchemaRef,
        _: Expr,
        _: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.read_only("MERGE")
    }
}
