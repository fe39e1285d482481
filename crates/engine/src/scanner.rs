//! From views to results: merges, deletes, versions, limits.
//!
//! ```text
//! memstores, files -> Source -> Merge (one store) -> Matcher -+-> RegionScanner -> ResultSink
//!                                                             \-> CompactionScanner -> a new file
//! ```
//!
//! All of it is synchronous code over memory. Only cursors of files can miss a block. The call then
//! returns [`Stop::Miss`] with all blocks that are needed to continue, and has no other effect. A
//! miss can only happen between cells, when the merge [settles](merge::Merge::settle); sources that
//! already moved keep their position. The caller loads the blocks,
//! [supplies](RegionScanner::supply) them, and calls again; [`drive`] does that. Therefore no cell
//! is judged or written twice, and a cold read loads the blocks of all its files concurrently.
//!
//! These steps decide which cells are returned, each in its own file:
//! * [`select`]: excludes memstores and files that cannot hold a wanted cell;
//! * [`source`]: skips cells that are newer than the read point;
//! * [`matcher`], with [`deletes`] and [`columns`] or with [`write_order`]: HBase's retention
//!   rules, cell by cell in key order;
//! * [`filtered`]: combines the verdict of a [filter](crate::filter) with the rules; [`judge`]
//!   applies both to a cell;
//! * [`region`]: finds rows, enforces their limits, and cuts them into results.
//!
//! Most Gets need no scanner: [`row_read`] reads their rows, by a [`row_plan`].
//!
//! Not here: the filters themselves ([`crate::filter`]), blocks and their cache (`hfile`, `cache`).

mod blocks;
mod columns;
mod compact;
mod compaction_blocks;
mod cursor_blocks;
mod deletes;
mod filtered;
mod judge;
mod load;
mod matcher;
mod merge;
mod output;
mod parts;
mod prefetcher;
mod region;
mod row_filter;
mod row_locator;
mod row_plan;
mod row_read;
mod rules;
mod select;
mod sink;
mod source;
mod store;
mod write_order;

pub(crate) use blocks::ScannerBlocks;
pub use compact::{CompactionScanner, Retention};
pub use cursor_blocks::CursorBlocks;
pub use hfile::Stop;
pub use load::{BlockLoader, CachedValue, DamagedFile, DerivedKey, drive};
pub(crate) use load::{CachePolicy, ReadAhead, next_file_id};
pub use parts::ScannerParts;
pub(crate) use prefetcher::Prefetcher;
pub use region::{RegionScanner, ReleasedViews};
pub(crate) use row_locator::StoreRowLocator;
pub(crate) use row_plan::RowPlan;
pub(crate) use row_read::RowRead;
pub use rules::FamilyRules;
pub(crate) use select::may_have_rows;
pub use sink::{CellList, Deadline, Limits, Progress, ResultEnd, ResultSink, SinkMemory, Stopped};
pub(crate) use source::{Order, Source};

#[cfg(test)]
mod tests;
