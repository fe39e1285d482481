//! A fake cluster with one table. Tests control which server serves each region, the response
//! sizes, and failures.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::BoxFuture;
use base::env::Env;
use bytes::{Bytes, BytesMut};
use cell::codec::{CellBlockReader, Codec};
use cell::mutation::MutationKind;
use cell::query::Scan;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use cell::{CellOrder, KeyValue};
use client::{Client, ClientOptions, Registry};
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use proto::{
    CoprocessorServiceRequest, FlushRegionRequest, FlushRegionResponse, GetMetaRegionLocationsResponse,
    GetRequest, GetResponse, MultiRequest, MultiResponse, MutateRequest, MutateResponse, RegionActionResult,
    RegionLocation, ResultOrException, ScanRequest, ScanResponse,
};
use rpc::{Call, Reply, Server, ServerOptions, Service};
use wire::convert::{from_proto, specified_region};
use wire::meta::{self, TableState};

/// Rows by key.
type Rows = BTreeMap<Bytes, Vec<KeyValue>>;

pub struct Fake {
    pub env: Env,
    pub table: TableName,
    state: Arc<Mutex<State>>,
    ports: Vec<u16>,
    servers: Vec<Arc<Server>>,
}

pub struct State {
    /// The table's rows.
    pub rows: Rows,
    /// The table's regions, and the index of each region's server.
    pub regions: Vec<(RegionInfo, usize)>,
    /// State in `table:state`; `None` if the table does not exist.
    pub table_state: Option<TableState>,
    /// Failures of the next calls of a method, except for the region of `hbase:meta`.
    pub faults: VecDeque<(&'static str, JavaException)>,
    /// On average one in this many calls fails; 0 for none.
    pub fault_every: u64,
    /// Maximum number of cells in one scan response.
    pub cells_max: usize,
    /// Every second call that continues a scanner is refused for this reason.
    pub refuse_next: Option<JavaException>,
    /// Before a flush, the region that contains this key is split at it.
    pub split_at_flush: Option<Bytes>,
    /// Maximum number of rows per call of the column endpoint; the response then has a resume row.
    pub endpoint_rows_max: usize,
    /// Before an endpoint call, the region that contains this key is split at it.
    pub split_at_endpoint: Option<Bytes>,
    /// Number of appends, except those repeated with the same nonce.
    pub appends: usize,
    /// Start keys of flushed regions.
    pub flushed: Vec<Bytes>,
    /// Number of calls per method; `Meta` counts calls for `hbase:meta`.
    pub calls: HashMap<String, usize>,
    nonces: HashSet<(u64, u64)>,
    scanners: HashMap<u64, Cursor>,
    random: u64,
}

/// A scanner: the remaining cells, by row.
struct Cursor {
    region: String,
    rest: VecDeque<Vec<KeyValue>>,
    batch: usize,
    next_call_seq: u64,
}

impl Fake {
    /// A cluster with `servers` servers. The table's regions, split at `splits`, are distributed
    /// round-robin.
    pub async fn new(servers: usize, splits: &[&'static str]) -> Fake {
        let env = base::testing::env(11);
        let table = TableName::parse("t").unwrap();
        let bounds: Vec<Bytes> =
            [""].iter().chain(splits).chain(&[""]).map(|key| Bytes::from(*key)).collect();
        let region = |(at, keys): (usize, &[Bytes])| {
            (RegionInfo::new(table.clone(), keys[0].clone(), keys[1].clone(), 1 + at as u64), at % servers)
        };
        let state = State {
            rows: Rows::new(),
            regions: bounds.windows(2).enumerate().map(region).collect(),
            table_state: Some(TableState::Enabled),
            faults: VecDeque::new(),
            fault_every: 0,
            cells_max: usize::MAX,
            refuse_next: None,
            split_at_flush: None,
            endpoint_rows_max: usize::MAX,
            split_at_endpoint: None,
            appends: 0,
            flushed: Vec::new(),
            nonces: HashSet::new(),
            calls: HashMap::new(),
            scanners: HashMap::new(),
            random: 1,
        };
        let mut fake =
            Fake { env, table, state: Arc::new(Mutex::new(state)), ports: Vec::new(), servers: Vec::new() };
        let mut listeners = Vec::new();
        for _ in 0..servers {
            let listener = fake.env.net.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
            fake.ports.push(listener.local_addr().port());
            listeners.push(listener);
        }
        for (at, listener) in listeners.into_iter().enumerate() {
            let node = || Node { at, ports: fake.ports.clone(), state: Arc::clone(&fake.state) };
            let services: Vec<Arc<dyn Service>> =
                vec![Arc::new(RowService(node())), Arc::new(Regions(node())), Arc::new(Bootstrap(node()))];
            let server = Server::new(fake.env.clone(), services, ServerOptions::default(), None);
            server.serve(listener);
            fake.servers.push(server);
        }
        fake
    }

    pub fn client(&self) -> Client {
        self.client_with(ClientOptions::default())
    }

    pub fn client_with(&self, options: ClientOptions) -> Client {
        self.client_on(self.env.clone(), options)
    }

    /// A client with its own environment, for example with another network.
    pub fn client_on(&self, env: Env, options: ClientOptions) -> Client {
        Client::new(env, Registry::rpc(&format!("localhost:{}", self.ports[0])), options)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Number of calls of each method.
    pub fn calls(&self, what: &[&str]) -> Vec<usize> {
        let state = self.state();
        what.iter().map(|what| state.called(what)).collect()
    }

    /// The name of one of the servers.
    pub fn server_name(&self, at: usize) -> ServerName {
        server_name(&self.ports, at)
    }

    /// Stops a server and its connections.
    pub async fn stop(&self, at: usize) {
        self.servers[at].stop().await;
    }
}

fn server_name(ports: &[u16], at: usize) -> ServerName {
    ServerName { host: "localhost".into(), port: ports[at], start_code: 1 }
}

impl State {
    pub(super) fn count(&mut self, what: &str) {
        *self.calls.entry(what.to_string()).or_default() += 1;
    }

    /// Number of calls of a method so far.
    pub fn called(&self, what: &str) -> usize {
        self.calls.get(what).copied().unwrap_or(0)
    }

    fn ordered_fault(&mut self, method: &str) -> Answer<()> {
        match self.faults.iter().position(|(of, _)| *of == method) {
            Some(at) => Err(self.faults.remove(at).unwrap().1),
            None => Ok(()),
        }
    }

    /// Returns the next injected failure, if any.
    pub(super) fn fault(&mut self, method: &str) -> Answer<()> {
        self.ordered_fault(method)?;
        if self.fault_every == 0 || !self.roll().is_multiple_of(self.fault_every) {
            return Ok(());
        }
        let classes = match method {
            "Scan" => &[
                class::UNKNOWN_SCANNER,
                class::SCANNER_RESET,
                class::NOT_SERVING_REGION,
                class::IO_EXCEPTION,
            ][..],
            _ => &[class::REGION_TOO_BUSY, class::NOT_SERVING_REGION, class::IO_EXCEPTION][..],
        };
        let class = classes[(self.roll() % classes.len() as u64) as usize];
        Err(JavaException::new(class, "injected"))
    }

    fn roll(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// The rows of `hbase:meta`.
    fn meta_rows(&self, ports: &[u16]) -> Rows {
        let mut rows = Rows::new();
        let table = self.regions.first().map(|(region, _)| region.table.clone());
        for (region, at) in &self.regions {
            let open = meta::row::put_open(region, &server_name(ports, *at), 2);
            let name = meta::row::put_region(region, meta::MetaRegionState::Open);
            let mut cells: Vec<KeyValue> = open.cells.into_iter().chain(name.cells).collect();
            sort(&mut cells);
            rows.insert(meta::region_row(region), cells);
        }
        if let (Some(table), Some(state)) = (table, self.table_state) {
            rows.insert(meta::table_row(&table), meta::row::put_table_state(&table, state).cells);
        }
        rows
    }

    pub(super) fn region(&self, specifier: &proto::RegionSpecifier, server: usize) -> Answer<RegionInfo> {
        let name = specified_region(specifier).unwrap();
        let found = self.regions.iter().find(|(region, _)| region.encoded_name() == name);
        match found {
            Some((region, at)) if *at == server && self.table_state == Some(TableState::Enabled) => {
                Ok(region.clone())
            }
            _ => Err(JavaException::new(class::NOT_SERVING_REGION, name)),
        }
    }

    fn flush(&mut self, specifier: &proto::RegionSpecifier, server: usize) -> Answer<()> {
        let region = self.region(specifier, server)?;
        if let Some(key) = self.split_at_flush.take_if(|key| region.contains(key)) {
            self.split(&region, key);
            return Err(JavaException::new(class::NOT_SERVING_REGION, "it was split"));
        }
        self.flushed.push(region.start_key);
        Ok(())
    }

    /// Replaces a region by two daughters; the second one is on the first server.
    pub(super) fn split(&mut self, region: &RegionInfo, key: Bytes) {
        let daughter = |start_key, end_key| {
            RegionInfo::new(region.table.clone(), start_key, end_key, region.region_id + 100)
        };
        let daughters =
            (daughter(region.start_key.clone(), key.clone()), daughter(key, region.end_key.clone()));
        let at = self.regions.iter().position(|(of, _)| of == region).unwrap();
        let server = self.regions[at].1;
        self.regions.splice(at..=at, [(daughters.0, server), (daughters.1, 0)]);
    }

    fn apply(
        &mut self,
        region: &RegionInfo,
        message: &proto::MutationProto,
        cells: &mut CellBlockReader,
        nonce_group: u64,
    ) -> Answer<()> {
        let mutation = from_proto::mutation(message, cells, nonce_group)?;
        if !region.contains(&mutation.row) {
            return Err(JavaException::new(class::WRONG_REGION, "row"));
        }
        if mutation.cells.iter().any(|cell| cell.view(0).family() != super::FAMILY) {
            return Err(JavaException::no_such_column_family("family"));
        }
        match mutation.kind {
            MutationKind::Put => {
                let row = self.rows.entry(mutation.row).or_default();
                for cell in mutation.cells {
                    row.retain(|known| known.view(0).qualifier() != cell.view(0).qualifier());
                    row.push(cell);
                }
                sort(row);
            }
            MutationKind::Delete => {
                self.rows.remove(&mutation.row);
            }
            MutationKind::Append => {
                if mutation.nonce.1 == 0 || self.nonces.insert(mutation.nonce) {
                    self.appends += 1;
                }
            }
            MutationKind::Increment => return Err(JavaException::unsupported("an increment")),
        }
        Ok(())
    }

    /// The cells of a scan in one region, by row, in scan order.
    fn cursor(&self, rows: &Rows, region: &RegionInfo, scan: &Scan) -> Cursor {
        let order = region.table.order();
        let mut found: Vec<_> =
            rows.iter().filter(|(row, _)| region.contains(row) && wanted(order, scan, row)).collect();
        found.sort_by(|a, b| order.compare_rows(a.0, b.0));
        if scan.reversed {
            found.reverse();
        }
        let families = &scan.selection.columns;
        let of_family = |cell: &&KeyValue| {
            families.is_empty() || families.iter().any(|wanted| wanted.family == cell.view(0).family())
        };
        let rest = found.into_iter().map(|(_, cells)| cells.iter().filter(of_family).cloned().collect());
        Cursor {
            region: region.encoded_name(),
            rest: rest.filter(|cells: &Vec<_>| !cells.is_empty()).collect(),
            batch: scan.batch as usize,
            next_call_seq: 0,
        }
    }
}

fn wanted(order: CellOrder, scan: &Scan, row: &[u8]) -> bool {
    let (low, low_in, high, high_in) = match scan.reversed {
        false => (&scan.start_row, scan.include_start_row, &scan.stop_row, scan.include_stop_row),
        true => (&scan.stop_row, scan.include_stop_row, &scan.start_row, scan.include_start_row),
    };
    let above = low.is_empty() || order.compare_rows(low, row).is_lt() || (low_in && low == row);
    let below = high.is_empty() || order.compare_rows(row, high).is_lt() || (high_in && high == row);
    above && below
}

fn sort(cells: &mut [KeyValue]) {
    cells.sort_by(|a, b| CellOrder::Plain.compare(&a.view(0), &b.view(0)));
}

/// One server.
pub(super) struct Node {
    pub(super) at: usize,
    ports: Vec<u16>,
    pub(super) state: Arc<Mutex<State>>,
}

/// The server's `ClientMetaService`.
struct Bootstrap(Node);

impl Service for Bootstrap {
    fn name(&self) -> &'static str {
        "ClientMetaService"
    }
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        assert_eq!(&*call.method, "GetMetaRegionLocations");
        let meta = RegionLocation {
            region_info: (&RegionInfo::meta()).into(),
            server_name: Some((&server_name(&self.0.ports, 0)).into()),
            seq_num: -1,
        };
        let answer = GetMetaRegionLocationsResponse { meta_locations: vec![meta] };
        Box::pin(std::future::ready(Ok(Reply::message(answer.encode_to_vec()))))
    }
}

/// The server's `AdminService`.
struct Regions(Node);

impl Service for Regions {
    fn name(&self) -> &'static str {
        "AdminService"
    }
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        assert_eq!(&*call.method, "FlushRegion");
        let request = FlushRegionRequest::decode(call.param).unwrap();
        let flushed = self.0.state.lock().unwrap().flush(&request.region, self.0.at);
        let answer = flushed.map(|()| Reply::message(FlushRegionResponse::default().encode_to_vec()));
        Box::pin(std::future::ready(answer))
    }
}

