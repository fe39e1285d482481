//! Layer 2: HFile, HBase's immutable sorted file of cells; version 3 written, 3 and 2.3 read.
//!
//! * [`Reader`]: an open file, its [`FileInfo`], Bloom filters, and loading of blocks;
//! * [`Cursor`]: walks through the cells of a file, synchronously, over blocks in memory ([`BlockSource`]); a step that
//!   needs a block that is not there says so ([`Stop::Miss`]) and has changed nothing;
//! * [`Outline`]: its data blocks, by the index alone;
//! * [`Aim`]: a row within one block, sought without a cursor;
//! * [`Run`]: rows of one block, walked through without a look at anything else;
//! * [`Catalog`], [`Directory`], [`Strip`]: the cells once more, column by column, in files that have a column sidecar;
//! * [`Block`]: a block in memory, checked, decompressed, searchable;
//! * [`Writer`]: writes a file front to back, as HBase's writer does, byte for byte.
//!
//! The format is laid out where each part is read: `block` (header, checksums, encodings), `index`, `bloom`, `trailer`,
//! [`info`]. Invariants of the reading side:
//!
//! * Bytes of a file are foreign: lengths are checked before they are believed, memory is bounded by checked lengths,
//!   damage gives [`Error::Corrupt`] with file and offset.
//! * Blocks are checked once, when they are loaded, and trusted from then on.
//!
//! Knows nothing about: regions, stores, references to halves of files, which files there are, caching of blocks.

mod aim;
mod block;
mod bloom;
mod compression;
mod cursor;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod heads;
mod index;
mod index_writer;
pub mod info;
mod input;
mod kept;
mod outline;
mod output;
mod path;
mod reader;
mod run;
mod sidecar;
mod source;
mod trailer;
mod writer;

pub use aim::Aim;
pub use block::checksum::ChecksumType;
pub use block::kind::BlockKind;
pub use block::{Block, LARGE_VALUE_LEN};
pub use bloom::chunk::BloomOptions;
pub use cursor::Cursor;
pub use error::{Error, Result};
pub use info::{FileInfo, TimeRange};
pub use kept::KeepWritten;
pub use outline::Outline;
pub use reader::{FiltersAsked, OpenOptions, Reader};
pub use run::{Place, Row, Run};
pub use sidecar::{Catalog, CatalogEntry, Directory, Mark, SidecarPlace, Strip};
pub use source::{BlockRef, BlockSource, Miss, Pinned, Stop};
pub use trailer::Trailer;
pub use writer::{StoreInfo, Writer, WriterOptions, Written};
