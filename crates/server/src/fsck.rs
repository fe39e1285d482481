//! `grampus fsck`: checks a root directory while no server runs.

use std::process::ExitCode;

use ::adoption::owner;
use ::fsck::{Checked, Depth, Request, report};

use crate::arguments::FsckArguments;
use crate::directory::{Bar, Directory, Failure, exit_code, run};

/// The exit code if something is wrong.
const INCONSISTENT: u8 = 4;

/// Runs `grampus fsck`.
pub fn fsck(arguments: &FsckArguments) -> ExitCode {
    exit_code(run(&arguments.dir, &arguments.place, async |directory| check(&directory, arguments).await))
}

/// Warns if servers that the directory names accept connections. It may be a copy of theirs, so the
/// check continues.
async fn warn_of_servers(directory: &Directory, bar: &Bar) -> Result<(), Failure> {
    let servers = owner::recorded_servers(&*directory.fs, &directory.root).await?;
    let signs = owner::listening(&directory.env, &servers, bar).await;
    bar.0.clear();
    for sign in signs {
        eprintln!(
            "grampus: warning: {sign}; if it uses {}, stop it: the check may report errors that do not exist",
            directory.shown
        );
    }
    Ok(())
}

async fn check(directory: &Directory, arguments: &FsckArguments) -> Result<u8, Failure> {
    let request = Request { depth: if arguments.quick { Depth::Head } else { Depth::Cells } };
    let bar = Bar::default();
    let Directory { env, fs, root, .. } = directory;
    let _lock = directory.lock_unchanged()?;
    if directory.local().is_none() {
        warn_of_servers(directory, &bar).await?;
    }
    let checked = ::fsck::check(env, fs, root, request, &bar).await;
    bar.0.clear();
    let checked: Checked = checked?;
    match arguments.json {
        true => println!("{:#}", report::json(&checked)),
        false => print!("{}", report::text(&checked)),
    }
    Ok(if checked.problems.is_empty() { 0 } else { INCONSISTENT })
}
