//! From views to results: merging, deletes, versions, limits.
//!
//! ```text
//! memstores, files --> Source --> Merge (one store) --> Matcher --> RegionScanner (rows, limits) --> ResultSink
//!                                                             \---> CompactionScanner --> a file's writer
//! ```
//!
//! All of it is plain synchronous code over memory. Only cursors of files can miss a block. A call then returns
//! [`Stop::Miss`] with every block that is needed to go on, and nothing else has happened: a miss can only come between
//! cells, when the merge [settles](merge::Merge::settle), and what already moved stays moved. The caller loads the
//! blocks, [supplies](RegionScanner::supply) them and calls again; [`drive`] does that. So no cell is judged or written
//! twice, and a cold read loads the blocks of all its files at once.
//!
//! Which cells are seen is decided by four parties, each in its own file:
//! * [`select`]: memstores and files that cannot hold anything wanted are left out;
//! * [`source`]: cells newer than the read point are passed over;
//! * [`matcher`], with [`deletes`] and [`columns`] or with [`write_order`]: HBase's retention rules, cell by cell in key
//!   order;
//! * [`filtered`]: what a [filter](crate::filter) says, together with the rules; [`judge`] puts both together;
//! * [`region`]: rows, their limits and how they are cut into results.
//!
//! Most Gets need none of what a scanner is made for; [`row`] reads them, by a [`row_plan`].
//!
//! Not here: filters themselves ([`crate::filter`]), blocks and their cache (`hfile`, `cache`).

mod ahead;
mod blocks;
mod columns;
mod compact;
mod deletes;
mod filtered;
mod judge;
mod load;
mod matcher;
mod merge;
mod output;
mod region;
mod row;
mod row_filter;
mod row_plan;
mod rules;
mod select;
mod sink;
mod source;
mod store;
mod watched;
mod write_order;

pub(crate) use ahead::Ahead;
pub(crate) use blocks::Blocks;
pub use compact::{CompactionScanner, Retention};
pub use hfile::Stop;
pub use load::{BlockLoader, DamagedFile, drive};
pub(crate) use load::{Keep, Runs, next_file_id};
pub use region::{LetGo, RegionScanner};
pub(crate) use row::{Aim, Read, RowRead};
pub(crate) use row_plan::RowPlan;
pub use rules::FamilyRules;
pub(crate) use select::may_have_rows;
pub use sink::{CellList, Deadline, Limits, Progress, ResultEnd, ResultSink, Room, Stopped};
pub(crate) use source::{Order, Source};

#[cfg(test)]
mod tests;
