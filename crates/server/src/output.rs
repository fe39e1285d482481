//! Lines on the standard output of a running server or gateway.

use std::fmt;
use std::io::{self, Write};

/// Prints a line, like `println!`, which would end the process when the reader of the output has
/// gone: a server must outlive the `tee` or the terminal that showed its start.
macro_rules! print_line {
    ($($argument:tt)*) => {
        $crate::output::print(format_args!($($argument)*))
    };
}
pub(crate) use print_line;

/// Prints `line`; use [`print_line`].
pub(crate) fn print(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}
