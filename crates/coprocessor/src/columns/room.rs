//! Memory for the groups of a call: what they take, and what making an answer of them takes, out of that for all answers.

use std::sync::{Arc, Mutex, PoisonError};

use base::budget::{Budget, Share};
use wire::exception::{JavaException, class};

/// What an answer takes, at most, as a multiple of the groups of all tasks: themselves, what they are put together in, and the
/// message.
const ANSWER_FACTOR: usize = 3;
/// The most that the groups of one call may take, as a multiple of the number at which it answers: the unit at work is ended, if
/// its groups are not that many.
const BEYOND_FACTOR: usize = 4;

/// The memory of one call's groups.
pub(super) struct Room {
    bytes_max: usize,
    taken: Mutex<Taken>,
}

struct Taken {
    // Of groups.
    bytes: usize,
    share: Share,
}

/// Whether there is room for more groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fits {
    /// The call may go on.
    Yes,
    /// It should answer, but may end what it began.
    Full,
}

impl Room {
    /// Of a call that answers when its groups take so many bytes.
    pub(super) fn new(answers: &Arc<Budget>, bytes_max: usize) -> Room {
        Room { bytes_max, taken: Mutex::new(Taken { bytes: 0, share: Share::of(answers) }) }
    }

    /// The groups of a task take so many bytes, after they took `before`.
    ///
    /// # Errors
    /// Where there is no room for them: of one call, or of all.
    pub(super) fn grow(&self, before: usize, now: usize) -> Result<Fits, JavaException> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.bytes = (taken.bytes + now).saturating_sub(before);
        let (groups, held) = (taken.bytes, taken.share.used());
        let more = (groups * ANSWER_FACTOR).saturating_sub(held);
        if groups > self.bytes_max.saturating_mul(BEYOND_FACTOR) {
            return Err(JavaException::do_not_retry(format!(
                "the groups of few rows take more than {} bytes: ask for fewer aggregates, or fewer groups",
                self.bytes_max.saturating_mul(BEYOND_FACTOR)
            )));
        }
        if more == 0 || taken.share.take_large(more) {
            return Ok(if groups > self.bytes_max { Fits::Full } else { Fits::Yes });
        }
        // Some is left for who must end what he began.
        if taken.share.take(more) {
            return Ok(Fits::Full);
        }
        Err(JavaException::new(
            class::REGION_TOO_BUSY,
            "there is no memory for the groups of an answer (grampus.memory)",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_what_all_have_together() {
        let answers = Budget::new(1 << 20);
        let (one, other) = (Room::new(&answers, 100_000), Room::new(&answers, 1 << 20));
        assert_eq!(one.grow(0, 100_000).unwrap(), Fits::Yes);
        assert!(answers.used() >= 300_000, "an answer takes more than its groups");
        assert_eq!(one.grow(100_000, 100_001).unwrap(), Fits::Full);
        assert_eq!(other.grow(0, 130_000).unwrap(), Fits::Yes);
        assert_eq!(other.grow(0, 50_000).unwrap(), Fits::Full, "a quarter is for those that end");
        let refused = other.grow(0, 100_000).unwrap_err();
        assert!(refused.is(class::REGION_TOO_BUSY), "{refused:?}");
        drop(other);
        let refused = one.grow(0, 400_000).unwrap_err();
        assert!(refused.is(class::DO_NOT_RETRY_IO), "{refused:?}");
        drop(one);
        assert_eq!(answers.used(), 0);
    }
}
