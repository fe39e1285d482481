//! The column sidecar: the cells of a file once more, column by column, for those who read few columns of many rows.
//!
//! ```text
//! data blocks of a stretch   strips of the stretch            its directory   data blocks of the next   ...   catalog
//! [Data][Data]...[Data]      [row keys][a00][a01]...[a90]     [Meta]          [Data][Data]...                 [Meta]
//! ```
//!
//! A *stretch* is the rows between two data blocks. Behind its data blocks stand its *strips*, each a block of kind `META` with
//! the first value that each row has of one column; then its *directory*: what strips there are, and what is known of the
//! cells. The *catalog*, behind the last of them, has the stretches; the file info says where it is. HBase reads past blocks of
//! this kind, and past names of the file info that it does not know; what it writes has no sidecar. Nothing is in a sidecar
//! that is not in the cells, which are as they would be without: who finds it damaged reads those.
//!
//! Strips tell the truth only of *plain* stretches, whose cells are all puts without tags: then the first cell of a column is
//! its newest version. Others have a directory that says so, and no strips.
//!
//! * [`Catalog`], [`Directory`], [`Strip`]: what is read; each is checked once, when it is made of a block;
//! * `writer`: what is written.

mod catalog;
mod directory;
mod strip;
pub(crate) mod writer;

use std::sync::Arc;

pub use catalog::{Catalog, CatalogEntry};
pub use directory::{Directory, Mark};
pub use strip::Strip;

use crate::block::kind::BlockKind;
use crate::error::Fault;
use crate::index::Target;
use crate::reader::Reader;
use crate::source::{BlockSource, Stop};

/// The form of all that is described here. Files with another are read as if they had no sidecar.
const VERSION: u8 = 1;

/// Rows of a stretch that has strips at most: what is made of a strip takes memory for each, whatever the strip itself takes.
const ROWS_MAX: usize = 1 << 22;

/// Where a part of a sidecar is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidecarPlace(pub(crate) Target);

/// Reads all of a part, of whatever bytes: 0 a catalog, 1 a directory, else a strip.
#[cfg(fuzzing)]
pub(crate) fn read_through(which: u8, rows: usize, payload: &bytes::Bytes) {
    match which {
        0 => _ = Catalog::parse(payload),
        1 => _ = Directory::parse(payload).map(|directory| directory.strip(b"q")),
        _ => _ = Strip::parse(payload.clone(), rows).map(|strip| strip.values().flatten().count()),
    }
}

impl Reader {
    /// The catalog of its sidecar; `None` if it has none.
    ///
    /// # Errors
    /// [`Stop::Miss`] for its block; [`Stop::Failed`] if it is damaged.
    pub fn catalog(self: &Arc<Self>, source: &dyn BlockSource) -> Result<Option<Catalog>, Stop> {
        let Some(target) = self.info().sidecar else { return Ok(None) };
        self.sidecar_part(SidecarPlace(target), source, Catalog::parse).map(Some)
    }

    /// The directory of a stretch that the catalog has.
    ///
    /// # Errors
    /// The same.
    pub fn directory(
        self: &Arc<Self>,
        place: SidecarPlace,
        source: &dyn BlockSource,
    ) -> Result<Directory, Stop> {
        self.sidecar_part(place, source, Directory::parse)
    }

    /// A strip that the directory of a stretch of so many rows has.
    ///
    /// # Errors
    /// The same.
    pub fn strip(
        self: &Arc<Self>,
        place: SidecarPlace,
        rows: usize,
        source: &dyn BlockSource,
    ) -> Result<Strip, Stop> {
        self.sidecar_part(place, source, |payload| Strip::parse(payload.clone(), rows))
    }

    fn sidecar_part<T>(
        self: &Arc<Self>,
        SidecarPlace(target): SidecarPlace,
        source: &dyn BlockSource,
        parse: impl Fn(&bytes::Bytes) -> Result<T, Fault>,
    ) -> Result<T, Stop> {
        let block = self.find(target, BlockKind::Meta, source)?;
        parse(block.payload()).map_err(|fault| fault.at(self.path(), target.offset).into())
    }
}
