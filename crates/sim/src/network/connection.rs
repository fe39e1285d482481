//! A connection: two directions of segments, and the state of its two ends.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::ReadBuf;

use super::{HostId, SimNetwork, State};
use crate::scheduler::Owner;

/// Bytes of one direction that may be unread, like socket buffers. A writer waits when they are
/// full.
pub(super) const WINDOW_BYTES: usize = 64 << 10;
/// How long a sender at least retransmits to a blocked link before it gives the connection up.
const GIVE_UP_MIN: Duration = Duration::from_secs(6);

/// Number of a connection in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u64);

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    /// How long this end at most retransmits to a blocked link. Only the sockets of clients have
    /// the TCP user timeout of `os::network`.
    fn give_up_max(self) -> Duration {
        match self {
            Side::Client => Duration::from_secs(50),
            Side::Server => Duration::from_secs(90),
        }
    }

    pub(super) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// One unit of delivery.
#[derive(Debug)]
pub(super) enum Segment {
    Data(Bytes),
    /// The sender sends nothing more.
    End,
    /// The sender has dropped the connection.
    Reset,
}

pub(super) struct Connection {
    // By side.
    ends: [End; 2],
}

/// One end, and the direction that leaves it.
struct End {
    host: HostId,
    owner: Owner,
    /// The program (or the host for it) has closed this end.
    is_closed: bool,
    /// The host lost power, so nothing was sent about the end.
    is_silent: bool,
    /// Why reads and writes fail.
    failure: Option<io::ErrorKind>,
    sent: Direction,
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
}

/// The bytes that leave one end.
#[derive(Default)]
struct Direction {
    /// Segments on the way, with their times of arrival.
    in_flight: VecDeque<(Duration, Segment)>,
    /// When the first segment in flight was held back at a blocked link.
    held_since: Option<Duration>,
    /// Bytes that arrived.
    unread: VecDeque<Bytes>,
    /// Bytes in flight and unread, and read bytes whose acknowledgement is held back.
    unacknowledged: usize,
    /// Read bytes whose acknowledgement is held back.
    read_held: usize,
    /// The sender has sent its last segment.
    end_sent: bool,
    /// The last segment has arrived.
    end_arrived: bool,
}

impl Connection {
    pub(super) fn new(client: (HostId, Owner), server: (HostId, Owner)) -> Connection {
        let end = |(host, owner)| End {
            host,
            owner,
            is_closed: false,
            is_silent: false,
            failure: None,
            sent: Direction::default(),
            read_waker: None,
            write_waker: None,
        };
        Connection { ends: [end(client), end(server)] }
    }

    pub(super) fn hosts(&self) -> [HostId; 2] {
        [self.ends[0].host, self.ends[1].host]
    }

    pub(super) fn owner(&self, side: Side) -> Owner {
        self.ends[side as usize].owner
    }

    pub(super) fn is_closed(&self, side: Side) -> bool {
        self.ends[side as usize].is_closed
    }

    /// The end on a host that lost power, if the other end is still open.
    pub(super) fn silent_side(&self, host: HostId) -> Option<Side> {
        let is_silent = |side: &Side| {
            let end = &self.ends[*side as usize];
            end.is_silent && end.host == host && !self.is_closed(side.other())
        };
        [Side::Client, Side::Server].into_iter().find(is_silent)
    }

    /// Fails the reads and writes of an end.
    pub(super) fn reset(&mut self, side: Side, failure: io::ErrorKind) {
        let end = &mut self.ends[side as usize];
        end.failure.get_or_insert(failure);
        end.wake();
        self.ends[side.other() as usize].sent.unread.clear();
    }

    fn has_ended(&self) -> bool {
        self.ends.iter().all(|end| end.is_closed)
    }

    /// Reads at most `len` bytes into `buffer`, and returns their number; `None` if the reader must
    /// wait.
    pub(super) fn read(
        &mut self,
        side: Side,
        len: usize,
        buffer: &mut ReadBuf<'_>,
    ) -> Option<io::Result<usize>> {
        if let Some(failure) = self.ends[side as usize].failure {
            return Some(Err(failure.into()));
        }
        let direction = &mut self.ends[side.other() as usize].sent;
        let mut read = 0;
        while let Some(first) = direction.unread.front_mut()
            && read < len
        {
            let part = first.split_to(first.len().min(len - read));
            buffer.put_slice(&part);
            read += part.len();
            if first.is_empty() {
                direction.unread.pop_front();
            }
        }
        (read > 0 || direction.end_arrived || len == 0).then_some(Ok(read))
    }

