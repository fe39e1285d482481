//! `grampus shell`: HBase's shell, with its grammar and its output, on top of the client crate.
//!
//! * `lexer`, `parser`, `value`: the language, which is the subset of Ruby that HBase's users
//!   write;
//! * `arguments`: typed access to a command's arguments, which rejects unused ones;
//! * `commands`: the commands, one file per group; `schema`: parsing and formatting of tables;
//! * `output`, `text`: formatting of results; `messages`: messages of failures;
//! * `session`: runs commands in sequence; `reader`: commands from standard input, `editor` with
//!   `completion`: commands from an interactive user.
//!
//! As in HBase, the source of commands decides what a failure does. With `-e`, `-f` and `-n`, the
//! first failure ends the shell with status 1. At a prompt, and in a pipe without `-n`, the next
//! command follows and the status is 0.

mod arguments;
mod commands;
mod completion;
mod editor;
mod error;
mod lexer;
mod messages;
mod output;
mod parser;
mod reader;
mod schema;
mod session;
pub(crate) mod text;
mod value;

use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};

use base::BoxFuture;
use base::env::Env;
use clap::Args;
use client::{Client, ClientOptions, ClusterKey};

use error::Position;
use output::{Printer, Style};
use reader::Reader;
use session::{CommandStatus, ShellSession};

/// Line width of a terminal that does not report its width.
const WIDTH_DEFAULT: usize = 100;
/// Retries, as in HBase's shell: few, because the user is waiting.
const RETRIES_MAX: u32 = 7;

/// Options of `grampus shell`.
#[derive(Debug, Clone, Args)]
pub struct ShellArguments {
    /// Run these commands, separated by semicolons or newlines; exit with status 1 if one fails
    #[arg(short = 'e', long = "execute", value_name = "COMMANDS", conflicts_with = "file")]
    pub execute: Option<String>,
    /// Run the commands in FILE, like --execute
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Exit with status 1 if a command of standard input fails, and show no prompt
    #[arg(short = 'n', long)]
    pub noninteractive: bool,
    /// Print prompts, commands and their values, as HBase's shell does
    ///
    /// Each command of standard input is printed after a prompt before it runs.
    #[arg(long, conflicts_with_all = ["execute", "file"])]
    pub echo: bool,
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Waits for the next Ctrl-C. The first call installs a signal handler, so that Ctrl-C no longer
/// ends the process. It is called only if there is a prompt to return to.
pub type Interrupts = Box<dyn Fn() -> BoxFuture<'static, ()> + Send>;

/// Runs the shell.
///
/// # Errors
/// A one-line message for the user: why the shell could not start, or which command of a script
/// failed. The error of that command is in the output.
pub async fn shell(env: Env, interrupts: Interrupts, arguments: &ShellArguments) -> Result<(), String> {
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    let script = match (&arguments.execute, &arguments.file) {
        (Some(commands), _) => {
            Some(parser::parse(commands, Position::START).map_err(|error| error.to_string())?)
        }
        (None, Some(file)) => Some(parse_file(file)?),
        (None, None) => None,
    };
    let user = user();
    let options = ClientOptions { user: user.clone(), retries_max: RETRIES_MAX, ..ClientOptions::default() };
    let client = Client::new(env.clone(), cluster.registry(), options);
    let is_terminal = io::stdout().is_terminal();
    let style = if is_terminal && wants_colours() { Style::Coloured } else { Style::Plain };
    let width = is_terminal.then(terminal_width);
    let printer = Printer::new(Box::new(BufWriter::new(io::stdout())), width, style);
    let mut session = ShellSession::new(env, client, user, printer);
    let done = match script {
        Some(statements) => run_script(&mut session, &statements).await,
        None => Reader::new(arguments).run(&mut session, &interrupts).await,
    };
    match done {
        Ok(()) => Ok(()),
        Err(EarlyExit::Failed(message)) => Err(message),
        // The reader closed the pipe, as with `| head`. This is no failure.
        Err(EarlyExit::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(EarlyExit::Output(error)) => Err(format!("cannot write: {error}")),
    }
}

/// Why the shell ended early.
enum EarlyExit {
    /// A command failed, or input cannot be read.
    Failed(String),
    /// Output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for EarlyExit {
    fn from(error: io::Error) -> EarlyExit {
        EarlyExit::Output(error)
    }
}

async fn run_script(session: &mut ShellSession, statements: &[parser::Statement]) -> Result<(), EarlyExit> {
    for (at, statement) in statements.iter().enumerate() {
        match session.run(statement).await? {
            CommandStatus::Done => {}
            CommandStatus::Exit => break,
            CommandStatus::Failed => {
                let (number, all) = (at + 1, statements.len());
                let Position { line, .. } = statement.at;
                let message = format!("command {number} of {all} failed: {} in line {line}", statement.name);
                return Err(EarlyExit::Failed(message));
            }
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a script of the user's, not a file of the store's")]
fn parse_file(path: &Path) -> Result<Vec<parser::Statement>, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let source =
        String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8; write bytes as \"\\xff\""))?;
    parser::parse(&source, Position::START).map_err(|error| format!("{shown}: {error}"))
}

/// `NO_COLOR` with a non-empty value disables colours, see no-color.org. A dumb terminal has none.
fn wants_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

fn terminal_width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|columns| *columns > 0).unwrap_or(WIDTH_DEFAULT)
}

/// The user name sent to servers. They trust it, as HBase does without security.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "grampus".to_string())
}
