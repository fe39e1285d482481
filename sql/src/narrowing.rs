//! Conditions that become stricter while a query runs.
//!
//! `ORDER BY .. LIMIT 10` needs no row that sorts after the ten best rows found so far. A join
//! needs no row without a partner. DataFusion passes this to its scans as dynamic filters
//! (`DynamicFilterPhysicalExpr`). The current state of such a filter is part of the next request,
//! so that servers skip rows that are no longer needed.
//!
//! DataFusion still evaluates the filter above the scan. So the pushed condition may be weaker than
//! the filter, but never stronger.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::{BinaryExpr as LogicalBinary, Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterTracking, IsNotNullExpr, IsNullExpr, Literal,
};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use proto::grampus::Predicate;

use crate::declaration::Declaration;
use crate::predicate;

/// The dynamic filters of a scan, set by the plan nodes above it.
#[derive(Debug, Clone, Default)]
pub struct Narrowing(Vec<Arc<dyn PhysicalExpr>>);

impl Narrowing {
    /// Whether a filter is dynamic.
    pub fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
        DynamicFilterTracking::classify(filter).contains_dynamic_filter()
    }

    /// Adds a dynamic filter over the scan's columns.
    pub fn add(&mut self, filter: Arc<dyn PhysicalExpr>) {
        self.0.push(filter);
    }

    /// Whether there are no dynamic filters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The current conditions on a scan with the output `schema`, restricted to those that servers
    /// can evaluate.
    pub fn current_predicates(&self, schema: &Schema, declaration: &Declaration) -> Vec<Predicate> {
        let snapshots = self.0.iter().filter_map(|filter| snapshot_physical_expr(Arc::clone(filter)).ok());
        let parts = |filter: Arc<dyn PhysicalExpr>| {
            split_conjunction(&filter)
                .into_iter()
                .filter_map(|part| predicate::translate(&logical(part, schema)?, declaration))
                .collect::<Vec<_>>()
        };
        snapshots.flat_map(parts).collect()
    }
}

/// Converts a physical expression to a logical one; `None` for kinds of expressions that dynamic
/// filters do not use.
fn logical(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expr> {
    let within = |expr| logical(expr, schema).map(Box::new);
    if let Some(column) = expr.downcast_ref::<Column>() {
        let field = schema.fields().get(column.index())?;
        return Some(Expr::Column(field.name().as_str().into()));
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Some(Expr::Literal(literal.value().clone(), None));
    }
    if let Some(null) = expr.downcast_ref::<IsNullExpr>() {
        return Some(Expr::IsNull(within(null.arg())?));
    }
    if let Some(null) = expr.downcast_ref::<IsNotNullExpr>() {
        return Some(Expr::IsNotNull(within(null.arg())?));
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    let is_real = binary.left().data_type(schema).is_ok_and(|data_type| data_type.is_floating());
    let op = match *binary.op() {
        // Arrow orders -0 before 0, but servers treat them as equal.
        Operator::Lt if is_real => Operator::LtEq,
        Operator::Gt if is_real => Operator::GtEq,
        op => op,
    };
    Some(Expr::BinaryExpr(LogicalBinary::new(within(binary.left())?, op, within(binary.right())?)))
}
