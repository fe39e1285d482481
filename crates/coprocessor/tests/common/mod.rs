//! A region with in-memory files, and its endpoints.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;

use base::budget::Budget;
use base::env::Env;
use bytes::Bytes;
use cell::cell::{CellType, KeyValue};
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Scan};
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use coprocessor::{Endpoints, Error};
use engine::budget::MemstoreBudget;
use engine::region::{NoMaintenance, RegionOptions};
use engine::scanner::BlockLoader;
use engine::{Opening, Region, RegionServices};
use fs::{FilePath, FileSystem};
use layout::RootDir;
use prost::Message;
use proto::exception::{Answer, JavaException};
use wal::{Log, LogOptions};

/// Package of the interpreters of HBase's client.
pub const INTERPRETERS: &str = "org.apache.hadoop.hbase.client.coprocessor.";

/// Budget for all responses.
pub const RESPONSE_BUDGET_BYTES: usize = 24 << 20;

pub struct World {
    pub env: Env,
    pub region: Arc<Region>,
    pub endpoints: Endpoints,
    pub response_budget: Arc<Budget>,
}

/// A region of a table with the family `f`, with three versions and small blocks.
pub async fn world(fs: Arc<dyn FileSystem>, env: Env) -> World {
    let root = RootDir::new(FilePath::root());
    let name = TableName::parse("t").unwrap();
    let info = RegionInfo::new(name.clone(), "".into(), "".into(), 1);
    let family = FamilyDescriptor::new("f").with("VERSIONS", "3").with("BLOCKSIZE", "1024");
    let table = Arc::new(TableDescriptor::new(name).with_family(family));
    root.write_region_info(&*fs, &info).await.unwrap();
    let options =
        LogOptions::new(root.wals_dir().join("host,16020,1"), "host%2C16020%2C1", root.old_wals_dir());
    let log = Log::start(env.clone(), fs.clone(), options, Arc::new(|_: &wal::Error| ())).await.unwrap();
    let services = RegionServices {
        env: env.clone(),
        fs: fs.clone(),
        root,
        tracker: Arc::new(layout::RenameTracker),
        log,
        loader: Arc::new(BlockLoader::new(1 << 20)),
        budget: Arc::new(MemstoreBudget::unlimited()),
        maintenance: Arc::new(NoMaintenance),
        mob: Arc::default(),
        options: Arc::new(RegionOptions::default()),
        instruments: Arc::new(engine::instruments::Instruments::begin(env.clock.monotonic())),
        nonces: Arc::default(),
        server: None,
    };
    let index = Arc::new(wal::recovery::scan(&*fs, &[]).await.unwrap());
    let entries = Box::new(wal::recovery::read_region(fs.clone(), index, &info.encoded_name()));
    let region = Region::open(services, Opening { info, table, entries }).await.unwrap();
    let response_budget = Budget::new(RESPONSE_BUDGET_BYTES);
    World { endpoints: Endpoints::new(env.clone(), response_budget.clone()), response_budget, env, region }
}

impl World {
    /// Puts cells into a row: qualifier, timestamp, value.
    pub async fn put(&self, row: &str, cells: &[(&str, i64, &[u8])]) {
        let key_value = |(qualifier, timestamp, value): &(&str, i64, &[u8])| {
            KeyValue::new(row.as_bytes(), b"f", qualifier.as_bytes(), *timestamp, CellType::Put, value)
        };
        self.change(Mutation::put(bytes(row), cells.iter().map(key_value).collect())).await;
    }

    /// Writes a delete marker.
    pub async fn delete(&self, row: &str, qualifier: &str, timestamp: i64, kind: CellType) {
        let marker = KeyValue::new(row.as_bytes(), b"f", qualifier.as_bytes(), timestamp, kind, b"");
        self.change(Mutation::delete(bytes(row), vec![marker])).await;
    }

    async fn change(&self, mutation: Mutation) {
        self.region.batch(vec![mutation]).await.remove(0).unwrap();
    }

    /// Calls AggregateService with an interpreter of HBase's client.
    pub async fn query(
        &self,
        method: &str,
        interpreter: &str,
        scan: &Scan,
    ) -> Answer<proto::AggregateResponse> {
        self.query_with(method, &request(interpreter, scan).encode_to_vec()).await
    }

    /// Calls AggregateService with any request bytes.
    pub async fn query_with(&self, method: &str, request: &[u8]) -> Answer<proto::AggregateResponse> {
        let response = self.call("AggregateService", method, request).await?;
        Ok(proto::AggregateResponse::decode(&response[..]).expect("a response of the service"))
    }

    /// Calls a service; returns the bytes of the response.
    pub async fn call(&self, service: &str, method: &str, request: &[u8]) -> Answer<Vec<u8>> {
        let response = self.endpoints.call(&self.region, &call(service, method, request), None).await;
        response.map(|response| response.message).map_err(refused)
    }
}

/// A call of a service.
pub fn call(service: &str, method: &str, request: &[u8]) -> proto::CoprocessorServiceCall {
    proto::CoprocessorServiceCall {
        row: Bytes::new(),
        service_name: service.into(),
        method_name: method.into(),
        request: Bytes::copy_from_slice(request),
    }
}

/// A request with a scan and an interpreter of HBase's client.
pub fn request(interpreter: &str, scan: &Scan) -> proto::AggregateRequest {
    proto::AggregateRequest {
        interpreter_class_name: format!("{INTERPRETERS}{interpreter}ColumnInterpreter"),
        scan: wire::convert::to_proto::scan(scan),
        interpreter_specific_bytes: Some(Bytes::new()),
    }
}

/// The exception that the endpoint itself returned.
pub fn refused(error: Error) -> JavaException {
    match error {
        Error::Refused(exception) => exception,
        Error::Region(error) => panic!("error of the region: {error}"),
    }
}

/// A scan of one column over all rows.
pub fn column(qualifier: &str) -> Scan {
    let columns = vec![FamilyColumns { family: "f".into(), qualifiers: Some(vec![bytes(qualifier)]) }];
    Scan { selection: CellSelection { columns, ..CellSelection::default() }, ..Scan::default() }
}

pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Runs `test` on a runtime with paused time, which advances only when all tasks wait.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}