/// The server's `ClientService`.
struct RowService(Node);

impl Service for RowService {
    fn name(&self) -> &'static str {
        "ClientService"
    }
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        Box::pin(std::future::ready(self.0.answer(&call)))
    }
}

impl Node {
    fn answer(&self, call: &Call) -> Answer<Reply> {
        let (param, cells) = (call.param.clone(), call.cells.clone());
        match &*call.method {
            "Get" => self.get(GetRequest::decode(param).unwrap()),
            "Mutate" => self.mutate(MutateRequest::decode(param).unwrap(), cells),
            "Multi" => self.multi(MultiRequest::decode(param).unwrap(), cells),
            "Scan" => self.scan(ScanRequest::decode(param).unwrap()),
            "ExecService" => self.endpoint(CoprocessorServiceRequest::decode(param).unwrap()),
            other => panic!("unexpected method {other}"),
        }
    }

    fn get(&self, request: GetRequest) -> Answer<Reply> {
        let mut state = self.state.lock().unwrap();
        let is_meta = specified_region(&request.region) == Some(cell::region::META_ENCODED_NAME);
        let rows = if is_meta { state.meta_rows(&self.ports) } else { state.rows.clone() };
        state.count(if is_meta { "Meta" } else { "Get" });
        if !is_meta {
            state.region(&request.region, self.at)?;
            state.fault("Get")?;
        }
        let cells = rows.get(&request.get.row).cloned().unwrap_or_default();
        let mut result = wire::convert::result::in_block(cells.len());
        if request.get.existence_only() {
            result = wire::convert::result::existence(!cells.is_empty());
        }
        let block = if request.get.existence_only() { Bytes::new() } else { encode(&cells) };
        Ok(reply(GetResponse { result: Some(result) }, block))
    }

