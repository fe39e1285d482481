//! Changes of one row that are atomic, conditional, or return the new cells.
//!
//! A call whose response is lost is retried. The server recognizes repeated increments and appends
//! by their nonce, but no other changes. [`Table::check_and_mutate`] may therefore return `false`
//! because its own first attempt made the change. HBase's client does the same.

use bytes::Bytes;
use cell::condition::Condition;
use cell::mutation::Mutation;
use proto::exception::JavaException;
use proto::{MultiRequest, MultiResponse, MutateRequest, MutateResponse, RegionAction};
use rpc::CellBlock;
use wire::convert;

use crate::Table;
use crate::error::{Error, Result};
use crate::locations::Location;
use crate::message::{Cells, Row};

impl Table {
    /// Applies an increment or append with its own nonce; returns the new cells.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Connection`] or [`Error::Exhausted`] the change may have been
    /// applied. If it is sent again with the same nonce, it is applied only once.
    pub async fn change(&self, mutation: &Mutation) -> Result<Row> {
        let (response, cells) = self.mutate_on(None, mutation).await?;
        Cells::of(cells).row(&response.result.unwrap_or_default())
    }

    /// Applies puts and deletes to one row atomically.
    ///
    /// # Errors
    /// [`Error`], as [`Table::mutate`].
    pub async fn mutate_row(&self, mutations: &[Mutation]) -> Result<()> {
        self.change_row(None, mutations).await.map(drop)
    }

    /// Changes a row atomically if `condition` holds; returns whether it did.
    ///
    /// # Errors
    /// [`Error`], as [`Table::mutate`].
    pub async fn check_and_mutate(&self, condition: &Condition, mutations: &[Mutation]) -> Result<bool> {
        match mutations {
            // The message that HBase's clients send for a single mutation.
            [mutation] => Ok(self.mutate_on(Some(condition), mutation).await?.0.processed()),
            _ => self.change_row(Some(condition), mutations).await,
        }
    }

    /// Applies one mutation, optionally with a condition.
    pub(crate) async fn mutate_on(
        &self,
        condition: Option<&Condition>,
        mutation: &Mutation,
    ) -> Result<(MutateResponse, Bytes)> {
        let mut cells = CellBlock::new();
        let message = convert::to_proto::mutation_in_block_of(self.client().codec(), mutation, cells.tail());
        let condition = condition.map(convert::to_proto::condition);
        let nonce_group = (mutation.nonce.1 != 0).then_some(mutation.nonce.0);
        let request = |location: &Location| MutateRequest {
            region: location.specifier(),
            mutation: message.clone(),
            condition: condition.clone(),
            nonce_group,
        };
        self.at_row(&mutation.row, "Mutate", cells, request).await
    }

    /// Applies mutations of one row atomically; returns whether they were applied.
    ///
    /// # Panics
    /// If there are no mutations.
    async fn change_row(&self, condition: Option<&Condition>, mutations: &[Mutation]) -> Result<bool> {
        let (mut cells, codec) = (CellBlock::new(), self.client().codec());
        let action = |(place, mutation): (usize, &Mutation)| proto::Action {
            index: Some(place as u32),
            mutation: Some(convert::to_proto::mutation_in_block_of(codec, mutation, cells.tail())),
            ..proto::Action::default()
        };
        let action: Vec<_> = mutations.iter().enumerate().map(action).collect();
        let condition = condition.map(convert::to_proto::condition);
        let request = |location: &Location| MultiRequest {
            region_action: vec![RegionAction {
                region: location.specifier(),
                atomic: Some(true),
                condition: condition.clone(),
                action: action.clone(),
            }],
            ..MultiRequest::default()
        };
        let row = &mutations.first().expect("a change has at least one mutation").row;
        self.at_row_until(row, "Multi", cells, request, |response, _| read(&response)).await
    }
}

/// Whether the only region action was applied.
fn read(response: &MultiResponse) -> Result<bool> {
    let [outcome] = &response.region_action_result[..] else {
        return Err(Error::Malformed("expected one result for one region action".into()));
    };
    let of_entries = outcome.result_or_exception.iter().find_map(|entry| entry.exception.as_ref());
    match outcome.exception.as_ref().or(of_entries) {
        Some(exception) => Err(JavaException::from_pair(exception).into()),
        None => Ok(outcome.processed()),
    }
}
