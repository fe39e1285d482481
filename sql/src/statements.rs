//! Runs statements one at a time, for both the shell and the PostgreSQL protocol.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::error::ArrowError;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as LogicalStatement};
use datafusion::sql::parser::{DFParser, Statement};

use crate::catalog::Catalog;
use crate::copy;

/// The query for SHOW TABLES: DataFusion's own would list the tables of catalogs too.
const SHOW_TABLES: &str = "SELECT table_name, table_type FROM information_schema.tables \
                           WHERE table_catalog = 'grampus' AND table_schema = 'public' ORDER BY table_name";

/// DataFusion's error if the end of a CSV or JSON file cannot be written.
const NOT_FINISHED: &str = "Error encountered while finalizing writes";

/// The environment in which statements run.
#[derive(Clone)]
pub struct Engine {
    /// DataFusion's context.
    pub context: SessionContext,
    /// The tables.
    pub catalog: Arc<Catalog>,
}

/// The result of a statement.
pub enum Outcome {
    /// Rows, not read yet.
    Rows(DataFrame),
    /// A completed action; its name in capitals.
    Done(&'static str),
}

impl Engine {
    /// An engine with a separate session, so that SET changes only its own settings.
    pub fn new_session(&self) -> Engine {
        Engine {
            context: SessionContext::new_with_state(self.context.state()),
            catalog: Arc::clone(&self.catalog),
        }
    }

    /// Parses statements.
    ///
    /// # Errors
    /// A syntax error in one of them.
    pub fn parse(sql: &str) -> Result<VecDeque<Statement>> {
        DFParser::parse_sql(sql)
    }

    /// Runs a statement. Rows are read only when they are requested.
    ///
    /// # Errors
    /// DataFusion's, and the cluster's.
    pub async fn run(&self, statement: Statement) -> Result<Outcome> {
        self.catalog.refresh().await?;
        let statement = match is_show_tables(&statement) {
            true => Self::parse(SHOW_TABLES)?.pop_front().unwrap_or(statement),
            false => copy::with_format(statement),
        };
        let plan = self.context.state().statement_to_plan(statement).await?;
        match &plan {
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => {
                self.catalog.declare(create).await?;
                return Ok(Outcome::Done("CREATE EXTERNAL TABLE"));
            }
            LogicalPlan::Ddl(DdlStatement::DropTable(dropped)) => {
                self.catalog.undeclare(&dropped.name, dropped.if_exists).await?;
                return Ok(Outcome::Done("DROP TABLE"));
            }
            // The catalog rejects these with a message.
            LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::CreateMemoryTable(_)) => {}
            LogicalPlan::Ddl(_) => {
                return Err(read_only_error("A statement that creates, changes or drops something"));
            }
            _ => {}
        }
        let done = session_change(&plan);
        let rows = self.context.execute_logical_plan(plan).await?;
        Ok(done.map_or(Outcome::Rows(rows), Outcome::Done))
    }
}

/// Whether the statement is SHOW TABLES.
pub fn is_show_tables(statement: &Statement) -> bool {
    let text = statement.to_string().to_ascii_uppercase();
    text.trim_end_matches(';').split_whitespace().eq(["SHOW", "TABLES"])
}

/// The name of a plan that changes the session; `None` if it returns rows.
fn session_change(plan: &LogicalPlan) -> Option<&'static str> {
    match plan {
        LogicalPlan::Statement(LogicalStatement::SetVariable(_)) => Some("SET"),
        LogicalPlan::Statement(LogicalStatement::ResetVariable(_)) => Some("RESET"),
        LogicalPlan::Statement(LogicalStatement::Prepare(_)) => Some("PREPARE"),
        LogicalPlan::Statement(LogicalStatement::Deallocate(_)) => Some("DEALLOCATE"),
        _ => None,
    }
}

/// The error for a statement that would write something.
pub fn read_only_error(what: &str) -> DataFusionError {
    DataFusionError::Plan(format!(
        "{what} is not possible, SQL here only reads; tables are declared by CREATE EXTERNAL TABLE and DROP TABLE"
    ))
}

/// An error message for users: the root cause, without the layers above it.
pub fn user_message(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::SQL(error, _) => error.to_string().replace("sql parser error: ", ""),
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::NotImplemented(text) => text.clone(),
        DataFusionError::ArrowError(error, _) => arrow_message(error),
        DataFusionError::Internal(text) if text.contains(NOT_FINISHED) => {
            "cannot finish a file: it could not be written or synced".to_string()
        }
        DataFusionError::SchemaError(error, _) => error.to_string(),
        root => root.strip_backtrace(),
    };
    let advice = match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => "; raise --memory",
        _ if text.contains("' not found") && text.contains("table '") => {
            "; SHOW TABLES lists declared tables, CREATE EXTERNAL TABLE declares one"
        }
        _ => "",
    };
    format!("{text}{advice}")
}

fn arrow_message(error: &ArrowError) -> String {
    match error {
        ArrowError::DivideByZero => "division by zero".to_string(),
        ArrowError::CastError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::ParseError(text)
        | ArrowError::InvalidArgumentError(text) => text.clone(),
        other => other.to_string(),
    }
}