    /// Frees the room of bytes that were read. The writer learns of it only if acknowledgements
    /// reach it.
    pub(super) fn acknowledge(&mut self, reader: Side, len: usize, is_blocked: bool) {
        let end = &mut self.ends[reader.other() as usize];
        end.sent.read_held += len;
        if !is_blocked {
            end.sent.unacknowledged -= std::mem::take(&mut end.sent.read_held);
            if let Some(waker) = end.write_waker.take() {
                waker.wake();
            }
        }
    }

    /// Why a write fails, or how many bytes it may send.
    pub(super) fn room(&self, side: Side) -> io::Result<usize> {
        let end = &self.ends[side as usize];
        match end.failure {
            Some(failure) => Err(failure.into()),
            None if end.sent.end_sent => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(WINDOW_BYTES.saturating_sub(end.sent.unacknowledged)),
        }
    }

    pub(super) fn wait_to_read(&mut self, side: Side, waker: &Waker) {
        self.ends[side as usize].read_waker = Some(waker.clone());
    }

    pub(super) fn wait_to_write(&mut self, side: Side, waker: &Waker) {
        self.ends[side as usize].write_waker = Some(waker.clone());
    }
}

impl End {
    fn wake(&mut self) {
        for waker in [self.read_waker.take(), self.write_waker.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

impl SimNetwork {
    /// Sends a segment from one end.
    pub(super) fn send(self: &Arc<Self>, state: &mut State, id: ConnectionId, from: Side, segment: Segment) {
        let hosts = state.connection(id).hosts();
        let (source, target) = (hosts[from as usize], hosts[from.other() as usize]);
        let factor = state.slow.get(&(source, target)).copied().unwrap_or(1);
        let arrival = self.scheduler.now() + self.random_latency(source, target) * factor;
        let direction = &mut state.connection(id).ends[from as usize].sent;
        let after_last = direction.in_flight.back().map_or(Duration::ZERO, |(last, _)| *last);
        let arrival = arrival.max(after_last);
        match &segment {
            Segment::Data(bytes) => direction.unacknowledged += bytes.len(),
            Segment::End | Segment::Reset => direction.end_sent = true,
        }
        direction.in_flight.push_back((arrival, segment));
        self.schedule_arrival(id, from, arrival);
    }

    fn schedule_arrival(self: &Arc<Self>, id: ConnectionId, from: Side, at: Duration) {
        let network = self.clone();
        self.scheduler.at(at, move || network.deliver(id, from));
    }

    /// Delivers the segments of one direction that have arrived.
    fn deliver(self: &Arc<Self>, id: ConnectionId, from: Side) {
        let mut state = self.lock();
        let now = self.scheduler.now();
        loop {
            let Some(connection) = state.connections.get(&id) else { return };
            let hosts = connection.hosts();
            let is_blocked = state.is_blocked(hosts[from as usize], hosts[from.other() as usize]);
            let direction = &mut state.connection(id).ends[from as usize].sent;
            match direction.in_flight.front() {
                Some((arrival, _)) if *arrival <= now => {}
                _ => return,
            }
            if is_blocked {
                if direction.held_since.is_none() {
                    direction.held_since = Some(now);
                    self.give_up_later(id, from, now);
                }
                return;
            }
            let (_, segment) = direction.in_flight.pop_front().expect("checked above");
            self.arrive(&mut state, id, from, segment);
        }
    }

    fn arrive(self: &Arc<Self>, state: &mut State, id: ConnectionId, from: Side, segment: Segment) {
        let connection = state.connection(id);
        let to = from.other();
        let number = match &segment {
            Segment::Data(bytes) => bytes.len() as u64,
            Segment::End => u64::MAX,
            Segment::Reset => u64::MAX - 1,
        };
        let (is_silent, is_closed) = (connection.ends[to as usize].is_silent, connection.is_closed(to));
        match segment {
            _ if is_silent => {}
            Segment::Data(_) if is_closed => {
                // The host answers for a socket that no longer exists.
                if !connection.ends[to as usize].sent.end_sent {
                    self.send(state, id, to, Segment::Reset);
                } else {
                    connection.reset(from, io::ErrorKind::ConnectionReset);
                }
            }
            Segment::Data(bytes) => {
                connection.ends[from as usize].sent.unread.push_back(bytes);
                connection.ends[to as usize].wake();
            }
            Segment::End => {
                connection.ends[from as usize].sent.end_arrived = true;
                connection.ends[to as usize].wake();
            }
            Segment::Reset => connection.reset(to, io::ErrorKind::ConnectionReset),
        }
        let hosts = state.connection(id).hosts();
        let text = format!("{}->{}", state.name(hosts[from as usize]), state.name(hosts[to as usize]));
        self.timeline.detail(self.scheduler.now(), "network", "arrives", &text, &[id.0, number]);
        self.remove_if_ended(state, id);
    }

    /// Closes an end. Peers see the end of the stream after all data, or a reset.
    pub(super) fn close(self: &Arc<Self>, state: &mut State, id: ConnectionId, side: Side, resets: bool) {
        let connection = state.connection(id);
        connection.ends[side as usize].is_closed = true;
        let unread = &mut connection.ends[side.other() as usize].sent.unread;
        let resets = resets || !unread.is_empty();
        unread.clear();
        let end = &connection.ends[side as usize];
        if end.failure.is_none() && (resets || !end.sent.end_sent) {
            self.send(state, id, side, if resets { Segment::Reset } else { Segment::End });
        }
        self.remove_if_ended(state, id);
    }

    /// Closes an end of a host without power.
    pub(super) fn close_silently(&self, state: &mut State, id: ConnectionId, side: Side) {
        let end = &mut state.connection(id).ends[side as usize];
        (end.is_closed, end.is_silent) = (true, true);
        self.remove_if_ended(state, id);
    }

    /// Sends a reset for an end that is gone.
    pub(super) fn send_reset(self: &Arc<Self>, id: ConnectionId, side: Side) {
        let mut state = self.lock();
        if let Some(connection) = state.connections.get_mut(&id) {
            connection.ends[side as usize].is_silent = false;
            self.send(&mut state, id, side, Segment::Reset);
        }
    }

    /// Schedules the arrival of what was held back on a link.
    pub(super) fn release_segments(self: &Arc<Self>, state: &mut State, from: HostId, to: HostId) {
        let ids: Vec<ConnectionId> = state.connections.keys().copied().collect();
        for id in ids {
            let connection = state.connection(id);
            for side in [Side::Client, Side::Server] {
                if connection.ends[side as usize].host != from
                    || connection.ends[side.other() as usize].host != to
                {
                    continue;
                }
                // Acknowledgements of the other direction take this link.
                connection.acknowledge(side, 0, false);
                if connection.ends[side as usize].sent.held_since.take().is_some() {
                    // Retransmissions come after growing pauses.
                    let pause = self.random.between(Duration::from_micros(100), Duration::from_millis(400));
                    self.schedule_arrival(id, side, self.scheduler.now() + pause);
                }
            }
        }
    }

    /// Breaks the connection if the direction is held back for long.
    fn give_up_later(self: &Arc<Self>, id: ConnectionId, from: Side, since: Duration) {
        let network = self.clone();
        self.scheduler.after(self.random.between(GIVE_UP_MIN, from.give_up_max()), move || {
            let mut state = network.lock();
            let Some(connection) = state.connections.get_mut(&id) else { return };
            let direction = &mut connection.ends[from as usize].sent;
            if direction.held_since == Some(since) {
                direction.in_flight.clear();
                direction.held_since = None;
                connection.reset(from, io::ErrorKind::TimedOut);
                network.send(&mut state, id, from, Segment::Reset);
            }
        });
    }

    fn remove_if_ended(&self, state: &mut State, id: ConnectionId) {
        if state.connection(id).has_ended() {
            state.connections.remove(&id);
        }
    }
}
