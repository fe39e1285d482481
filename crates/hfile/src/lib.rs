//! HFile, HBase's immutable sorted file of cells. Writes version 3; reads versions 3 and 2.3.
//!
//! * [`Reader`]: an open file with its [`FileInfo`] and Bloom filters; loads blocks;
//! * [`Cursor`]: iterates over the cells of a file, synchronously, using blocks in memory
//!   ([`BlockSource`]). A step that needs a missing block returns [`Stop::Miss`] and changes
//!   nothing;
//! * [`Walk`]: iterates over the cells of a file for tools, and loads the blocks;
//! * [`Outline`]: iterates over the data blocks of a file using only its index;
//! * [`RowLocator`]: finds a row within one block without a cursor;
//! * [`RowSlice`]: whole rows within one block, read cell by cell without a cursor;
//! * [`Catalog`], [`Directory`], [`Strip`]: the column sidecar, a second copy of a file's cells,
//!   column by column. Not every file has one. The catalog divides the file into ranges of rows, a
//!   directory lists the columns of a range, and a strip has the values of one column;
//! * [`Block`]: a block in memory: checked, decompressed, searchable;
//! * [`BlockHeader`], [`BloomDescription`], [`IndexEntry`]: facts about a file for tools;
//! * [`Writer`]: writes a file front to back, byte for byte as HBase's writer does.
//!
//! Each part of the format is documented in the module that reads it: `block` (header, checksums,
//! encodings), `index`, `bloom`, `trailer`, [`info`]. Invariants of the reading side:
//!
//! * File contents are untrusted. Lengths are checked before use, allocations are bounded by
//!   checked lengths, and damage is reported as [`Error::Corrupt`] with file and offset.
//! * Blocks are checked once, when they are loaded, and trusted afterwards.
//!
//! Not here: regions, stores, references to halves of files, the set of files, and the caching of
//! blocks.

mod block;
mod bloom;
mod compression;
mod cursor;
mod description;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod heads;
mod index;
mod index_path;
mod index_writer;
pub mod info;
mod input;
mod outline;
mod output;
mod reader;
mod retained;
mod row_locator;
mod row_slice;
mod sidecar;
mod source;
mod trailer;
mod walk;
mod writer;

pub use block::checksum::ChecksumType;
pub use block::kind::BlockKind;
pub use block::{Block, LARGE_VALUE_LEN};
pub use bloom::chunk::BloomOptions;
pub use cursor::Cursor;
pub use description::{BlockHeader, BloomDescription, IndexEntry};
pub use error::{Error, Result};
pub use info::{FileInfo, TimeRange};
pub use outline::Outline;
pub use reader::{FilterCounts, LoadedBlock, OpenOptions, Reader};
pub use retained::RetainKinds;
pub use row_locator::RowLocator;
pub use row_slice::{LocatedRow, RowSlice, SlicePosition};
pub use sidecar::{Catalog, CatalogEntry, Directory, RowMark, SidecarLocation, Strip};
pub use source::{BlockRef, BlockSource, Miss, Pinned, Stop};
pub use trailer::Trailer;
pub use walk::Walk;
pub use writer::{StoreInfo, Writer, WriterOptions, WrittenFile};