    fn mutate(&self, request: MutateRequest, cells: Bytes) -> Answer<Reply> {
        let mut state = self.state.lock().unwrap();
        state.count("Mutate");
        let region = state.region(&request.region, self.at)?;
        state.fault("Mutate")?;
        let group = request.nonce_group();
        state.apply(&region, &request.mutation, &mut Codec::KeyValue.read(cells), group)?;
        Ok(reply(MutateResponse { processed: Some(true), ..Default::default() }, Bytes::new()))
    }

    fn multi(&self, request: MultiRequest, cells: Bytes) -> Answer<Reply> {
        let mut state = self.state.lock().unwrap();
        state.count("Multi");
        state.fault("Multi")?;
        let mut block = Codec::KeyValue.read(cells);
        let mut found = Vec::new();
        let mut results = Vec::new();
        for part in &request.region_action {
            results.push(match state.region(&part.region, self.at) {
                Ok(region) => {
                    let block = (&mut block, request.nonce_group());
                    let (result, cells) = self.region_action(&mut state, &region, part, block);
                    found.extend(cells);
                    result
                }
                Err(exception) => {
                    part.action.iter().for_each(|action| from_proto::skip_action(action, &mut block));
                    RegionActionResult { exception: Some((&exception).into()), ..Default::default() }
                }
            });
        }
        state.ordered_fault("MultiResponse")?;
        Ok(reply(MultiResponse { region_action_result: results, ..Default::default() }, encode(&found)))
    }

