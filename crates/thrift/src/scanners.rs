//! Scanners that stay open between calls.
//!
//! A scanner belongs to this process. HBase numbers its scanners, so a client can guess the ids of
//! other clients' scanners. Here, ids are random, and valid only for the address of the client that
//! opened the scanner. The number of scanners is limited, in total and for each client address: a
//! client that opens too many loses its own least recently used one. Unused scanners are closed.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::budget::{Budget, BudgetShare};
use base::env::{Env, TaskClass};
use client::{Row, Scanner};

use crate::call::Call;
use crate::failure::Failure;
use crate::options::ThriftOptions;

/// Memory that an open scanner holds for the rows of one response of a region server.
const SCANNER_BYTES: usize = 256 << 10;

/// The open scanners.
pub(crate) struct Scanners {
    open: Mutex<HashMap<i32, Entry>>,
    max: usize,
    per_client_max: usize,
    time: Duration,
}

struct Entry {
    scan: SharedScan,
    owner: IpAddr,
    /// When it was last used, by the monotonic clock.
    used: Duration,
}

impl Entry {
    /// Whether a call uses the scanner.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.scan) > 1
    }
}

pub(crate) type SharedScan = Arc<tokio::sync::Mutex<OpenScan>>;

impl Scanners {
    pub(crate) fn new(options: &ThriftOptions) -> Scanners {
        Scanners {
            open: Mutex::default(),
            max: options.scanners_max.max(1),
            per_client_max: options.scanners_per_client_max.clamp(1, options.scanners_max.max(1)),
            time: options.scanner_time,
        }
    }

    /// Adds a scanner, instead of the least recently used one of a client that has too many.
    /// Returns its id, or `None` if there are too many in total.
    pub(crate) fn add(&self, owner: IpAddr, scan: OpenScan, env: &Env) -> Option<i32> {
        let now = env.clock.monotonic();
        self.remove_expired(now);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_owner = open.values().filter(|entry| entry.owner == owner).count();
        if of_owner >= self.per_client_max {
            let own = open.iter().filter(|(_, entry)| entry.owner == owner);
            let oldest = own.min_by_key(|(_, entry)| (entry.is_in_use(), entry.used));
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                open.remove(&oldest);
            }
        }
        if open.len() >= self.max {
            return None;
        }
        let id = loop {
            let id = (env.random.next_u64() >> 33) as i32;
            if !open.contains_key(&id) {
                break id;
            }
        };
        open.insert(id, Entry { scan: Arc::new(tokio::sync::Mutex::new(scan)), owner, used: now });
        Some(id)
    }

    /// The scanner with this id, if it belongs to the client and has not expired. It does not
    /// expire while the caller uses it. [`end_use`](Self::end_use) must follow.
    pub(crate) fn find(&self, id: i32, owner: IpAddr, now: Duration) -> Option<SharedScan> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = open.get_mut(&id).filter(|entry| entry.owner == owner && !self.is_expired(entry, now))?;
        entry.used = now;
        Some(entry.scan.clone())
    }

    /// Starts the idle time of a scanner.
    pub(crate) fn end_use(&self, id: i32, now: Duration) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = open.get_mut(&id) {
            entry.used = now;
        }
    }

    /// Removes a scanner; returns whether there was one.
    pub(crate) fn remove(&self, id: i32, owner: IpAddr) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_owned = open.get(&id).is_some_and(|entry| entry.owner == owner);
        is_owned && open.remove(&id).is_some()
    }

    /// Removes the scanners that were not used for too long.
    pub(crate) fn remove_expired(&self, now: Duration) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, entry| !self.is_expired(entry, now));
    }

    fn is_expired(&self, entry: &Entry, now: Duration) -> bool {
        !entry.is_in_use() && now.saturating_sub(entry.used) > self.time
    }
}

/// A scan that a client reads in parts. When dropped, the scanner of the region server is closed.
pub(crate) struct OpenScan {
    env: Env,
    scanner: Option<Scanner>,
    /// Rows that were read, but did not fit into a response.
    ready: VecDeque<Row>,
    /// Whether the columns of its rows are a list in the order of the scan, or a map (Thrift 1).
    pub(crate) has_sorted_columns: bool,
    /// The memory of the rows: [`SCANNER_BYTES`] for those in `scanner`, and the size of `ready`.
    memory: BudgetShare,
}

/// Why a call gets no rows of a scanner. The next call returns them, except after an error of the
/// client.
pub(crate) enum ScanFailure {
    Client(client::Error),
    /// The rows are larger than a response may be.
    TooLarge,
    /// There is no memory for the response.
    NoMemory(Failure),
}

impl OpenScan {
    /// An open scan, or `None` if there is no memory for it.
    pub(crate) fn new(
        env: &Env,
        scanner: Scanner,
        has_sorted_columns: bool,
        budget: &Arc<Budget>,
    ) -> Option<OpenScan> {
        let (env, scanner, ready) = (env.clone(), Some(scanner), VecDeque::new());
        let mut scan = OpenScan { env, scanner, ready, has_sorted_columns, memory: BudgetShare::of(budget) };
        scan.memory.take_large(SCANNER_BYTES).then_some(scan)
    }

