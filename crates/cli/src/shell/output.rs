//! Tables on a terminal or in a pipe, as HBase's shell lays them out.
//!
//! On a terminal the first column has a quarter of the width, and long text goes on in the next line of its column. In
//! a pipe nothing is cut or filled up: `ROW  COLUMN+CELL`, then ` row column=f:q, ..`.

use std::io::{self, Write};

/// Whether heads and failures stand out by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Coloured,
}

/// Escape sequences of terminals.
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const RESET: &str = "\x1b[0m";

/// Where commands print to.
pub(crate) struct Printer {
    out: Box<dyn Write + Send>,
    /// Characters of a line; `None`: lines are as long as they are.
    width: Option<usize>,
    style: Style,
}

impl Printer {
    pub(crate) fn new(out: Box<dyn Write + Send>, width: Option<usize>, style: Style) -> Printer {
        Printer { out, width, style }
    }

    /// A line about a failure.
    pub(crate) fn error(&mut self, text: &str) -> io::Result<()> {
        self.styled(RED, |printer| printer.line(text))
    }

    /// The head of one column.
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

    /// A line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Text of one column, cut into as many lines as it needs.
    pub(crate) fn row(&mut self, text: &str) -> io::Result<()> {
        for piece in pieces(self.width, text) {
            self.line(piece)?;
        }
        Ok(())
    }

    /// The heads of two columns.
    pub(crate) fn header(&mut self, first: &str, second: &str) -> io::Result<()> {
        // Rows begin one space further in, their second column does not.
        self.styled(BOLD, |printer| printer.columns("", first, "  ", second))
    }

    /// A row of two columns.
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

    /// The line behind a table.
    pub(crate) fn footer(&mut self, rows: u64) -> io::Result<()> {
        self.line(&format!("{rows} row(s)"))
    }

    /// Text without a line's end, shown at once.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{text}")?;
        self.out.flush()
    }

    /// Hands on what is held back.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// `text` in pieces of `width` characters; at least one, which may be empty.
fn pieces(width: Option<usize>, text: &str) -> Vec<&str> {
    let Some(width) = width.filter(|width| *width > 0) else { return vec![text] };
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((at, _)) = rest.char_indices().nth(width) {
        let (piece, behind) = rest.split_at(at);
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what is printed.
    #[derive(Clone, Default)]
    pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed(width: Option<usize>, print: impl Fn(&mut Printer) -> io::Result<()>) -> String {
        let kept = Kept::default();
        print(&mut Printer::new(Box::new(kept.clone()), width, Style::Plain)).unwrap();
        kept.text()
    }

    #[test]
    fn in_a_pipe_lines_are_as_long_as_they_are() {
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
    fn heads_and_failures_stand_out_where_there_are_colours() {
        let kept = Kept::default();
        let mut printer = Printer::new(Box::new(kept.clone()), None, Style::Coloured);
        printer.head("TABLE").unwrap();
        printer.row("t1").unwrap();
        printer.error("ERROR: no").unwrap();
        assert_eq!(kept.text(), "\x1b[1mTABLE\n\x1b[0mt1\n\x1b[31mERROR: no\n\x1b[0m");
    }

    #[test]
    fn on_a_terminal_columns_line_up_and_long_text_goes_on_below() {
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
        // Too narrow to be of use, and still no panic.
        assert_eq!(printed(Some(2), |printer| printer.pair("a", "b")), " a b\n");
    }
}
