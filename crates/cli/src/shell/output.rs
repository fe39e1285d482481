//! Tables on a terminal or in a pipe, laid out as in HBase's shell.
//!
//! On a terminal the first column has a quarter of the width, and long text continues on the next
//! line of its column. In a pipe, text is neither truncated nor padded: `ROW  COLUMN+CELL`, then
//! ` row column=f:q, ..`.

use std::io::{self, Write};

/// Whether headers and errors are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Coloured,
}

/// Terminal escape sequences.
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const RESET: &str = "\x1b[0m";

/// The output of commands.
pub(crate) struct Printer {
    out: Box<dyn Write + Send>,
    /// Characters per line; `None`: unlimited.
    width: Option<usize>,
    style: Style,
}

impl Printer {
    pub(crate) fn new(out: Box<dyn Write + Send>, width: Option<usize>, style: Style) -> Printer {
        Printer { out, width, style }
    }

    /// Prints a line about a failure.
    pub(crate) fn error(&mut self, text: &str) -> io::Result<()> {
        self.styled(RED, |printer| printer.line(text))
    }

    /// Prints the header of a table with one column.
    pub(crate) fn head(&mut self, text: &str) -> io::Result<()> {
        self.styled(BOLD, |printer| printer.row(text))
    }

    fn styled(&mut self, code: &str, print: impl FnOnce(&mut Printer) -> io::Result<()>) -> io::Result<()> {
        if self.style == Style::Plain {
            return print(self);
        }
        write!(self.out, "{code}")?;
        print(self)?;
        write!(self.out, "{RESET}")
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Prints a row of one column, split into as many lines as it needs.
    pub(crate) fn row(&mut self, text: &str) -> io::Result<()> {
        for piece in pieces(self.width, text) {
            self.line(piece)?;
        }
        Ok(())
    }

    /// Prints the header of a table with two columns.
    pub(crate) fn header(&mut self, first: &str, second: &str) -> io::Result<()> {
        // As in HBase: rows are indented by one space, but their second column is not.
        self.styled(BOLD, |printer| printer.columns("", first, "  ", second))
    }

    /// Prints a row of two columns.
    pub(crate) fn pair(&mut self, first: &str, second: &str) -> io::Result<()> {
        self.columns(" ", first, " ", second)
    }

    fn columns(&mut self, inset: &str, first: &str, gap: &str, second: &str) -> io::Result<()> {
        let Some(width) = self.width else { return self.line(&format!("{inset}{first}{gap}{second}")) };
        let first_width = width / 4;
        let second_width = width.saturating_sub(first_width + 2);
        let (first, second) = (pieces(Some(first_width), first), pieces(Some(second_width), second));
        for at in 0..first.len().max(second.len()) {
            let piece = |of: &[&str]| of.get(at).copied().unwrap_or_default().to_string();
            let line = format!("{inset}{:first_width$}{gap}{}", piece(&first), piece(&second));
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// Prints the line after a table.
    pub(crate) fn footer(&mut self, rows: u64) -> io::Result<()> {
        self.line(&format!("{rows} row(s)"))
    }

    /// Prints text without a newline, and flushes it.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{text}")?;
        self.out.flush()
    }

    /// Flushes buffered output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Splits `text` into pieces of `width` characters. Returns at least one, which may be empty.
fn pieces(width: Option<usize>, text: &str) -> Vec<&str> {
    let Some(width) = width.filter(|width| *width > 0) else { return vec![text] };
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((at, _)) = rest.char_indices().nth(width) {
        let (piece, tail) = rest.split_at(at);
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Collects the output.
    #[derive(Clone, Default)]
    pub(crate) struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

    impl CapturedOutput {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed(width: Option<usize>, print: impl Fn(&mut Printer) -> io::Result<()>) -> String {
        let captured = CapturedOutput::default();
        print(&mut Printer::new(Box::new(captured.clone()), width, Style::Plain)).unwrap();
        captured.text()
    }

    #[test]
    fn lines_are_not_wrapped_in_a_pipe() {
        let long = "x".repeat(300);
        let table = printed(None, |printer| {
            printer.header("ROW", "COLUMN+CELL")?;
            printer.pair("r1", "column=f:q, timestamp=1970-01-01T00:00:01, value=v")?;
            printer.pair("r2", &long)?;
            printer.footer(2)
        });
        let expected = format!(
            "ROW  COLUMN+CELL\n r1 column=f:q, timestamp=1970-01-01T00:00:01, value=v\n r2 {long}\n2 row(s)\n"
        );
        assert_eq!(table, expected);
        assert_eq!(printed(None, |printer| printer.row("t1")), "t1\n");
    }

    #[test]
    fn headers_and_failures_are_coloured_if_colours_are_enabled() {
        let captured = CapturedOutput::default();
        let mut printer = Printer::new(Box::new(captured.clone()), None, Style::Coloured);
        printer.head("TABLE").unwrap();
        printer.row("t1").unwrap();
        printer.error("ERROR: no").unwrap();
        assert_eq!(captured.text(), "\x1b[1mTABLE\n\x1b[0mt1\n\x1b[31mERROR: no\n\x1b[0m");
    }

    #[test]
    fn columns_are_aligned_and_long_text_wraps_on_a_terminal() {
        let table = printed(Some(40), |printer| {
            printer.header("ROW", "COLUMN+CELL")?;
            printer.pair("a-row-of-fourteen", "column=f:q, timestamp=1970, value=v")?;
            printer.pair("r", "")
        });
        let expected = [
            "ROW         COLUMN+CELL",
            " a-row-of-f column=f:q, timestamp=1970, ",
            " ourteen    value=v",
            " r",
        ];
        let found: Vec<&str> = table.lines().collect();
        assert_eq!(found, expected.map(str::trim_end));
        assert_eq!(printed(Some(4), |printer| printer.row("123456789")), "1234\n5678\n9\n");
        assert_eq!(
            printed(Some(4), |printer| printer.row("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}")),
            "\u{e9}\u{e9}\u{e9}\u{e9}\n\u{e9}\n"
        );
        // A terminal this narrow is useless, but must not cause a panic.
        assert_eq!(printed(Some(2), |printer| printer.pair("a", "b")), " a b\n");
    }
}
