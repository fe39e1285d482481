//! An iteration over cells in memory that only reads lengths and types.

use std::hint::black_box;
use std::time::Duration;

/// Bytes of a block, HBase's default.
const BLOCK_LEN: usize = 64 << 10;
/// The type byte of a put.
const PUT: u8 = 4;

/// Cells in row order, packed like the data blocks of an HFile.
pub struct Blocks(Vec<Vec<u8>>);

impl Blocks {
    /// `cells` cells with values of `value_len` bytes.
    pub fn of(cells: usize, value_len: usize) -> Blocks {
        let mut blocks = vec![Vec::with_capacity(BLOCK_LEN + value_len + 100)];
        for row in 0..cells {
            if blocks.last().is_some_and(|block| block.len() >= BLOCK_LEN) {
                blocks.push(Vec::with_capacity(BLOCK_LEN + value_len + 100));
            }
            if let Some(block) = blocks.last_mut() {
                put_cell(block, row, value_len);
            }
        }
        Blocks(blocks)
    }

    /// Iterates over all cells and returns the number of puts.
    pub fn walk(&self) -> usize {
        self.0.iter().map(|block| walk_block(black_box(block))).sum()
    }
}

fn put_cell(block: &mut Vec<u8>, row: usize, value_len: usize) {
    let row = format!("{row:026}");
    let key_len = 2 + row.len() + 1 + 5 + 1 + 8 + 1;
    block.extend((key_len as u32).to_be_bytes());
    block.extend((value_len as u32).to_be_bytes());
    block.extend((row.len() as u16).to_be_bytes());
    block.extend(row.as_bytes());
    block.push(5);
    block.extend(b"info00");
    block.extend(1_700_000_000_000_u64.to_be_bytes());
    block.push(PUT);
    block.extend(std::iter::repeat_n(b'v', value_len));
    // The sequence id, as a one-byte number.
    block.push(0);
}

fn walk_block(block: &[u8]) -> usize {
    let (mut at, mut puts) = (0, 0);
    while at < block.len() {
        let length_at = |from: usize| u32::from_be_bytes(block[from..from + 4].try_into().unwrap_or([0; 4]));
        let key_len = length_at(at) as usize;
        let value_len = length_at(at + 4) as usize;
        puts += usize::from(block[at + 8 + key_len - 1] == PUT);
        at += 8 + key_len + value_len + 1;
    }
    puts
}

/// CPU time of this process so far.
pub fn cpu_now() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_default();
    Duration::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_meets_all_cells() {
        assert_eq!(Blocks::of(10_000, 100).walk(), 10_000);
    }
}
