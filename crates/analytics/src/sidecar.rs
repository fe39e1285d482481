//! Builds the vectors of a stretch from the column sidecar of its file, without reading cells.
//!
//! A sidecar contains nothing that the cells do not contain. If it cannot be read, the cells are
//! read instead, and this is logged.

use std::sync::Arc;

use columnar::{Column, ColumnLocation, Packed, Vector, VectorBuilder};
use engine::error::{Error, Result};
use engine::scanner::{CursorBlocks, Stop};
use engine::store::StoreFile;
use hfile::{Catalog, Directory, SidecarLocation, Strip};
use tracing::warn;

use crate::entry::StretchFacts;
use crate::marks::Marks;
use crate::plan::Stretch;

/// Rows of a strip between two pauses for other tasks.
const ROWS_PER_SLICE: usize = 16 << 10;

/// The catalog of a file, if it has a sidecar.
///
/// # Errors
/// Those of the file system.
pub(crate) async fn catalog(file: &StoreFile, blocks: &mut CursorBlocks) -> Result<Option<Catalog>> {
    let found = read(file, blocks, |blocks| file.reader().catalog(blocks.source())).await?;
    Ok(found.flatten().filter(|catalog| !catalog.entries.is_empty()))
}

/// Reads a part of a sidecar; `None` if it is damaged.
async fn read<T>(
    file: &StoreFile,
    blocks: &mut CursorBlocks,
    step: impl Fn(&CursorBlocks) -> std::result::Result<T, Stop>,
) -> Result<Option<T>> {
    let unusable = |error: &dyn std::error::Error| {
        warn!(file = %file.reader().path(), %error, "cannot use column sidecar; reading cells instead");
    };
    loop {
        match step(blocks) {
            Ok(part) => {
                blocks.step_succeeded();
                return Ok(Some(part));
            }
            Err(Stop::Failed(error @ hfile::Error::Fs(_))) => return Err(error.into()),
            Err(Stop::Failed(error)) => {
                unusable(&error);
                return Ok(None);
            }
            Err(stop) => match blocks.handle(stop).await {
                Err(error @ Error::Corrupt { .. }) => {
                    unusable(&error);
                    return Ok(None);
                }
                loaded => loaded?,
            },
        }
    }
}

/// The sidecar of one stretch.
pub(crate) struct Sidecar<'a> {
    stretch: &'a Stretch,
    directory: Directory,
}

/// The result for one column of a stretch.
pub(crate) enum StripResult {
    /// Its values.
    Vector(Arc<Packed>),
    /// One of its values does not fit the type of the column.
    Unreadable,
    /// The sidecar is damaged.
    Damaged,
}

impl<'a> Sidecar<'a> {
    /// The sidecar of a stretch, if it has one that can be read.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) async fn of(stretch: &'a Stretch, blocks: &mut CursorBlocks) -> Result<Option<Sidecar<'a>>> {
        let Some(place) = stretch.directory else { return Ok(None) };
        let file = &stretch.file;
        let directory = read(file, blocks, |blocks| file.reader().directory(place, blocks.source())).await?;
        Ok(directory.map(|directory| Sidecar { stretch, directory }))
    }

    /// Facts about the cells.
    pub(crate) fn facts(&self) -> StretchFacts {
        let Directory { rows, is_plain, seq_id_max, timestamps, .. } = self.directory;
        let assigned = self.stretch.file.reader().assigned_seq_id();
        let timestamps = (timestamps.min, timestamps.max);
        StretchFacts { rows, is_plain, seq_id_max: assigned.unwrap_or(seq_id_max), timestamps }
    }

    /// Places of some of the rows.
    pub(crate) fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        self.directory.marks.iter().for_each(|mark| marks.push(&mark.row, mark.row_index as usize));
        marks
    }

    /// Whether it can provide vectors.
    pub(crate) fn has_strips(&self) -> bool {
        self.directory.has_strips()
    }

    /// The vector of a column.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) async fn vector(&self, column: &Column, blocks: &mut CursorBlocks) -> Result<StripResult> {
        let rows = self.directory.rows;
        let place = match &column.location {
            ColumnLocation::Cell { family, qualifier } if *family == self.directory.family => {
                self.directory.strip(qualifier)
            }
            ColumnLocation::Cell { .. } => None,
            ColumnLocation::RowBytes { .. } | ColumnLocation::RowPart { .. } => self.directory.row_keys,
        };
        let Some(place) = place else {
            return Ok(StripResult::Vector(packed(Vector::nulls(column.kind(), rows))));
        };
        match self.strip(place, blocks).await? {
            Some(strip) => Ok(vector_of(column, &strip)
                .await
                .map_or(StripResult::Unreadable, |vector| StripResult::Vector(packed(vector)))),
            None => Ok(StripResult::Damaged),
        }
    }

    async fn strip(&self, place: SidecarLocation, blocks: &mut CursorBlocks) -> Result<Option<Strip>> {
        let (file, rows) = (&self.stretch.file, self.directory.rows);
        read(file, blocks, |blocks| file.reader().strip(place, rows, blocks.source())).await
    }
}

fn packed(vector: Vector) -> Arc<Packed> {
    Arc::new(Packed::new(vector))
}

/// The vector of a strip's values; `None` if one does not fit the type of the column.
async fn vector_of(column: &Column, strip: &Strip) -> Option<Vector> {
    let mut builder = VectorBuilder::new(column);
    for (row, value) in strip.values().enumerate() {
        let value = match column.location {
            ColumnLocation::Cell { .. } => value,
            ColumnLocation::RowBytes { .. } | ColumnLocation::RowPart { .. } => {
                value.and_then(|key| column.location.find_in_row(key))
            }
        };
        match value {
            Some(value) => builder.push(value).ok()?,
            None => builder.push_null(),
        }
        if row % ROWS_PER_SLICE == ROWS_PER_SLICE - 1 {
            tokio::task::yield_now().await;
        }
    }
    debug_assert!(builder.len() == strip.rows(), "a vector has one value or null per row");
    Some(builder.finish())
}
