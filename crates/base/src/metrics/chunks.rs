//! Long text that is sent while it is being written: the beans of ten thousand regions take tens of
//! megabytes.

use std::sync::mpsc;

/// Approximate bytes of a piece.
const CHUNK_LEN: usize = 64 << 10;
/// Extra capacity for text written between two length checks.
const MARGIN: usize = 4 << 10;

/// Receives a piece of text and returns whether it wants more.
type Consumer = Box<dyn FnMut(Vec<u8>) -> bool + Send>;

/// A text writer that passes its output on in pieces.
pub struct Chunks {
    pub(super) text: Vec<u8>,
    take: Consumer,
    is_wanted: bool,
}

impl Chunks {
    /// A writer whose pieces go to `take`. After `take` returns false, further text is discarded.
    pub fn new(take: impl FnMut(Vec<u8>) -> bool + Send + 'static) -> Chunks {
        Chunks { text: Vec::with_capacity(CHUNK_LEN + MARGIN), take: Box::new(take), is_wanted: true }
    }

    /// Collects all text that `write` writes. For short texts.
    pub fn collected(write: impl FnOnce(Chunks)) -> Vec<u8> {
        let (send, pieces) = mpsc::channel();
        write(Chunks::new(move |piece| send.send(piece).is_ok()));
        pieces.iter().flatten().collect()
    }

    /// Passes the text on if it is a whole piece.
    pub(super) fn emit_full(&mut self) {
        if self.text.len() >= CHUNK_LEN {
            let full = std::mem::replace(&mut self.text, Vec::with_capacity(CHUNK_LEN + MARGIN));
            self.emit(full);
        }
    }

    /// Passes the rest on.
    pub(super) fn finish(mut self) {
        let rest = std::mem::take(&mut self.text);
        self.emit(rest);
    }

    fn emit(&mut self, piece: Vec<u8>) {
        if self.is_wanted && !piece.is_empty() {
            self.is_wanted = (self.take)(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens_of(pieces_wanted: usize) -> Vec<usize> {
        let (send, pieces) = mpsc::channel();
        let mut wanted = pieces_wanted;
        let mut chunks = Chunks::new(move |piece| {
            send.send(piece.len()).unwrap();
            wanted -= 1;
            wanted > 0
        });
        for _ in 0..CHUNK_LEN {
            chunks.text.extend_from_slice(b"abc");
            chunks.emit_full();
        }
        chunks.finish();
        pieces.iter().collect()
    }

    #[test]
    fn text_is_passed_on_in_pieces_while_wanted() {
        let whole = lens_of(usize::MAX);
        assert_eq!((whole.len(), whole.iter().sum::<usize>()), (3, 3 * CHUNK_LEN));
        assert_eq!(lens_of(1).len(), 1);
    }
}
