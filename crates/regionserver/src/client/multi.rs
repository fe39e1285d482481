//! `Multi`: reads and changes of rows of several regions, each answered for itself.
//!
//! Actions of a region go one by one, except that puts and deletes are gathered into one batch, as in HBase; it is carried
//! out before the next increment or append, or at the end. An atomic region action, or one with a condition, is one
//! change of one row. The request's cells belong to its changes in order, so those of a change that is not carried out
//! are passed over too.

use bytes::Bytes;
use cell::KeyValue;
use cell::codec::CellBlockReader;
use cell::mutation::Mutation;
use engine::Region;
use rpc::CellBlock;
use tracing::warn;
use wire::convert::from_proto;
use wire::exception::{Answer, JavaException, class};

use super::results::{ResultForm, Results};
use super::{Answered, CallContext, get};
use crate::errors::java_exception;
use crate::server::RegionServer;

/// Answers a `Multi`.
pub(super) async fn multi(
    server: &RegionServer,
    request: &proto::MultiRequest,
    cells: Bytes,
    context: CallContext,
) -> Answer<Answered<proto::MultiResponse>> {
    check_rows(server, request)?;
    let mut answer = Answering {
        context,
        bytes_max: server.options().result_bytes_max,
        nonce_group: request.nonce_group(),
        cells: context.codec.read(cells),
        block: CellBlock::new(),
    };
    let mut response = proto::MultiResponse {
        region_statistics: Some(proto::MultiRegionLoadStats::default()),
        ..proto::MultiResponse::default()
    };
    if let (Some(condition), [only]) = (&request.condition, &request.region_action[..]) {
        // How clients before 2.4 say it; they look at the whole answer only.
        let result = answer.region_action(server, only, Some(condition)).await;
        response.processed = result.processed;
        response.region_action_result.push(result);
        return Ok((response, answer.block));
    }
    if request.condition.is_some() {
        return Err(JavaException::do_not_retry("a condition for several regions"));
    }
    for action in &request.region_action {
        let result = answer.region_action(server, action, action.condition.as_ref()).await;
        // For old clients; newer ones look at each region's.
        if action.condition.is_none() && result.processed == Some(true) {
            response.processed = Some(true);
        }
        response.region_action_result.push(result);
    }
    Ok((response, answer.block))
}

/// The answer as it grows.
struct Answering {
    context: CallContext,
    bytes_max: u64,
    nonce_group: u64,
    cells: CellBlockReader,
    block: CellBlock,
}

impl Answering {
    async fn region_action(
        &mut self,
        server: &RegionServer,
        action: &proto::RegionAction,
        condition: Option<&proto::Condition>,
    ) -> proto::RegionActionResult {
        let outcome = match server.regions().find(&action.region.value) {
            Ok(region) if action.atomic() || condition.is_some() => {
                self.atomic(&region, &action.action, condition).await
            }
            Ok(region) => Ok(self.each(&region, &action.action).await),
            Err(exception) => {
                self.pass_over(&action.action);
                Err(exception)
            }
        };
        outcome.unwrap_or_else(|exception| proto::RegionActionResult {
            exception: Some((&exception).into()),
            ..proto::RegionActionResult::default()
        })
    }

    /// All changes of one row or none, perhaps on a condition. What increments and appends tell is in the first entry.
    async fn atomic(
        &mut self,
        region: &Region,
        actions: &[proto::Action],
        condition: Option<&proto::Condition>,
    ) -> Answer<proto::RegionActionResult> {
        // All are converted before the first error counts, so that every action's cells are taken.
        let mutations: Vec<_> = actions.iter().map(|action| self.atomic_mutation(action)).collect();
        let mutations = mutations.into_iter().collect::<Answer<Vec<_>>>()?;
        let checked = condition.map(from_proto::condition).transpose()?;
        let changed = region.change(checked.as_ref(), mutations).await;
        let changed = changed.map_err(|error| java_exception(&error))?;
        let told: Vec<Vec<KeyValue>> = changed.results.into_iter().flatten().collect();
        let mut first = (!told.is_empty()).then(|| {
            let results = Results::new(ResultForm::Inline, &mut self.block);
            results.single_of(&told.concat())
        });
        // Without a condition every entry has a result, be it empty.
        let empty = || condition.is_none().then(proto::Result::default);
        let entry = |index| proto::ResultOrException {
            index: Some(index as u32),
            result: first.take().or_else(empty),
            ..proto::ResultOrException::default()
        };
        Ok(proto::RegionActionResult {
            result_or_exception: (0..actions.len()).map(entry).collect(),
            processed: Some(changed.matched),
            ..proto::RegionActionResult::default()
        })
    }

    fn atomic_mutation(&mut self, action: &proto::Action) -> Answer<Mutation> {
        if action.get.is_some() {
            return Err(JavaException::do_not_retry("Atomic put and/or delete only, not a Get"));
        }
        self.mutation(action)
    }

