//! The cells of an answer: a chain of pieces that is written to the socket as it is.
//!
//! Small cells are copied to the end of the chain; a large piece of a block is linked in by reference, and lives until
//! the socket has taken it. What was added last can be taken back: a row that a filter drops, an action that fails.

use bytes::{Bytes, BytesMut};

use crate::pieces::{self, PIECE_LEN};

/// How many times as long as it is a piece becomes longer at least, up to that.
const GROWTH: usize = 3;

/// A chain of pieces: those that are sealed, then a tail that still grows.
#[derive(Debug, Default, Clone)]
pub struct CellBlock {
    sealed: Vec<Bytes>,
    sealed_len: usize,
    tail: BytesMut,
}

impl CellBlock {
    /// An empty chain, without any memory of its own.
    pub fn new() -> CellBlock {
        CellBlock::default()
    }

    /// An empty chain with room for `len` bytes, or as many as a piece has if that is less.
    pub fn with_room(len: usize) -> CellBlock {
        CellBlock { tail: BytesMut::with_capacity(len.min(PIECE_LEN)), ..CellBlock::default() }
    }

    /// Bytes in the chain.
    #[inline]
    pub fn len(&self) -> usize {
        self.sealed_len + self.tail.len()
    }

    /// Whether there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The growing end, to append copied bytes to. Only append: what is in it already may be another writer's.
    #[inline]
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// The same with room for `len` bytes. What is long is kept in pieces, so that none of it is copied when it grows.
    #[inline]
    pub fn tail_for(&mut self, len: usize) -> &mut BytesMut {
        if self.tail.capacity() - self.tail.len() < len {
            self.make_room(len);
        }
        &mut self.tail
    }

    #[cold]
    fn make_room(&mut self, len: usize) {
        if self.tail.len() + len <= PIECE_LEN {
            // An answer of one cell has room for that; one that grows, for as many again and more.
            return self.tail.reserve(len.max(GROWTH * self.tail.len()).min(PIECE_LEN - self.tail.len()));
        }
        self.seal();
        // Not what is left of the memory of the piece before, if anything is.
        self.tail = if len <= PIECE_LEN { pieces::take() } else { BytesMut::with_capacity(len) };
    }

    /// Links `piece` in by reference. For pieces of about 2 KiB and more: below, copying into [`tail`](Self::tail) is
    /// cheaper than one more piece in the socket write.
    pub fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.seal();
        self.sealed_len += piece.len();
        self.sealed.push(piece);
    }

    /// Takes back all that lies behind the first `len` bytes (a length that [`len`](Self::len) gave before).
    pub fn truncate(&mut self, len: usize) {
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
        self.sealed
    }

    /// All bytes in one piece, copied if there are several.
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

    /// The tail, if the chain is nothing else.
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
    fn what_grows_long_is_kept_in_pieces() {
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
    fn truncating_takes_back_to_any_length() {
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
