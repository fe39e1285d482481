//! Limits of the machine: the bare work of a read or a write, without a database. Measured together
//! with the servers (`bench/compare/compare`), so that each result can be compared with its limit.

mod echo;
mod synced;
mod walk;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

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
    }
}
