//! The column sidecar: a second copy of a file's cells, column by column, for queries that read few
//! columns of many rows.
//!
//! ```text
//! [Data]...[Data] [row keys][a00][a01]...[a90] [directory] [Data]...[Data] [row keys]... [catalog]
//! |<------------- first stretch ---------------------->|  |<- second stretch -
//! ```
//!
//! A *stretch* is the rows of some consecutive data blocks. Its *strips* follow its data blocks.
//! Each strip is a block of kind `META` with the first value that each row has in one column. The
//! *directory* follows; it lists the strips and describes the cells. The *catalog*, after the last
//! directory, lists the stretches; the file info has its position.
//!
//! HBase skips blocks of this kind and ignores unknown names in the file info. Files that HBase
//! writes have no sidecar. The cells of a file do not depend on its sidecar. If the sidecar is
//! damaged, the cells are read instead.
//!
//! Strips are correct only for *plain* stretches, whose cells are all puts without tags: there the
//! first cell of a column is its newest version. Other stretches have a directory that states this,
//! and no strips.
//!
//! * [`Catalog`], [`Directory`], [`Strip`] decode the parts, and check each part once;
//! * `writer` writes them.

mod catalog;
mod directory;
mod strip;
pub(crate) mod writer;

use std::sync::Arc;

pub use catalog::{Catalog, CatalogEntry};
pub use directory::{Directory, RowMark};
pub use strip::Strip;

use crate::block::kind::BlockKind;
use crate::error::Fault;
use crate::index::Target;
use crate::reader::Reader;
use crate::source::{BlockSource, Stop};

/// The version of this format. Files with another version are read as if they had no sidecar.
const VERSION: u8 = 1;

/// Maximum rows of a stretch with strips. A decoded strip takes memory for each row, however small
/// the strip is.
const ROWS_MAX: usize = 1 << 22;

/// The location of a part of a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidecarLocation(pub(crate) Target);

/// Reads all of a part from any bytes. `which` is 0 for a catalog, 1 for a directory, otherwise a
/// strip.
#[cfg(fuzzing)]
pub(crate) fn read_through(which: u8, rows: usize, payload: &bytes::Bytes) {
    match which {
        0 => _ = Catalog::parse(payload),
        1 => _ = Directory::parse(payload).map(|directory| directory.strip(b"q")),
        _ => _ = Strip::parse(payload.clone(), rows).map(|strip| strip.values().flatten().count()),
    }
}

impl Reader {
    /// The catalog of the sidecar; `None` if the file has no sidecar.
    ///
    /// # Errors
    /// [`Stop::Miss`] for its block; [`Stop::Failed`] if it is damaged or has another version.
    pub fn catalog(self: &Arc<Self>, source: &dyn BlockSource) -> Result<Option<Catalog>, Stop> {
        let Some(target) = self.info().sidecar else { return Ok(None) };
        self.sidecar_part(SidecarLocation(target), source, Catalog::parse).map(Some)
    }

    /// The directory of a stretch. `location` is from the catalog.
    ///
    /// # Errors
    /// As for [`catalog`](Self::catalog).
    pub fn directory(
        self: &Arc<Self>,
        location: SidecarLocation,
        source: &dyn BlockSource,
    ) -> Result<Directory, Stop> {
        self.sidecar_part(location, source, Directory::parse)
    }

    /// A strip of a stretch with `rows` rows. `location` is from the stretch's directory.
    ///
    /// # Errors
    /// As for [`catalog`](Self::catalog).
    pub fn strip(
        self: &Arc<Self>,
        location: SidecarLocation,
        rows: usize,
        source: &dyn BlockSource,
    ) -> Result<Strip, Stop> {
        self.sidecar_part(location, source, |payload| Strip::parse(payload.clone(), rows))
    }

    fn sidecar_part<T>(
        self: &Arc<Self>,
        SidecarLocation(target): SidecarLocation,
        source: &dyn BlockSource,
        parse: impl Fn(&bytes::Bytes) -> Result<T, Fault>,
    ) -> Result<T, Stop> {
        let block = self.find(target, BlockKind::Meta, source)?;
        parse(block.payload()).map_err(|fault| fault.at(self.path(), target.offset).into())
    }
}
