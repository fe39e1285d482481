//! Runs the benchmark against a server.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use records::RecordsArguments;

fn main() -> ExitCode {
    let arguments = RecordsArguments::parse();
    let runtimes = os::Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"));
    let outcome = runtimes.and_then(|runtimes| {
        let env = os::env(Arc::new(runtimes));
        os::block_on(records::records(env, &arguments, &mut std::io::stdout()))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("records: {message}");
            ExitCode::FAILURE
        }
    }
}
