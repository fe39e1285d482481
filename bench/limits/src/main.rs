//! Limits of the machine: the bare work of a read or a write, without a database. Measured together
//! with the servers (`bench/compare/compare`), so that each result can be compared with its limit.

mod echo;
mod pipeline;
mod synced;
mod walk;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use fs::SyncLevel;

/// The bare work of reads and writes
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    limit: Limit,
}

#[derive(Subcommand)]
enum Limit {
    /// Responds to requests in HBase's frames with constant bytes; on one thread, until killed
    Echo {
        /// Address to listen on; with port 0 a free port is chosen and printed
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Bytes of the message of a response
        #[arg(long, default_value_t = 180)]
        reply_bytes: usize,
        /// File to create; each group of requests, one per connection, is written to it and synced
        /// before the responses
        #[arg(long)]
        synced: Option<PathBuf>,
    },
    /// Iterates over cells in memory, laid out as in HFile blocks, and prints the nanoseconds per
    /// cell as JSON
    Walk {
        /// Number of cells, one per row
        #[arg(long, default_value_t = 1_000_000)]
        cells: usize,
        /// Bytes of a value
        #[arg(long, default_value_t = 100)]
        value_size: usize,
        /// Number of iterations over all cells
        #[arg(long, default_value_t = 20)]
        times: u32,
    },
    /// Commits entries to a log on HDFS, one after the other, and prints the latencies in
    /// microseconds as JSON
    Pipeline {
        /// Directory on HDFS
        #[arg(long)]
        url: String,
        /// Settings of the HDFS client
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
        settings: Vec<(String, String)>,
        /// Number of measured commits
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        commits: u32,
        /// Bytes of an entry
        #[arg(long, default_value_t = 1_000)]
        entry_bytes: usize,
        /// Let the DataNodes sync their disks (hsync)
        #[arg(long)]
        hsync: bool,
    },
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text}: expected KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

fn main() -> std::io::Result<()> {
    match Arguments::parse().limit {
        Limit::Echo { listen, reply_bytes, synced } => echo::serve(listen, reply_bytes, synced.as_deref()),
        Limit::Walk { cells, value_size, times } => {
            let blocks = walk::Blocks::of(cells, value_size);
            let begin = walk::cpu_now();
            let walked: usize = (0..times).map(|_| blocks.walk()).sum();
            let ns = (walk::cpu_now() - begin).as_nanos() as f64 / walked as f64;
            println!("{{\"cells\": {walked}, \"ns_per_cell\": {ns:.3}}}");
            Ok(())
        }
        Limit::Pipeline { url, settings, commits, entry_bytes, hsync } => {
            let level = if hsync { SyncLevel::Disk } else { SyncLevel::Visible };
            let settings = settings.into_iter().collect();
            pipeline::Commits { url, settings, count: commits as usize, len: entry_bytes, level }.run()
        }
    }
}
