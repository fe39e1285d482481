//! Conditions that become narrower while a query runs.
//!
//! `ORDER BY .. LIMIT 10` needs no row that is behind the ten best which it has by now, and a join none without a partner. DataFusion
//! tells its scans so by filters that change (`DynamicFilterPhysicalExpr`). What such a filter says at the time is a part of
//! what servers are asked for next, so that they pass over what nobody wants any more.
//!
//! A filter is looked at again where it came from: it may be weaker here than it says, never stronger.

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

/// What is still wanted of a scan, by those above it.
#[derive(Debug, Clone, Default)]
pub struct Narrowing(Vec<Arc<dyn PhysicalExpr>>);

impl Narrowing {
    /// Whether a filter is one that changes.
    pub fn takes(filter: &Arc<dyn PhysicalExpr>) -> bool {
        DynamicFilterTracking::classify(filter).contains_dynamic_filter()
    }

    /// Adds a filter that changes, over the scan's columns.
    pub fn add(&mut self, filter: Arc<dyn PhysicalExpr>) {
        self.0.push(filter);
    }

    /// Whether nothing will ever change.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wanted by now of a scan that gives the columns of `schema`, as far as servers can look at it.
    pub fn now(&self, schema: &Schema, declaration: &Declaration) -> Vec<Predicate> {
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

/// An expression as a query would have it, as far as it is one of those that filters are made of.
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
        // A zero that is negative is less than one that is not to arrow, and the same to servers.
        Operator::Lt if is_real => Operator::LtEq,
        Operator::Gt if is_real => Operator::GtEq,
        op => op,
    };
    Some(Expr::BinaryExpr(LogicalBinary::new(within(binary.left())?, op, within(binary.right())?)))
}
