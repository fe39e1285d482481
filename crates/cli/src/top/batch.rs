//! Samples as plain text, in sequence. Lines are neither truncated nor left out.

use std::io::{self, Write};

use super::TopArguments;
use super::cluster::Sample;
use super::source::Source;
use super::view::View;
use super::words;

/// Prints samples, beginning with `first`.
///
/// # Errors
/// If the output fails. A closed pipe is no error.
pub(super) async fn run(
    mut source: Source,
    mut view: View,
    first: Sample,
    arguments: &TopArguments,
) -> Result<(), String> {
    let mut sample = Ok(first);
    for count in 1u64.. {
        let printed = match &sample {
            Ok(sample) => io::stdout().lock().write_all(text(&mut view, sample).as_bytes()),
            Err(why) => writeln!(io::stderr(), "grampus: update failed, retrying: {why}"),
        };
        match printed {
            Ok(()) if Some(count) == arguments.iterations => break,
            Ok(()) => sample = source.sample_after(arguments.delay).await,
            Err(error) => return output_error(error),
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
            return output_error(error);
        }
    }
    Ok(())
}

fn output_error(error: io::Error) -> Result<(), String> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(format!("cannot write: {error}")),
    }
}

/// A sample as text: summary, empty line, table, empty line.
fn text(view: &mut View, sample: &Sample) -> String {
    let (lines, fields) = (view.lines(sample), view.visible_fields());
    view.widths.fit(&fields, &lines);
    let mut text = words::summary(&sample.summary).join("\n") + "\n\n" + &view.widths.head(&fields) + "\n";
    for line in &lines {
        text += &(view.widths.record(&fields, line) + "\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::cluster::Sampler;
    use super::super::cluster::tests::{later, region, server, status};
    use super::super::field::Field;
    use super::super::mode::Mode;
    use super::*;

    #[test]
    fn samples_are_printed_whole() {
        let servers = [server("a", &[region("t", "", 0, 1), region("u", "", 0, 1)])];
        let mut sampler = Sampler::default();
        sampler.sample(&status(&servers), 1_000);
        let sample = sampler.sample(&status(&later(&servers, 42)), 2_000);
        let mut view = View::new(Mode::Table);
        view.show_only(&[Field::Table, Field::Requests]);
        let expected = "grampus top - 00:00:02 UTC\nVersion: 2.6.4\nCluster ID: the-id\n\
            RegionServer(s): 1 total, 1 live, 0 dead\nRegionCount: 2 total, 0 rit\n\
            Average Cluster Load: 2.00\nAggregate Request/s: 84\n\n\
            TABLE #REQ/S\nt         42\nu         42\n\n";
        assert_eq!(text(&mut view, &sample), expected);
    }
}
