//! Layer 7: sub-commands of the binary.
//!
//! * [`mod@bench`]: `grampus bench`, a load generator for Grampus and HBase alike;
//! * [`mod@canary`]: `grampus canary`, which asks a cluster a little of everything, as HBase's canary does;
//! * [`mod@records`]: `grampus records`, tables of records with many attributes, added up in several ways;
//! * [`mod@repair`]: `grampus repair`, repairs of regions that a running master carries out;
//! * [`mod@shell`]: `grampus shell`, HBase's shell over the [`client`] crate;
//! * [`mod@sql`]: `grampus sql`, which is a binary of its own;
//! * [`mod@top`]: `grampus top`, what HBase's hbtop shows.
//!
//! Knows nothing about: how a server works inside; it talks to one as any client does.

pub mod bench;
pub mod canary;
mod quorum;
pub mod records;
pub mod repair;
pub mod shell;
pub mod sql;
pub mod top;

pub use bench::{BenchArguments, bench};
pub use canary::{CanaryArguments, canary};
pub use records::{RecordsArguments, records};
pub use repair::{OnlineRepair, RegionRepair, RepairTarget, repair};
pub use shell::{Interrupts, ShellArguments, shell};
pub use sql::{SqlArguments, sql};
pub use top::{TopArguments, top};