    /// The next rows, at most `rows_max`; fewer only at the end. Takes their memory from `call`.
    pub(crate) async fn next(
        &mut self,
        call: &mut Call<'_>,
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Row>, ScanFailure> {
        let (mut taken, mut bytes) = (TakenRows { scan: self, rows: Vec::new() }, 0);
        while taken.rows.len() < rows_max {
            let row = match taken.scan.next_row().await {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    taken.rows.clear();
                    return Err(ScanFailure::Client(error));
                }
            };
            let size = row_bytes(&row);
            bytes += size;
            taken.rows.push(row);
            if bytes > bytes_max {
                return Err(ScanFailure::TooLarge);
            }
            call.take_memory(size).map_err(ScanFailure::NoMemory)?;
        }
        Ok(std::mem::take(&mut taken.rows))
    }

    async fn next_row(&mut self) -> client::Result<Option<Row>> {
        let Some(row) = self.ready.pop_front() else { return self.read().await };
        self.memory.release(row_bytes(&row));
        Ok(Some(row))
    }

    /// Makes `rows` the next ones again.
    fn put_back(&mut self, rows: Vec<Row>) {
        self.memory.force(rows.iter().map(row_bytes).sum());
        for row in rows.into_iter().rev() {
            self.ready.push_front(row);
        }
    }

    async fn read(&mut self) -> client::Result<Option<Row>> {
        let Some(scanner) = &mut self.scanner else { return Ok(None) };
        let row = scanner.next().await;
        if !matches!(row, Ok(Some(_))) {
            self.scanner = None;
        }
        row
    }
}

impl Drop for OpenScan {
    fn drop(&mut self) {
        if let Some(scanner) = self.scanner.take() {
            self.env.spawn(TaskClass::Connection, scanner.close());
        }
    }
}

/// Rows that a response took from a scan. The scan takes them back when this is dropped: if the
/// response fails, or if its client disconnects while the scan waits.
struct TakenRows<'a> {
    scan: &'a mut OpenScan,
    rows: Vec<Row>,
}

impl Drop for TakenRows<'_> {
    fn drop(&mut self) {
        self.scan.put_back(std::mem::take(&mut self.rows));
    }
}

