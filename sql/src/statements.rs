//! Statements one after the other, as the shell and the wire both run them.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::error::ArrowError;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as LogicalStatement};
use datafusion::sql::parser::{DFParser, Statement};

use crate::catalog::Catalog;

/// What SHOW TABLES is: DataFusion's would show the tables of catalogs too.
const SHOW_TABLES: &str = "SELECT table_name, table_type FROM information_schema.tables \
                           WHERE table_catalog = 'grampus' AND table_schema = 'public' ORDER BY table_name";

/// Where statements are run.
#[derive(Clone)]
pub struct Engine {
    /// DataFusion's context.
    pub context: SessionContext,
    /// The tables.
    pub catalog: Arc<Catalog>,
}

/// What came of a statement.
pub enum Outcome {
    /// Rows, to be asked for.
    Rows(DataFrame),
    /// Something was done; its name in capitals.
    Done(&'static str),
}

impl Engine {
    /// The same with settings of its own, which SET changes for it alone.
    pub fn apart(&self) -> Engine {
        Engine {
            context: SessionContext::new_with_state(self.context.state()),
            catalog: Arc::clone(&self.catalog),
        }
    }

    /// Takes statements apart.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn parse(sql: &str) -> Result<VecDeque<Statement>> {
        DFParser::parse_sql(sql)
    }

    /// Runs a statement. Rows are not read before they are asked for.
    ///
    /// # Errors
    /// DataFusion's, and the cluster's.
    pub async fn run(&self, statement: Statement) -> Result<Outcome> {
        self.catalog.refresh().await?;
        let statement = match is_show_tables(&statement) {
            true => Self::parse(SHOW_TABLES)?.pop_front().unwrap_or(statement),
            false => statement,
        };
        let plan = self.context.state().statement_to_plan(statement).await?;
        match &plan {
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => {
                self.catalog.declare(create).await?;
                return Ok(Outcome::Done("CREATE EXTERNAL TABLE"));
            }
            LogicalPlan::Ddl(DdlStatement::DropTable(dropped)) => {
                self.catalog.forget(&dropped.name, dropped.if_exists).await?;
                return Ok(Outcome::Done("DROP TABLE"));
            }
            // The catalog tells of these that they are not kept.
            LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::CreateMemoryTable(_)) => {}
            LogicalPlan::Ddl(_) => {
                return Err(only_reads("A statement that creates, changes or drops something"));
            }
            _ => {}
        }
        let done = name_of_change(&plan);
        let rows = self.context.execute_logical_plan(plan).await?;
        Ok(done.map_or(Outcome::Rows(rows), Outcome::Done))
    }
}

/// Whether a statement asks for the tables there are.
pub fn is_show_tables(statement: &Statement) -> bool {
    let text = statement.to_string().to_ascii_uppercase();
    text.trim_end_matches(';').split_whitespace().eq(["SHOW", "TABLES"])
}

/// What a plan changes of the session; nothing of one that gives rows.
fn name_of_change(plan: &LogicalPlan) -> Option<&'static str> {
    match plan {
        LogicalPlan::Statement(LogicalStatement::SetVariable(_)) => Some("SET"),
        LogicalPlan::Statement(LogicalStatement::ResetVariable(_)) => Some("RESET"),
        LogicalPlan::Statement(LogicalStatement::Prepare(_)) => Some("PREPARE"),
        LogicalPlan::Statement(LogicalStatement::Deallocate(_)) => Some("DEALLOCATE"),
        _ => None,
    }
}

/// What is said of a statement that would write something.
pub fn only_reads(what: &str) -> DataFusionError {
    DataFusionError::Plan(format!(
        "{what} is not possible, SQL here only reads; tables are declared by CREATE EXTERNAL TABLE and DROP TABLE"
    ))
}

/// An error for a person: what is wrong, without the layers it came through.
pub fn told(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::SQL(error, _) => error.to_string().replace("sql parser error: ", ""),
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::NotImplemented(text) => text.clone(),
        DataFusionError::ArrowError(error, _) => told_of_values(error),
        DataFusionError::SchemaError(error, _) => error.to_string(),
        root => root.strip_backtrace(),
    };
    let advice = match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => "; --memory allows more",
        _ if text.contains("' not found") && text.contains("table '") => {
            "; SHOW TABLES lists what is declared, CREATE EXTERNAL TABLE declares another"
        }
        _ => "",
    };
    format!("{text}{advice}")
}

fn told_of_values(error: &ArrowError) -> String {
    match error {
        ArrowError::DivideByZero => "division by zero".to_string(),
        ArrowError::CastError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::ParseError(text)
        | ArrowError::InvalidArgumentError(text) => text.clone(),
        other => other.to_string(),
    }
}
