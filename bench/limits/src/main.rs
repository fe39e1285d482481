//! What the machine allows: the bare work that is left of a read or a write when all that makes a database is taken away. Measured
//! beside the servers (`bench/compare/compare`), so that each figure has its distance to the limit.

mod echo;
mod synced;
mod walk;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The bare work under reads and writes
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    limit: Limit,
}

#[derive(Subcommand)]
enum Limit {
    /// Answers requests in HBase's frames with bytes made once; on one thread, until it is killed
    Echo {
        /// Where to listen; port 0 for any that is free, which is printed
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Bytes of the message of an answer
        #[arg(long, default_value_t = 180)]
        reply_bytes: usize,
        /// A file to make, to which each group of requests, one of each connection, is written and synced before the answers
        #[arg(long)]
        synced: Option<PathBuf>,
    },
    /// Walks over cells in memory as blocks of an HFile have them, and prints the nanoseconds of one as JSON
    Walk {
        /// Cells, one a row
        #[arg(long, default_value_t = 1_000_000)]
        cells: usize,
        /// Bytes of a value
        #[arg(long, default_value_t = 100)]
        value_size: usize,
        /// Times that all are walked over
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
