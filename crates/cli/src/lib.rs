//! Subcommands of the binary.
//!
//! * [`mod@bench`]: `grampus bench`, a load generator for Grampus and HBase;
//! * [`mod@canary`]: `grampus canary`, which probes every part of a cluster, as HBase's canary
//!   does;
//! * `dashes`: HBase's spelling of options;
//! * [`mod@diff`]: `grampus diff`, which compares two tables;
//! * [`mod@load_hfiles`]: `grampus load-hfiles`, which loads HFiles into a table;
//! * [`mod@migrate`]: `grampus migrate`, which moves tables from a running HBase;
//! * [`mod@repair`]: `grampus repair`, repairs of regions that a running master performs;
//! * [`mod@shell`]: `grampus shell`, HBase's shell on top of the [`client`] crate;
//! * [`mod@sql`]: `grampus sql`, `export` and `import`, which start a separate binary;
//! * [`mod@tiers`]: `grampus tiers`, the state of the storage tiers;
//! * [`stage_bar`]: the progress bar of `grampus adopt` and `grampus release`;
//! * [`mod@top`]: `grampus top`, the equivalent of HBase's hbtop.
//!
//! This crate knows nothing about the inside of a server: it connects to one as any client does.

pub mod bench;
pub mod canary;
mod dashes;
pub mod diff;
pub mod load_hfiles;
pub mod migrate;
pub mod repair;
pub mod shell;
pub mod sql;
pub mod stage_bar;
pub mod tiers;
pub mod top;

pub use bench::{BenchArguments, bench};
pub use canary::{CanaryArguments, canary};
pub use dashes::double_dashed;
pub use diff::{DiffArguments, diff};
pub use load_hfiles::{LoadHfilesArguments, load_hfiles};
pub use migrate::{MigrateStep, migrate};
pub use repair::{OnlineRepair, RegionRepair, RepairTarget, repair};
pub use shell::{Interrupts, ShellArguments, shell};
pub use sql::{SqlArguments, SqlCommand, sql};
pub use stage_bar::StageBar;
pub use tiers::{TiersArguments, tiers};
pub use top::{TopArguments, top};
