//! `grampus shell`: HBase's shell, its grammar and its output, over the client crate.
//!
//! * `lexer`, `parser`, `value`: the language, which is the part of Ruby that HBase's users write;
//! * `arguments`: a command's values taken one by one, none left over;
//! * `commands`: what can be asked, a file a group; `schema`: tables as the shell writes and shows them;
//! * `output`, `text`: how answers look; `words`: how failures are told;
//! * `session`: one command after the other; `reader`: commands from standard input, `editor` with `completion` those of
//!   a person.
//!
//! Where commands come from decides what a failure does, as in HBase: of `-e`, `-f` and `-n` the first one ends the
//! shell with status 1, at a prompt and in a pipe without `-n` the next command follows and the status is 0.

mod arguments;
mod commands;
mod completion;
mod editor;
mod error;
mod lexer;
mod output;
mod parser;
mod reader;
mod schema;
mod session;
pub(crate) mod text;
mod value;
mod words;

use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};

use base::BoxFuture;
use base::env::Env;
use clap::Args;
use client::{Client, ClientOptions, Registry};

use crate::quorum;
use error::Position;
use output::{Printer, Style};
use reader::Reader;
use session::{Session, Step};

/// Characters of a line on a terminal that does not say how many it has.
const WIDTH_DEFAULT: usize = 100;
/// Tries after the first, as HBase's shell sets it: a person waits for the answer.
const RETRIES_MAX: u32 = 7;

/// What the shell is to do.
#[derive(Debug, Clone, Args)]
pub struct ShellArguments {
    /// Commands to run, separated by semicolons or lines; the first that fails ends the shell with status 1
    #[arg(short = 'e', long = "execute", value_name = "COMMANDS", conflicts_with = "file")]
    pub execute: Option<String>,
    /// A file of commands to run, as --execute does
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// End with status 1 at the first command of standard input that fails, and show no prompt
    #[arg(short = 'n', long)]
    pub noninteractive: bool,
    /// Show each command of standard input behind a prompt before it runs, and values of commands, as HBase's shell does
    #[arg(long, conflicts_with_all = ["execute", "file"])]
    pub echo: bool,
    /// Where the cluster's ZooKeeper answers; several servers with commas between them
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: String,
    /// Add N to ZooKeeper's port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Waits for the next Ctrl-C. The first call takes Ctrl-C from the system, which would end the process; it is made only
/// when there is a prompt to go back to.
pub type Interrupts = Box<dyn Fn() -> BoxFuture<'static, ()> + Send>;

/// Runs the shell.
///
/// # Errors
/// One line for a person: why the shell could not begin, or which command of a script failed. What that command said
/// stands in the output.
pub async fn shell(env: Env, interrupts: Interrupts, arguments: &ShellArguments) -> Result<(), String> {
    let quorum = quorum::with_offset(&arguments.zookeeper, arguments.port_offset)?;
    let script = match (&arguments.execute, &arguments.file) {
        (Some(commands), _) => {
            Some(parser::parse(commands, Position::START).map_err(|error| error.to_string())?)
        }
        (None, Some(file)) => Some(parse_file(file)?),
        (None, None) => None,
    };
    let user = user();
    let options = ClientOptions { user: user.clone(), retries_max: RETRIES_MAX, ..ClientOptions::default() };
    let client = Client::new(env.clone(), Registry::zookeeper(&quorum, "/hbase"), options);
    let is_terminal = io::stdout().is_terminal();
    let style = if is_terminal && wants_colours() { Style::Coloured } else { Style::Plain };
    let width = is_terminal.then(terminal_width);
    let printer = Printer::new(Box::new(BufWriter::new(io::stdout())), width, style);
    let mut session = Session::new(env, client, user, printer);
    let done = match script {
        Some(statements) => run_script(&mut session, &statements).await,
        None => Reader::new(arguments).run(&mut session, &interrupts).await,
    };
    match done {
        Ok(()) => Ok(()),
        Err(Ended::Failed(message)) => Err(message),
        // Nobody listens any more, as behind `| head`: no failure of ours.
        Err(Ended::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Ended::Output(error)) => Err(format!("cannot write: {error}")),
    }
}

/// Why the shell ended early.
enum Ended {
    /// A command failed, or input cannot be read.
    Failed(String),
    /// Output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Output(error)
    }
}

async fn run_script(session: &mut Session, statements: &[parser::Statement]) -> Result<(), Ended> {
    for (at, statement) in statements.iter().enumerate() {
        match session.run(statement).await? {
            Step::Done => {}
            Step::Exit => break,
            Step::Failed => {
                let (number, all) = (at + 1, statements.len());
                let Position { line, .. } = statement.at;
                let message = format!("command {number} of {all} failed: {} in line {line}", statement.name);
                return Err(Ended::Failed(message));
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

/// `NO_COLOR` set to anything means none, see no-color.org; a dumb terminal has none.
fn wants_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

fn terminal_width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.filter(|columns| *columns > 0).unwrap_or(WIDTH_DEFAULT)
}

/// The user that servers are told, as an insecure HBase takes it.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "grampus".to_string())
}
