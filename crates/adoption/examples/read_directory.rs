//! Reads the flushed rows of a table in a root directory, while a server may be using it.
//!
//! ```console
//! $ cargo run -p adoption --example read_directory -- grampus-data sales
//! 200000 rows in 2 regions
//! $ cargo run -p adoption --example read_directory -- grampus-data sales --print
//! ```
//!
//! It opens the directory without a lock, writes nothing, and sees what each region has flushed.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use adoption::file_lists::DetectedTracker;
use adoption::stored;
use base::pool::Pool;
use cell::query::Scan;
use cell::schema::TableName;
use engine::scanner::{BlockLoader, CellList, Limits, Stopped, drive};
use engine::stored::{StoredRegion, StoredRegions};
use fs::FilePath;
use fs::local::LocalFs;
use layout::RootDir;

/// Bytes of blocks that are cached.
const CACHE_BYTES: u64 = 64 << 20;
/// Threads that read files.
const READERS: usize = 4;
/// Rows that are read at a time.
const ROWS_AT_A_TIME: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, table, options @ ..] = &arguments[..] else {
        return Err("usage: read_directory DIR TABLE [--print]".into());
    };
    let prints = options.iter().any(|option| option == "--print");
    let runtimes = os::Runtimes::start(1, 1)?;
    let regions = StoredRegions {
        env: os::env(Arc::new(runtimes)),
        fs: Arc::new(LocalFs::new(Path::new(dir), Arc::new(Pool::new("read", READERS)))?),
        root: RootDir::new(FilePath::root()),
        tracker: Arc::new(DetectedTracker),
        loader: Arc::new(BlockLoader::new(CACHE_BYTES)),
        mob: Arc::default(),
    };
    os::block_on(async {
        let table = stored::open(&regions, &TableName::parse(table)?).await?;
        let mut rows = 0;
        for region in &table.regions {
            rows += read(region, prints).await?;
        }
        println!("{rows} rows in {} regions", table.regions.len());
        Ok(())
    })
}

/// Reads all rows of a region; returns their number.
async fn read(region: &StoredRegion, prints: bool) -> Result<u64, Box<dyn Error>> {
    let mut scanner = region.scanner(&Scan::default())?;
    let mut rows = 0;
    loop {
        let mut list = CellList::default();
        let mut limits = Limits { rows: ROWS_AT_A_TIME, ..Limits::default() };
        let step = drive(&mut scanner, &mut limits, &mut list).await?;
        rows += list.results.len() as u64;
        for (cell, _) in list.cells.iter().filter(|_| prints) {
            let cell = cell.view(0);
            println!(
                "{} {}:{} {} {}",
                cell.row().escape_ascii(),
                cell.family().escape_ascii(),
                cell.qualifier().escape_ascii(),
                cell.timestamp(),
                cell.value.escape_ascii()
            );
        }
        if step.stopped == Stopped::Exhausted {
            return Ok(rows);
        }
    }
}
