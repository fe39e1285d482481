//! Finds aggregates over plain columns of a table scan in a plan, and pushes them down to the
//! servers.
//!
//! It is the first rule, so it sees aggregates as the planner builds them: a final one over a
//! partial one over a scan. Aggregates that it cannot push down (expressions, FILTER, DISTINCT
//! inside a function, functions that the endpoint lacks) stay unchanged, over a scan with
//! pushed-down condition and columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::scalar::ScalarValue;

use super::GrampusAggregate;
use super::function::{Function, PushedAggregate};
use crate::predicate::is_widening;
use crate::scan::GrampusScan;

/// Pushes aggregates down to the servers.
#[derive(Debug)]
pub struct PushAggregates;

impl PhysicalOptimizerRule for PushAggregates {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match push_down(&plan) {
                Some(moved) => Transformed::yes(moved),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "grampus_push_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The equivalent of `plan` that runs on the servers; `None` if they cannot do it.
fn push_down(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let outer = plan.downcast_ref::<AggregateExec>()?;
    let inner = match outer.mode() {
        AggregateMode::Final | AggregateMode::FinalPartitioned => outer
            .input()
            .downcast_ref::<AggregateExec>()
            .filter(|inner| *inner.mode() == AggregateMode::Partial)?,
        AggregateMode::Single | AggregateMode::SinglePartitioned => outer,
        _ => return None,
    };
    let groups = inner.group_expr();
    if groups.has_grouping_set() || inner.filter_expr().iter().any(Option::is_some) {
        return None;
    }
    let input = Input::new(inner.input())?;
    let group_by =
        groups.expr().iter().map(|(expr, _)| input.column(expr)).collect::<Option<Vec<usize>>>()?;
    let aggregates = inner
        .aggr_expr()
        .iter()
        .map(|expr| input.aggregate(expr))
        .collect::<Option<Vec<PushedAggregate>>>()?;
    Some(Arc::new(GrampusAggregate::new(
        input.scan.selection().clone(),
        group_by,
        aggregates,
        outer.schema(),
    )))
}

/// The input of an aggregate: a scan, below projections that rename and reorder its columns.
struct Input<'a> {
    scan: &'a GrampusScan,
    /// In order from the aggregate down to the scan.
    projections: Vec<&'a ProjectionExec>,
}

impl<'a> Input<'a> {
    fn new(mut plan: &'a Arc<dyn ExecutionPlan>) -> Option<Input<'a>> {
        let mut projections = Vec::new();
        while let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            projections.push(projection);
            plan = projection.input();
        }
        let scan = plan.downcast_ref::<GrampusScan>()?;
        (!scan.is_limited()).then_some(Input { scan, projections })
    }

    /// The declared column that an expression refers to, through widening casts.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        self.column_below(expr, &self.projections)
    }

    fn column_below(&self, expr: &Arc<dyn PhysicalExpr>, projections: &[&ProjectionExec]) -> Option<usize> {
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let column = self.column_below(cast.expr(), projections)?;
            let from = self.scan.selection().table.declaration.columns[column].sql_type.arrow();
            return is_widening(from, cast.cast_type()).then_some(column);
        }
        let column = expr.downcast_ref::<Column>()?;
        match projections.split_first() {
            Some((projection, below)) => {
                self.column_below(&projection.expr().get(column.index())?.expr, below)
            }
            None => Some(self.scan.column(column.index())),
        }
    }

    fn aggregate(&self, expr: &AggregateFunctionExpr) -> Option<PushedAggregate> {
        let function = Function::from_name(expr.fun().name())?;
        let arguments = expr.expressions();
        // DISTINCT is allowed for functions whose result does not depend on order or duplicates.
        let is_extreme = matches!(function, Function::Min | Function::Max);
        if (expr.is_distinct() && !is_extreme) || expr.ignore_nulls() {
            return None;
        }
        match (function, &arguments[..]) {
            (Function::Count, [one]) if literal(one).is_some_and(|value| !value.is_null()) => {
                Some(PushedAggregate { function, column: None })
            }
            (Function::Quantile(_), [of]) => {
                Some(PushedAggregate { function, column: Some(self.number(of)?) })
            }
            // The optional third argument sets the accuracy; ours equals its default.
            (Function::Quantile(_), [of, share]) => {
                let ScalarValue::Float64(Some(share)) = literal(share)? else { return None };
                let descending = expr.order_bys().first().is_some_and(|order| order.options.descending);
                let share = if descending { 1.0 - share } else { *share };
                Some(PushedAggregate { function: Function::Quantile(share), column: Some(self.number(of)?) })
            }
            (Function::Variance { .. }, [of]) => {
                Some(PushedAggregate { function, column: Some(self.number(of)?) })
            }
            (Function::Sum | Function::Average, [of]) => Some(PushedAggregate {
                function,
                column: Some(self.column(of)?).filter(|at| self.is_number(*at)),
            })
            .filter(|pushed| pushed.column.is_some()),
            (Function::Min | Function::Max | Function::Count | Function::Distinct, [of]) => {
                Some(PushedAggregate { function, column: Some(self.column(of)?) })
            }
            _ => None,
        }
    }

    /// A numeric column, for functions that may read decimals as floating-point numbers.
    fn number(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let to_real = expr.downcast_ref::<CastExpr>().filter(|cast| *cast.cast_type() == DataType::Float64);
        let column = self.column(to_real.map_or(expr, |cast| cast.expr()))?;
        self.is_number(column).then_some(column)
    }

    fn is_number(&self, column: usize) -> bool {
        self.scan.selection().table.declaration.columns[column].sql_type.arrow().is_numeric()
    }
}

fn literal(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expr.downcast_ref::<Literal>().map(Literal::value)
}
