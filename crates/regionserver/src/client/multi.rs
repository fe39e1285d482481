//! `Multi`: reads and changes of rows of several regions, each answered for itself.
//!
//! As in HBase, the reads of a region come before its changes, and all changes of a region are one batch. The request's
//! cells belong to its changes in order, so those of a change that is not carried out are passed over too.

use bytes::Bytes;
use cell::codec::CellBlockReader;
use cell::mutation::Mutation;
use engine::Region;
use rpc::CellBlock;
use wire::convert::from_proto;
use wire::exception::{Answer, JavaException, class};

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
    from_proto::refuse_condition(request.condition.as_ref())?;
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
    for action in &request.region_action {
        let result = answer.region_action(server, action).await;
        if result.processed == Some(true) {
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
    ) -> proto::RegionActionResult {
        let found = server.regions().find(&action.region.value).and_then(|region| {
            from_proto::refuse_condition(action.condition.as_ref())?;
            Ok(region)
        });
        let outcome = match found {
            Ok(region) if action.atomic() => self.atomic(&region, action).await,
            Ok(region) => return self.each(&region, action).await,
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

    /// All changes or none, of one row.
    async fn atomic(
        &mut self,
        region: &Region,
        action: &proto::RegionAction,
    ) -> Answer<proto::RegionActionResult> {
        // All are converted before the first error counts, so that every action's cells are taken.
        let mutations: Vec<_> = action.action.iter().map(|action| self.mutation(action)).collect();
        let mutations = mutations.into_iter().collect::<Answer<Vec<_>>>()?;
        if mutations.windows(2).any(|pair| pair[0].row != pair[1].row) {
            return Err(JavaException::do_not_retry("All rows of an atomic batch must be the same"));
        }
        region.batch_atomic(mutations).await.map_err(|error| java_exception(&error))?;
        let entry = |index| proto::ResultOrException {
            index: Some(index as u32),
            result: Some(proto::Result::default()),
            ..proto::ResultOrException::default()
        };
        Ok(proto::RegionActionResult {
            result_or_exception: (0..action.action.len()).map(entry).collect(),
            processed: Some(true),
            ..proto::RegionActionResult::default()
        })
    }

    /// Each action for itself: reads at once, changes together at the end.
    async fn each(&mut self, region: &Region, action: &proto::RegionAction) -> proto::RegionActionResult {
        let mut entries = Vec::with_capacity(action.action.len());
        let mut batch = Vec::new();
        let mut batch_indexes = Vec::new();
        for (position, action) in action.action.iter().enumerate() {
            let index = action.index.unwrap_or(position as u32);
            if let Some(get) = &action.get {
                entries.push(entry(index, self.get(region, get).await));
                continue;
            }
            match self.mutation(action) {
                Ok(mutation) => {
                    batch.push(mutation);
                    batch_indexes.push(index);
                }
                Err(exception) => entries.push(entry(index, Err(exception))),
            }
        }
        if !batch.is_empty() {
            let outcomes = region.batch(batch).await;
            entries.extend(batch_indexes.into_iter().zip(outcomes).map(|(index, outcome)| {
                entry(
                    index,
                    outcome.map(|()| proto::Result::default()).map_err(|error| java_exception(&error)),
                )
            }));
        }
        proto::RegionActionResult { result_or_exception: entries, ..proto::RegionActionResult::default() }
    }

    async fn get(&mut self, region: &Region, get: &proto::Get) -> Answer<proto::Result> {
        if self.block.len() as u64 >= self.bytes_max {
            let message = format!("Max result size exceeded: {} bytes", self.bytes_max);
            return Err(JavaException::new(class::MULTI_ACTION_RESULT_TOO_LARGE, message));
        }
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

fn entry(index: u32, outcome: Answer<proto::Result>) -> proto::ResultOrException {
    let (result, exception) = match outcome {
        Ok(result) => (Some(result), None),
        Err(exception) => (None, Some((&exception).into())),
    };
    proto::ResultOrException { index: Some(index), result, exception, ..proto::ResultOrException::default() }
}