    /// Each action for itself.
    async fn each(&mut self, region: &Region, actions: &[proto::Action]) -> proto::RegionActionResult {
        let mut entries = Vec::with_capacity(actions.len());
        let mut batch = Gathered::default();
        for (position, action) in actions.iter().enumerate() {
            let index = action.index.unwrap_or(position as u32);
            if let Some(get) = &action.get {
                entries.push(entry(index, self.get(region, get).await));
                continue;
            }
            match self.mutation(action) {
                Ok(mutation) if mutation.kind.reads() => {
                    entries.extend(batch.carry_out(region).await);
                    entries.push(entry(index, self.change(region, mutation).await));
                }
                Ok(mutation) => batch.add(index, mutation),
                Err(exception) => entries.push(entry(index, Err(exception))),
            }
        }
        entries.extend(batch.carry_out(region).await);
        proto::RegionActionResult { result_or_exception: entries, ..proto::RegionActionResult::default() }
    }

    /// An increment or append.
    async fn change(&mut self, region: &Region, mutation: Mutation) -> Answer<proto::Result> {
        self.check_room()?;
        let changed = region.change(None, vec![mutation]).await.map_err(|error| java_exception(&error))?;
        let told: Vec<KeyValue> = changed.results.into_iter().flatten().flatten().collect();
        Ok(Results::new(self.context.form, &mut self.block).single_of(&told))
    }

    /// Whether the answer may grow.
    fn check_room(&self) -> Answer<()> {
        if self.block.len() as u64 >= self.bytes_max {
            let message = format!("Max result size exceeded: {} bytes", self.bytes_max);
            return Err(JavaException::new(class::MULTI_ACTION_RESULT_TOO_LARGE, message));
        }
        Ok(())
    }

    async fn get(&mut self, region: &Region, get: &proto::Get) -> Answer<proto::Result> {
        self.check_room()?;
        get::read(region, get, self.context.form, &mut self.block).await
    }

    /// The change of an action, with its cells.
    fn mutation(&mut self, action: &proto::Action) -> Answer<Mutation> {
        if action.service_call.is_some() {
            return Err(JavaException::unsupported("coprocessor calls"));
        }
        let mutation = action
            .mutation
            .as_ref()
            .ok_or_else(|| JavaException::do_not_retry("Action without a Get or a mutation"))?;
        Ok(from_proto::mutation(mutation, &mut self.cells, self.nonce_group)?)
    }

    fn pass_over(&mut self, actions: &[proto::Action]) {
        for action in actions {
            from_proto::skip_action(action, &mut self.cells);
        }
    }
}

/// Puts and deletes of a region that are carried out together.
#[derive(Default)]
struct Gathered {
    indexes: Vec<u32>,
    mutations: Vec<Mutation>,
}

impl Gathered {
    fn add(&mut self, index: u32, mutation: Mutation) {
        self.indexes.push(index);
        self.mutations.push(mutation);
    }

    /// Carries out what was gathered, and gives an entry for each.
    async fn carry_out(&mut self, region: &Region) -> Vec<proto::ResultOrException> {
        if self.mutations.is_empty() {
            return Vec::new();
        }
        let (indexes, mutations) = (std::mem::take(&mut self.indexes), std::mem::take(&mut self.mutations));
        let outcomes = region.batch(mutations).await;
        let entries = indexes.into_iter().zip(outcomes).map(|(index, outcome)| {
            let outcome = outcome.map(|()| proto::Result::default());
            entry(index, outcome.map_err(|error| java_exception(&error)))
        });
        entries.collect()
    }
}

/// Warns of a request for very many rows, or refuses it, as the options say.
fn check_rows(server: &RegionServer, request: &proto::MultiRequest) -> Answer<()> {
    let rows: usize = request.region_action.iter().map(|action| action.action.len()).sum();
    let limit = server.options().batch_rows_warning;
    if rows <= limit as usize {
        return Ok(());
    }
    let first = request.region_action.first().map_or(&b""[..], |action| &action.region.value);
    let first = first.escape_ascii();
    warn!(rows, limit, region = %first, "a batch of more rows than is good for latency");
    if !server.options().rejects_large_batches {
        return Ok(());
    }
    Err(JavaException::io(format!(
        "Rejecting large batch operation for current batch with firstRegionName: {first} , Requested Number of Rows: \
         {rows} , Size Threshold: {limit}"
    )))
}

fn entry(index: u32, outcome: Answer<proto::Result>) -> proto::ResultOrException {
    let (result, exception) = match outcome {
        Ok(result) => (Some(result), None),
        Err(exception) => (None, Some((&exception).into())),
    };
    proto::ResultOrException { index: Some(index), result, exception, ..proto::ResultOrException::default() }
}
