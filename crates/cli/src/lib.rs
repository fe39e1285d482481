//! Layer 6: sub-commands.
use clap::Args;

/// What the shell is to do.
#[derive(Debug, Args)]
pub struct ShellArguments {
    /// Commands to run, separated by semicolons
    #[arg(short = 'e', long = "execute", value_name = "COMMANDS")]
    pub execute: Option<String>,
}

/// Runs the shell.
///
/// # Errors
/// One line for a person.
pub async fn shell(_: base::env::Env, _: &ShellArguments) -> Result<(), String> {
    Err("the shell is being built".into())
}
