//! Looks as plain text, one below the other: nothing is cut, and all lines are there.

use std::io::{self, Write};

use super::TopArguments;
use super::cluster::Look;
use super::source::Source;
use super::view::View;
use super::words;

/// Prints looks, the first of which was made.
///
/// # Errors
/// If nothing can be printed any more; a reader that has enough is no failure.
pub(super) async fn run(
    mut source: Source,
    mut view: View,
    first: Look,
    arguments: &TopArguments,
) -> Result<(), String> {
    let mut look = Ok(first);
    for made in 1u64.. {
        let printed = match &look {
            Ok(look) => io::stdout().lock().write_all(text(&mut view, look).as_bytes()),
            Err(why) => writeln!(io::stderr(), "grampus: this look failed, trying again: {why}"),
        };
        match printed {
            Ok(()) if Some(made) == arguments.iterations => break,
            Ok(()) => look = source.look_after(arguments.delay).await,
            Err(error) => return ended(error),
        }
    }
    Ok(())
}

/// Prints the names of the fields.
///
/// # Errors
/// As [`run`].
pub(super) fn names(view: &View) -> Result<(), String> {
    let mut out = io::stdout().lock();
    for (field, _) in &view.fields {
        if let Err(error) = writeln!(out, "{}", field.head()) {
            return ended(error);
        }
    }
    Ok(())
}

fn ended(error: io::Error) -> Result<(), String> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(format!("cannot write: {error}")),
    }
}

/// A look, with an empty line behind summary and table.
fn text(view: &mut View, look: &Look) -> String {
    let (lines, fields) = (view.lines(look), view.shown());
    view.widths.fit(&fields, &lines);
    let mut text = words::summary(&look.summary).join("\n") + "\n\n" + &view.widths.head(&fields) + "\n";
    for line in &lines {
        text += &(view.widths.record(&fields, line) + "\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::cluster::Watch;
    use super::super::cluster::tests::{later, region, server, status};
    use super::super::field::Field;
    use super::super::mode::Mode;
    use super::*;

    #[test]
    fn looks_are_printed_whole() {
        let servers = [server("a", &[region("t", "", 0, 1), region("u", "", 0, 1)])];
        let mut watch = Watch::default();
        watch.look(&status(&servers), 1_000);
        let look = watch.look(&status(&later(&servers, 42)), 2_000);
        let mut view = View::new(Mode::Table);
        view.show_only(&[Field::Table, Field::Requests]);
        let expected = "grampus top - 00:00:02 UTC\nVersion: 2.6.4\nCluster ID: the-id\n\
            RegionServer(s): 1 total, 1 live, 0 dead\nRegionCount: 2 total, 0 rit\n\
            Average Cluster Load: 2.00\nAggregate Request/s: 84\n\n\
            TABLE #REQ/S\nt         42\nu         42\n\n";
        assert_eq!(text(&mut view, &look), expected);
    }
}
