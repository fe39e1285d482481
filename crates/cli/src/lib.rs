//! Subcommands of the binary.
//!
//! * [`mod@bench`]: `grampus bench`, a load generator for Grampus and HBase;
//! * [`mod@canary`]: `grampus canary`, which probes every part of a cluster, as HBase's canary
//!   does;
//! * [`mod@load_hfiles`]: `grampus load-hfiles`, which loads HFiles into a table;
//! * [`mod@repair`]: `grampus repair`, repairs of regions that a running master performs;
//! * [`mod@shell`]: `grampus shell`, HBase's shell on top of the [`client`] crate;
//! * [`mod@sql`]: `grampus sql`, which starts a separate binary;
//! * [`mod@tiers`]: `grampus tiers`, the state of the storage tiers;
//! * [`stage_bar`]: the progress bar of `grampus adopt` and `grampus release`;
//! * [`mod@top`]: `grampus top`, the equivalent of HBase's hbtop.
//!
//! This crate knows nothing about the inside of a server: it connects to one as any client does.

pub mod bench;
pub mod canary;
pub mod load_hfiles;
pub mod repair;
pub mod shell;
pub mod sql;
pub mod stage_bar;
pub mod tiers;
pub mod top;

pub use bench::{BenchArguments, bench};
pub use canary::{CanaryArguments, canary};
pub use load_hfiles::{LoadHfilesArguments, load_hfiles};
pub use repair::{OnlineRepair, RegionRepair, RepairTarget, repair};
pub use shell::{Interrupts, ShellArguments, shell};
pub use sql::{SqlArguments, sql};
pub use stage_bar::StageBar;
pub use tiers::{TiersArguments, tiers};
pub use top::{TopArguments, top};
