//! The cells of a response: a chain of pieces that is written to the socket without merging them.
//!
//! Small cells are copied to the end of the chain. A large piece of a block is linked by reference,
//! and lives until it has been written to the socket. The newest bytes can be removed again: a row
//! that a filter drops, an action that fails.

use bytes::{Bytes, BytesMut};

use crate::pieces::{self, PIECE_LEN};

/// Minimum growth factor of a piece, up to [`PIECE_LEN`].
const GROWTH: usize = 3;

/// A chain of pieces: sealed pieces, followed by a growing tail.
#[derive(Debug, Default, Clone)]
pub struct CellBlock {
    sealed: Vec<Bytes>,
    sealed_len: usize,
    tail: BytesMut,
}

impl CellBlock {
    /// An empty chain that has not allocated memory.
    pub fn new() -> CellBlock {
        CellBlock::default()
    }

    /// An empty chain with capacity for `len` bytes, but at most for one piece.
    pub fn with_capacity(len: usize) -> CellBlock {
        CellBlock { tail: BytesMut::with_capacity(len.min(PIECE_LEN)), ..CellBlock::default() }
    }

    /// Number of bytes in the chain.
    #[inline]
    pub fn len(&self) -> usize {
        self.sealed_len + self.tail.len()
    }

    /// Whether the chain has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The growing tail, for appending copied bytes. Callers must only append: its contents may
    /// belong to another writer.
    #[inline]
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// The tail with capacity for `len` more bytes. Long contents are split into pieces, so that
    /// growing never copies them.
    #[inline]
    pub fn tail_for(&mut self, len: usize) -> &mut BytesMut {
        if self.tail.capacity() - self.tail.len() < len {
            self.reserve(len);
        }
        &mut self.tail
    }

    #[cold]
    fn reserve(&mut self, len: usize) {
        if self.tail.len() + len <= PIECE_LEN {
            // A response with one cell gets exactly the capacity for it; a growing one gets several
            // times its length.
            return self.tail.reserve(len.max(GROWTH * self.tail.len()).min(PIECE_LEN - self.tail.len()));
        }
        self.seal();
        // Always a new piece, never the rest of the previous piece's memory.
        self.tail = if len <= PIECE_LEN { pieces::take() } else { BytesMut::with_capacity(len) };
    }

    /// Links `piece` by reference. For pieces of about 2 KiB or more: below that, copying into
    /// [`tail`](Self::tail) is cheaper than another piece in the socket write.
    pub fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.seal();
        self.sealed_len += piece.len();
        self.sealed.push(piece);
    }

    /// Removes everything after the first `len` bytes (a length that [`len`](Self::len) returned
    /// before).
    pub fn truncate(&mut self, len: usize) {
        debug_assert!(len <= self.len(), "a chain is truncated to an earlier length");
        if len >= self.sealed_len {
            self.tail.truncate(len - self.sealed_len);
            return;
        }
        self.tail.clear();
        while let Some(last) = self.sealed.last_mut() {
            let start = self.sealed_len - last.len();
            if len > start {
                last.truncate(len - start);
                self.sealed_len = len;
                return;
            }
            self.sealed_len = start;
            self.sealed.pop();
        }
    }

    /// The pieces in order.
    pub fn into_pieces(mut self) -> Vec<Bytes> {
        self.seal();
        debug_assert_eq!(
            self.sealed_len,
            self.sealed.iter().map(Bytes::len).sum::<usize>(),
            "the length of a chain is that of its pieces"
        );
        self.sealed
    }

    /// All bytes as one piece, copied if there are several.
    pub fn into_bytes(mut self) -> Bytes {
        if self.sealed.is_empty() {
            return self.tail.freeze();
        }
        self.seal();
        if self.sealed.len() == 1 {
            return self.sealed.remove(0);
        }
        Bytes::from(self.sealed.concat())
    }

    /// The tail, if the chain has no sealed pieces.
    pub(crate) fn as_single(&self) -> Option<&[u8]> {
        self.sealed.is_empty().then_some(&self.tail[..])
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.sealed_len += self.tail.len();
            self.sealed.push(self.tail.split().freeze());
        }
    }
}

impl From<Bytes> for CellBlock {
    fn from(bytes: Bytes) -> CellBlock {
        let mut block = CellBlock::new();
        block.push(bytes);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pieces: &[(&str, bool)]) -> CellBlock {
        let mut block = CellBlock::new();
        for (text, by_reference) in pieces {
            match by_reference {
                true => block.push(Bytes::copy_from_slice(text.as_bytes())),
                false => block.tail().extend_from_slice(text.as_bytes()),
            }
        }
        block
    }

    #[test]
    fn pieces_keep_their_order() {
        let block =
            block(&[("ab", false), ("cd", true), ("", true), ("e", false), ("f", false), ("gh", true)]);
        assert_eq!(block.len(), 8);
        assert_eq!(block.clone().into_pieces(), ["ab", "cd", "ef", "gh"]);
        assert_eq!(block.into_bytes(), "abcdefgh");
        assert!(CellBlock::new().into_pieces().is_empty());
    }

    #[test]
    fn long_blocks_are_stored_in_pieces() {
        let mut block = CellBlock::new();
        let mut whole = Vec::new();
        for number in 0..5_000_usize {
            let bytes = vec![number as u8; number % 97];
            block.tail_for(bytes.len()).extend_from_slice(&bytes);
            whole.extend(bytes);
        }
        let large = vec![7; 3 * PIECE_LEN];
        block.tail_for(large.len()).extend_from_slice(&large);
        whole.extend(large);
        assert_eq!(block.len(), whole.len());
        block.truncate(whole.len() - 5);
        block.tail_for(1).extend_from_slice(b"!");
        whole.truncate(whole.len() - 5);
        whole.push(b'!');
        let pieces = block.clone().into_pieces();
        assert!(pieces.len() >= 4 && pieces[..3].iter().all(|piece| piece.len() <= PIECE_LEN));
        assert_eq!(block.into_bytes(), whole);
    }

    #[test]
    fn truncating_restores_any_length() {
        let whole = [("ab", false), ("cd", true), ("ef", false), ("gh", true), ("ij", false)];
        for len in 0..=10 {
            let mut block = block(&whole);
            block.truncate(len);
            assert_eq!(block.len(), len);
            block.tail().extend_from_slice(b"!");
            assert_eq!(block.into_bytes(), format!("{}!", &"abcdefghij"[..len]));
        }
    }
}
