//! Whether a session still exists, by this process's clock.
//!
//! ZooKeeper counts the timeout of a session from when it received the last request. That is after
//! the request was sent. So the session exists at least for the timeout, counted from when the last
//! acknowledged heartbeat was sent. Times are those of a monotonic clock.

use std::time::Duration;

use crate::coordinator::SessionState;

/// Heartbeats per session timeout. The session counts as lost earlier than necessary by at most the
/// time between two of them.
pub const HEARTBEATS: u32 = 10;

/// How long a session lasts. Simulations use it, too.
pub struct Liveness {
    timeout: Duration,
    /// When the last acknowledged heartbeat was sent.
    confirmed: Duration,
    /// The final state, once the session has ended.
    end: Option<SessionState>,
}

impl Liveness {
    /// A session with this timeout, whose first heartbeat was sent at `confirmed`.
    pub fn new(timeout: Duration, confirmed: Duration) -> Liveness {
        Liveness { timeout, confirmed, end: None }
    }

    /// The timeout.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Records the grant, at `now`, of another timeout, which was requested at `sent`. A longer one
    /// is ignored.
    pub fn shorten(&mut self, timeout: Duration, sent: Duration, now: Duration) {
        if timeout < self.timeout {
            self.confirm(sent, now);
            self.timeout = timeout;
        }
    }

    /// Records the response, at `now`, to the heartbeat that was sent at `sent`. If the response is
    /// too late, it is ignored.
    pub fn confirm(&mut self, sent: Duration, now: Duration) {
        if !self.state(true, now).has_ended() {
            self.confirmed = self.confirmed.max(sent);
        }
    }

    /// Records that the session has expired: it must not be used any more.
    pub fn end(&mut self) {
        self.end.get_or_insert(SessionState::Expired);
    }

    /// Records that its owner closes the session, if it has not expired before.
    pub fn close(&mut self) {
        self.end.get_or_insert(SessionState::Closed);
    }

    /// The state; `connected` is whether the library has a connection.
    ///
    /// The library does not report every lost connection. So a connection without responses for two
    /// thirds of the timeout counts as lost, too.
    pub fn state(&mut self, connected: bool, now: Duration) -> SessionState {
        let silent = now.saturating_sub(self.confirmed);
        if silent >= self.timeout {
            self.end();
        }
        match self.end {
            Some(end) => end,
            None if connected && silent < self.timeout * 2 / 3 => SessionState::Connected,
            None => SessionState::Suspended,
        }
    }

    /// The time until the clock alone can change the state.
    pub fn until_change(&self, now: Duration) -> Duration {
        let suspended = self.confirmed + self.timeout * 2 / 3;
        let expired = self.confirmed + self.timeout;
        if now < suspended { suspended - now } else { expired.saturating_sub(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_session_lasts_for_the_timeout_since_the_last_acknowledged_heartbeat_was_sent() {
        let mut session = Liveness::new(s(30), s(100));
        assert_eq!(session.state(true, s(119)), SessionState::Connected);
        assert_eq!(session.state(true, s(120)), SessionState::Suspended);
        session.confirm(s(110), s(121));
        assert_eq!(session.state(true, s(129)), SessionState::Connected);
        assert_eq!(session.state(true, s(139)), SessionState::Suspended);
        assert_eq!(session.state(true, s(140)), SessionState::Expired);
    }

    #[test]
    fn a_late_response_does_not_revive_a_session() {
        let mut session = Liveness::new(s(30), s(100));
        session.confirm(s(129), s(130));
        assert_eq!(session.state(true, s(129)), SessionState::Expired);
    }

    #[test]
    fn responses_out_of_order_do_not_shorten_a_session() {
        let mut session = Liveness::new(s(30), s(100));
        session.confirm(s(120), s(121));
        session.confirm(s(110), s(122));
        assert_eq!(session.state(true, s(149)), SessionState::Suspended);
        assert_eq!(session.state(true, s(150)), SessionState::Expired);
    }

    #[test]
    fn a_shorter_timeout_counts_from_its_request() {
        let mut session = Liveness::new(s(40), s(100));
        session.shorten(s(50), s(101), s(102));
        assert_eq!(session.until_change(s(140)), s(0));
        session.shorten(s(4), s(110), s(112));
        assert_eq!(session.timeout(), s(4));
        assert_eq!(session.state(true, s(113)), SessionState::Suspended);
        session.confirm(s(113), s(113));
        assert_eq!(session.state(true, s(115)), SessionState::Connected);
        assert_eq!(session.state(true, s(117)), SessionState::Expired);
        let mut session = Liveness::new(s(40), s(100));
        session.shorten(s(4), s(139), s(140));
        assert_eq!(session.state(true, s(140)), SessionState::Expired, "the grant is too late");
    }

    #[test]
    fn a_lost_connection_suspends_and_an_end_is_permanent() {
        let mut session = Liveness::new(s(30), s(100));
        assert_eq!(session.state(false, s(101)), SessionState::Suspended);
        assert_eq!(session.state(true, s(102)), SessionState::Connected);
        session.end();
        session.confirm(s(103), s(103));
        assert_eq!(session.state(true, s(103)), SessionState::Expired);
    }

    #[test]
    fn a_closed_session_does_not_expire_and_an_expired_one_stays_expired() {
        let mut session = Liveness::new(s(30), s(100));
        session.close();
        assert_eq!(session.state(true, s(101)), SessionState::Closed);
        assert_eq!(session.state(true, s(200)), SessionState::Closed);
        let mut session = Liveness::new(s(30), s(100));
        assert_eq!(session.state(true, s(130)), SessionState::Expired);
        session.close();
        assert_eq!(session.state(true, s(131)), SessionState::Expired);
    }

    #[test]
    fn the_state_changes_exactly_at_the_announced_times() {
        for timeout in [1, 2, 3, 100, 40_001] {
            let mut session = Liveness::new(Duration::from_millis(timeout), s(7));
            let mut now = s(7);
            let mut states = Vec::new();
            while states.last() != Some(&SessionState::Expired) {
                states.push(session.state(true, now));
                now += session.until_change(now).max(Duration::from_nanos(1));
                assert!(states.len() <= 4, "{timeout}: {states:?}");
            }
            assert_eq!(now, s(7) + Duration::from_millis(timeout) + Duration::from_nanos(1));
        }
    }
}
