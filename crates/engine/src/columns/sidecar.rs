//! Vectors of a stretch from the column sidecar of its file: no cell is looked at.
//!
//! A sidecar says nothing that the cells do not say. Where it cannot be read they are, and the log says so.

use std::sync::Arc;

use columnar::{Column, Packed, Place, Vector, VectorBuilder};
use hfile::{Catalog, Directory, SidecarPlace, Strip};
use tracing::warn;

use crate::columns::kept::Facts;
use crate::columns::marks::Marks;
use crate::columns::plan::Stretch;
use crate::columns::reading::Reading;
use crate::error::{Error, Result};
use crate::scanner::Stop;
use crate::store::StoreFile;

/// Rows of a strip after which others may run.
const ROWS_A_SLICE: usize = 16 << 10;

/// The catalog of a file, if it has a sidecar.
///
/// # Errors
/// The file system's.
pub(super) async fn catalog(file: &StoreFile, reading: &mut Reading) -> Result<Option<Catalog>> {
    let found = read(file, reading, |reading| file.reader().catalog(reading.blocks())).await?;
    Ok(found.flatten().filter(|catalog| !catalog.entries.is_empty()))
}

/// Reads a part of a sidecar; `None` where it is damaged.
async fn read<T>(
    file: &StoreFile,
    reading: &mut Reading,
    step: impl Fn(&Reading) -> std::result::Result<T, Stop>,
) -> Result<Option<T>> {
    let unusable = |error: &dyn std::error::Error| {
        warn!(file = %file.reader().path(), %error, "a column sidecar cannot be used; its cells are read instead");
    };
    loop {
        match step(reading) {
            Ok(part) => {
                reading.step_succeeded();
                return Ok(Some(part));
            }
            Err(Stop::Failed(error @ hfile::Error::Fs(_))) => return Err(error.into()),
            Err(Stop::Failed(error)) => {
                unusable(&error);
                return Ok(None);
            }
            Err(Stop::Miss(miss)) => match reading.load(&miss).await {
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
pub(super) struct Sidecar<'a> {
    stretch: &'a Stretch,
    directory: Directory,
}

/// What a column has in a stretch.
pub(super) enum Found {
    /// Its values.
    Vector(Arc<Packed>),
    /// One that is not as the column says.
    Unreadable,
    /// Nothing that can be used.
    Damaged,
}

impl<'a> Sidecar<'a> {
    /// That of a stretch, if it has one that tells of all its cells.
    ///
    /// # Errors
    /// The file system's.
    pub(super) async fn of(stretch: &'a Stretch, reading: &mut Reading) -> Result<Option<Sidecar<'a>>> {
        let Some(place) = stretch.directory else { return Ok(None) };
        let file = &stretch.file;
        let directory =
            read(file, reading, |reading| file.reader().directory(place, reading.blocks())).await?;
        Ok(directory.map(|directory| Sidecar { stretch, directory }))
    }

    /// What is known of the cells.
    pub(super) fn facts(&self) -> Facts {
        let Directory { rows, is_plain, seq_id_max, timestamps, .. } = self.directory;
        let assigned = self.stretch.file.reader().assigned_seq_id();
        let timestamps = (timestamps.min, timestamps.max);
        Facts { rows, is_plain, seq_id_max: assigned.unwrap_or(seq_id_max), timestamps }
    }

    /// Where some of the rows are.
    pub(super) fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        self.directory.marks.iter().for_each(|mark| marks.push(&mark.row, mark.place as usize));
        marks
    }

    /// Whether vectors can be had from it.
    pub(super) fn has_strips(&self) -> bool {
        self.directory.has_strips()
    }

    /// The vector of a column.
    ///
    /// # Errors
    /// The file system's.
    pub(super) async fn vector(&self, column: &Column, reading: &mut Reading) -> Result<Found> {
        let rows = self.directory.rows;
        let place = match &column.place {
            Place::Cell { family, qualifier } if *family == self.directory.family => {
                self.directory.strip(qualifier)
            }
            Place::Cell { .. } => None,
            Place::RowBytes { .. } | Place::RowPart { .. } => self.directory.row_keys,
        };
        let Some(place) = place else {
            return Ok(Found::Vector(packed(Vector::nulls(column.kind(), rows))));
        };
        match self.strip(place, reading).await? {
            Some(strip) => Ok(built(column, &strip)
                .await
                .map_or(Found::Unreadable, |vector| Found::Vector(packed(vector)))),
            None => Ok(Found::Damaged),
        }
    }

    async fn strip(&self, place: SidecarPlace, reading: &mut Reading) -> Result<Option<Strip>> {
        let (file, rows) = (&self.stretch.file, self.directory.rows);
        read(file, reading, |reading| file.reader().strip(place, rows, reading.blocks())).await
    }
}

fn packed(vector: Vector) -> Arc<Packed> {
    Arc::new(Packed::new(vector))
}

/// The vector of a strip's values; `None` if one is not as the column says.
async fn built(column: &Column, strip: &Strip) -> Option<Vector> {
    let mut builder = VectorBuilder::new(column);
    for (row, value) in strip.values().enumerate() {
        let value = match column.place {
            Place::Cell { .. } => value,
            Place::RowBytes { .. } | Place::RowPart { .. } => value.and_then(|key| column.place.of_row(key)),
        };
        match value {
            Some(value) => builder.push(value).ok()?,
            None => builder.push_null(),
        }
        if row % ROWS_A_SLICE == ROWS_A_SLICE - 1 {
            tokio::task::yield_now().await;
        }
    }
    Some(builder.finish())
}