    /// The entries of one region's actions in reverse order, because a server may choose the order.
    /// Their cells are in the same order.
    fn region_action(
        &self,
        state: &mut State,
        region: &RegionInfo,
        part: &proto::RegionAction,
        (block, nonce_group): (&mut CellBlockReader, u64),
    ) -> (RegionActionResult, Vec<KeyValue>) {
        let mut entries = Vec::new();
        for action in &part.action {
            let outcome = match (state.fault("Action"), &action.mutation) {
                (Ok(()), Some(mutation)) => state.apply(region, mutation, block, nonce_group),
                (fault, _) => {
                    from_proto::skip_action(action, block);
                    fault
                }
            };
            let row = action.get.as_ref().and_then(|get| state.rows.get(&get.row));
            let cells = row.filter(|_| outcome.is_ok()).cloned().unwrap_or_default();
            let (result, exception) = match (&outcome, &action.get) {
                (Err(exception), _) => (None, Some(exception.into())),
                (Ok(()), Some(_)) => (Some(wire::convert::result::in_block(cells.len())), None),
                (Ok(()), None) => (Some(proto::Result::default()), None),
            };
            entries.push((
                ResultOrException { index: action.index, result, exception, ..Default::default() },
                cells,
            ));
        }
        entries.reverse();
        let (entries, cells): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        (RegionActionResult { result_or_exception: entries, ..Default::default() }, cells.concat())
    }

