//! Joins that yield to other tasks.
//!
//! DataFusion's plan nodes that read data yield periodically, so that a cancelled query ends. A
//! join, however, may produce many rows from the few that it has read. Without yielding, it would
//! occupy its thread, and a cancel request would wait for all of them.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};

/// Wraps each join in a node that yields.
#[derive(Debug)]
pub struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match is_join(&plan) {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "grampus_yielding_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<NestedLoopJoinExec>().is_some()
        || plan.downcast_ref::<CrossJoinExec>().is_some()
        || plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<SortMergeJoinExec>().is_some()
}
