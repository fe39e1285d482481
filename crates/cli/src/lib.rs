//! Layer 6: sub-commands of the binary.
//!
//! * [`mod@shell`]: `grampus shell`, HBase's shell over the [`client`] crate.
//!
//! Knows nothing about: how a server works inside; it talks to one as any client does.

pub mod shell;

pub use shell::{Interrupts, ShellArguments, shell};