    fn scan(&self, request: ScanRequest) -> Answer<Reply> {
        static LAST_ID: AtomicU64 = AtomicU64::new(1 << 40);
        let mut state = self.state.lock().unwrap();
        let (id, mut cursor) = match (request.scanner_id, &request.scan) {
            (Some(id), _) => {
                state.count("ScanNext");
                state.ordered_fault("ScanNext")?;
                if let Some(refusal) = &state.refuse_next
                    && !state.called("ScanNext").is_multiple_of(2)
                {
                    return Err(refusal.clone());
                }
                let gone = || JavaException::new(class::UNKNOWN_SCANNER, "scanner");
                let cursor = state.scanners.remove(&id).ok_or_else(gone)?;
                if request.next_call_seq.is_some_and(|seq| seq != cursor.next_call_seq) {
                    return Err(JavaException::new(class::OUT_OF_ORDER_SCANNER_NEXT, "seq"));
                }
                (id, Cursor { next_call_seq: cursor.next_call_seq + 1, ..cursor })
            }
            (None, Some(scan)) => {
                let specifier = request.region.as_ref().unwrap();
                let is_meta = specified_region(specifier) == Some(cell::region::META_ENCODED_NAME);
                state.count(if is_meta { "Meta" } else { "ScanOpen" });
                let rows = if is_meta { state.meta_rows(&self.ports) } else { state.rows.clone() };
                let region = if is_meta { RegionInfo::meta() } else { state.region(specifier, self.at)? };
                let cursor = state.cursor(&rows, &region, &from_proto::scan(scan)?);
                (LAST_ID.fetch_add(1, Ordering::Relaxed), cursor)
            }
            (None, None) => return Err(JavaException::do_not_retry("neither")),
        };
        if cursor.region != cell::region::META_ENCODED_NAME {
            state.fault("Scan")?;
        }
        if request.close_scanner() && request.scanner_id.is_some() {
            return Ok(reply(ScanResponse { scanner_id: Some(id), ..Default::default() }, Bytes::new()));
        }
        let mut response = ScanResponse { scanner_id: Some(id), ..Default::default() };
        // A random number up to the limit. If it is 0, the response is a heartbeat.
        let cells_max = match state.cells_max {
            _ if !request.client_handles_partials() => usize::MAX,
            usize::MAX => usize::MAX,
            limit => state.roll() as usize % (limit + 1),
        };
        let found = fill(&mut response, &mut cursor, &request, cells_max);
        let enough =
            request.limit_of_rows() > 0 && complete_rows(&response) >= request.limit_of_rows() as usize;
        response.more_results = Some(!enough);
        response.more_results_in_region = Some(!cursor.rest.is_empty());
        response.heartbeat_message = found.is_empty().then_some(true);
        if !enough && !cursor.rest.is_empty() && !request.close_scanner() {
            state.scanners.insert(id, cursor);
        }
        Ok(reply(response, encode(&found)))
    }
}

/// Number of complete rows in a response.
fn complete_rows(response: &ScanResponse) -> usize {
    response.partial_flag_per_result.iter().filter(|partial| !**partial).count()
}

/// Takes up to `cells_max` cells off a cursor, as rows, batches, and parts at the limit.
fn fill(
    response: &mut ScanResponse,
    cursor: &mut Cursor,
    request: &ScanRequest,
    cells_max: usize,
) -> Vec<KeyValue> {
    let mut found = Vec::new();
    let rows_max = request.number_of_rows.unwrap_or(1) as usize;
    while response.cells_per_result.len() < rows_max {
        let limit = request.limit_of_rows() as usize;
        if limit > 0 && complete_rows(response) >= limit {
            break;
        }
        let room = cells_max - found.len();
        let Some(row) = cursor.rest.front_mut() else { break };
        let batch = if cursor.batch > 0 { cursor.batch } else { usize::MAX };
        let len = row.len().min(batch).min(room);
        if len == 0 {
            break;
        }
        found.extend(row.drain(..len));
        let partial = !row.is_empty();
        if !partial {
            cursor.rest.pop_front();
        }
        response.cells_per_result.push(len as u32);
        response.partial_flag_per_result.push(partial);
    }
    found
}

fn encode(cells: &[KeyValue]) -> Bytes {
    let mut out = BytesMut::new();
    cells.iter().for_each(|cell| Codec::KeyValue.write(&cell.view(0), &mut out));
    out.freeze()
}

pub(super) fn reply(message: impl Message, cells: Bytes) -> Reply {
    Reply { message: message.encode_to_vec().into(), cells: cells.into() }
}
