//! Recycles the memory of response pieces after they have been written to the socket.
//!
//! The responses of a scan are gigabytes in pieces that live for a millisecond. Without recycling,
//! the allocator would return each piece to the kernel, which would clear and map it again: a tenth
//! of the cost of such a scan.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Size in bytes of a piece that collects copied cells.
pub(crate) const PIECE_LEN: usize = 64 << 10;
/// Maximum number of pieces that a thread retains: the pieces of a response of HBase's usual 2 MiB.
const POOL_LEN_MAX: usize = 32;

thread_local! {
    // A response is built and sent by the thread of its connection.
    static POOL: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// An empty piece with capacity for [`PIECE_LEN`] bytes.
pub(crate) fn take() -> BytesMut {
    let piece = POOL.with_borrow_mut(Vec::pop).unwrap_or_else(|| BytesMut::with_capacity(PIECE_LEN));
    debug_assert!(piece.is_empty() && piece.capacity() >= PIECE_LEN, "a recycled piece is like a new one");
    piece
}

/// Recycles a piece that is no longer read, if it has a piece's capacity and no other owner.
pub(crate) fn recycle(piece: Bytes) {
    if piece.len() > PIECE_LEN || POOL.with_borrow(Vec::len) == POOL_LEN_MAX {
        return;
    }
    let Ok(mut piece) = piece.try_into_mut() else { return };
    piece.clear();
    // Its beginning may have been cut off after a partial write.
    let has_capacity = piece.capacity() >= PIECE_LEN || piece.try_reclaim(PIECE_LEN);
    if has_capacity && piece.capacity() <= PIECE_LEN {
        POOL.with_borrow_mut(|pool| pool.push(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool_len() -> usize {
        POOL.with_borrow(Vec::len)
    }

    #[test]
    fn only_whole_unshared_pieces_are_pooled() {
        let mut piece = take();
        piece.extend_from_slice(&[1; 3000]);
        let mut sent = piece.freeze();
        let reader = sent.clone();
        recycle(sent.clone());
        assert_eq!(pool_len(), 0, "the piece has another reader");
        drop(reader);
        bytes::Buf::advance(&mut sent, 1000);
        let at = sent.as_ptr() as usize - 1000;
        recycle(sent);
        assert_eq!(pool_len(), 1);
        for other in
            [Bytes::from(vec![0; 100]), Bytes::from(vec![0; 2 * PIECE_LEN]), Bytes::from_static(b"x")]
        {
            recycle(other);
        }
        assert_eq!(pool_len(), 1);
        let again = take();
        assert_eq!((again.as_ptr() as usize, again.len(), again.capacity()), (at, 0, PIECE_LEN));
    }

    #[test]
    fn a_thread_pools_a_limited_number() {
        let pieces: Vec<_> = (0..2 * POOL_LEN_MAX).map(|_| take()).collect();
        pieces.into_iter().for_each(|piece| recycle(piece.freeze()));
        assert_eq!(pool_len(), POOL_LEN_MAX);
    }
}