/// The size of a row's cells in memory.
pub(crate) fn row_bytes(row: &Row) -> usize {
    row.cells.iter().map(|cell| cell.bytes().len() + size_of::<cell::KeyValue>()).sum()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::env::{MakeTask, Spawner};
    use base::testing::TestSpawner;
    use bytes::Bytes;
    use cell::{CellType, KeyValue};
    use client::{Client, ClientOptions, Registry};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::message::MessageHeader;
    use crate::options::Service;
    use crate::protocol::Protocol;
    use crate::reader::Reader;

    fn scan(env: &Env, client: &Client) -> OpenScan {
        let scanner =
            client.table(cell::schema::TableName::parse("t").unwrap()).scan(cell::query::Scan::default());
        OpenScan::new(env, scanner, false, &Budget::new(SCANNER_BYTES * 2)).unwrap()
    }

    fn row(key: &str) -> Row {
        let value = vec![0; 100 << 10];
        Row { cells: vec![KeyValue::new(key.as_bytes(), b"f", b"q", 1, CellType::Put, &value)] }
    }

    /// A call that takes its memory from `memory`.
    fn call(memory: &mut BudgetShare) -> Call<'_> {
        let header = MessageHeader { name: "scannerGetList".into(), sequence: 1 };
        let reader = Reader::new(Protocol::Binary, Bytes::new(), memory);
        Call { reader, header, peer: IpAddr::from(Ipv4Addr::LOCALHOST), reserved: 0 }
    }

    #[tokio::test]
    async fn rows_that_do_not_fit_into_a_response_are_returned_by_the_next_call() {
        let budget = Budget::new(4 << 20);
        let mut scan = OpenScan {
            env: base::testing::env(1),
            scanner: None,
            ready: VecDeque::new(),
            has_sorted_columns: false,
            memory: BudgetShare::of(&budget),
        };
        let rows = vec![row("a"), row("b"), row("c")];
        let bytes = rows.iter().map(row_bytes).sum();
        scan.put_back(rows.clone());
        let mut other_calls = BudgetShare::of(&budget);
        assert!(other_calls.take_large((3 << 20) - bytes - 2 * row_bytes(&rows[0])));
        let refused = scan.next(&mut call(&mut BudgetShare::of(&budget)), 3, bytes).await;
        assert!(matches!(refused, Err(ScanFailure::NoMemory(_))), "there is memory for one row");
        drop(other_calls);
        let refused = scan.next(&mut call(&mut BudgetShare::of(&budget)), 3, bytes - 1).await;
        assert!(matches!(refused, Err(ScanFailure::TooLarge)));
        assert!(budget.used() >= bytes, "the scanner holds the rows");
        let mut read = Vec::new();
        for rows_max in [1, 3, 1] {
            let next = scan.next(&mut call(&mut BudgetShare::of(&budget)), rows_max, bytes).await;
            read.extend(next.unwrap_or_else(|_| panic!("no rows")));
        }
        assert_eq!(read, rows);
        drop(scan);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn rows_of_a_call_that_was_cut_off_are_returned_by_the_next_call() {
        let env = base::testing::env(1);
        let client = Client::new(env.clone(), Registry::rpc(""), ClientOptions::default());
        let budget = Budget::new(4 << 20);
        let mut scan = scan(&env, &client);
        scan.put_back(vec![row("a")]);
        let (mut memory, mut next_memory) = (BudgetShare::of(&budget), BudgetShare::of(&budget));
        let mut first = call(&mut memory);
        // It waits for a second row, because the cluster has no server.
        tokio::select! {
            biased;
            _ = scan.next(&mut first, 2, usize::MAX) => panic!("a response"),
            () = std::future::ready(()) => {}
        }
        scan.scanner = None;
        let rows = scan.next(&mut call(&mut next_memory), 2, usize::MAX).await;
        assert_eq!(rows.unwrap_or_else(|_| panic!("no rows")), [row("a")]);
    }

    /// Runs tasks and counts them. Each closes a scanner here.
    #[derive(Default)]
    struct CountingSpawner {
        spawner: TestSpawner,
        count: AtomicUsize,
    }

    impl Spawner for CountingSpawner {
        fn spawn_with(&self, class: TaskClass, make: MakeTask) -> JoinHandle<()> {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.spawner.spawn_with(class, make)
        }
    }

    #[tokio::test]
    async fn scanners_belong_to_their_client_and_are_limited() {
        let spawner = Arc::new(CountingSpawner::default());
        let env = Env { spawner: spawner.clone(), ..base::testing::env(1) };
        let client = Client::new(env.clone(), Registry::rpc(""), ClientOptions::default());
        let options =
            ThriftOptions { scanners_max: 3, scanners_per_client_max: 2, ..ThriftOptions::new(Service::One) };
        let scanners = Scanners::new(&options);
        let (one, other) = (IpAddr::from(Ipv4Addr::new(1, 1, 1, 1)), IpAddr::from(Ipv4Addr::new(2, 2, 2, 2)));
        let add = |owner| scanners.add(owner, scan(&env, &client), &env);
        let closed = || spawner.count.load(Ordering::Relaxed);
        let second = Duration::from_secs;
        let (a, b) = (add(one).unwrap(), add(one).unwrap());
        assert!(a >= 0 && b >= 0 && a != b);
        assert!(scanners.find(a, other, second(1)).is_none(), "the id of another client");
        assert!(!scanners.remove(a, other));
        assert!(scanners.find(a, one, second(1)).is_some());
        assert_eq!(closed(), 0);
        add(one).unwrap();
        assert_eq!(closed(), 1, "the least recently used one of the same client is closed");
        assert!(scanners.find(b, one, second(1)).is_none());
        let d = add(other).unwrap();
        assert!(add(other).is_none(), "the total is full");
        assert_eq!(closed(), 2, "the one that was refused is closed");
        scanners.remove_expired(second(50));
        assert_eq!(closed(), 2);
        assert!(scanners.find(a, one, second(55)).is_some());
        assert!(scanners.find(d, other, second(61)).is_none(), "expired, but not removed yet");
        scanners.remove_expired(second(61));
        assert_eq!(closed(), 4, "all but the one that was used");
        assert!(scanners.find(d, other, second(61)).is_none());
        assert!(scanners.remove(a, one));
        assert_eq!(closed(), 5);
    }

    #[tokio::test]
    async fn the_idle_time_of_a_scanner_starts_at_the_end_of_a_call() {
        let env = base::testing::env(1);
        let client = Client::new(env.clone(), Registry::rpc(""), ClientOptions::default());
        let options = ThriftOptions { scanners_per_client_max: 2, ..ThriftOptions::new(Service::One) };
        let scanners = Scanners::new(&options);
        let owner = IpAddr::from(Ipv4Addr::LOCALHOST);
        let add = || scanners.add(owner, scan(&env, &client), &env).unwrap();
        let (busy, idle, second) = (add(), add(), Duration::from_secs);
        let in_use = scanners.find(busy, owner, second(0));
        assert!(scanners.find(idle, owner, second(1)).is_some());
        add();
        assert!(scanners.find(idle, owner, second(1)).is_none(), "the one in use is not replaced");
        scanners.remove_expired(second(1000));
        scanners.end_use(busy, second(1000));
        drop(in_use);
        assert!(scanners.find(busy, owner, second(1060)).is_some());
        assert!(scanners.find(busy, owner, second(1121)).is_none());
    }
}
