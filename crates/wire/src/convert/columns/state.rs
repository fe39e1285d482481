//! Groups and their aggregate states, as messages of `ColumnService`.

use bytes::Bytes;
use columnar::aggregate::{Distinct, Moments, Quantiles};
use columnar::{Aggregate, Function, Partial, State, Value};
use proto::grampus;

use super::{value, value_message};
use crate::convert::Refused;

/// Encodes a group as its message.
pub fn group_message(key: &[Value], states: &[State]) -> grampus::Group {
    grampus::Group {
        key: key.iter().map(value_message).collect(),
        state: states.iter().map(state_message).collect(),
    }
}

/// Decodes the groups of a response, given the aggregates that were requested.
///
/// # Errors
/// [`Refused::Malformed`] if a value or the number of states is invalid.
pub fn partial(groups: &[grampus::Group], aggregates: &[Aggregate]) -> Result<Partial, Refused> {
    let group = |group: &grampus::Group| {
        if group.state.len() != aggregates.len() {
            return Err(Refused::malformed(
                "a group's number of states differs from the number of aggregates",
            ));
        }
        let key = group.key.iter().map(value).collect::<Result<_, _>>()?;
        let states = group.state.iter().zip(aggregates).map(|(state, aggregate)| state_of(state, aggregate));
        Ok((key, states.collect::<Result<_, _>>()?))
    };
    Ok(Partial { groups: groups.iter().map(group).collect::<Result<_, _>>()? })
}

fn state_message(state: &State) -> grampus::State {
    let mut message = grampus::State::default();
    match state {
        State::Count(count) => message.count = Some(*count),
        State::Sum(count, sum) => {
            message.count = Some(*count);
            message.value = Some(value_message(sum));
        }
        State::Min(value) | State::Max(value) => message.value = Some(value_message(value)),
        State::Variance(moments) => {
            message.count = Some(moments.count);
            message.mean = Some(moments.mean);
            message.squares = Some(moments.squares);
        }
        State::Distinct(Distinct::Sparse(list)) => {
            let pair = |(index, rank): &(u16, u8)| [index.to_be_bytes()[0], index.to_be_bytes()[1], *rank];
            message.registers_sparse = Some(list.iter().flat_map(pair).collect::<Vec<u8>>().into());
        }
        State::Distinct(Distinct::Dense(registers)) => {
            message.registers = Some(Bytes::copy_from_slice(&registers[..]));
        }
        State::Quantiles(quantiles) => {
            (message.bucket, message.bucket_count) = quantiles.buckets().unzip();
        }
    }
    message
}

fn state_of(message: &grampus::State, aggregate: &Aggregate) -> Result<State, Refused> {
    let found = || message.value.as_ref().map_or(Ok(Value::Null), value);
    Ok(match aggregate.function {
        Function::Count => State::Count(message.count()),
        Function::Sum | Function::Average => State::Sum(message.count(), found()?),
        Function::Min => State::Min(found()?),
        Function::Max => State::Max(found()?),
        Function::Variance => State::Variance(Moments {
            count: message.count(),
            mean: message.mean(),
            squares: message.squares(),
        }),
        Function::Distinct => State::Distinct(distinct(message)),
        Function::Quantiles => {
            let mut quantiles = Quantiles::default();
            let buckets = message.bucket.iter().zip(&message.bucket_count);
            buckets.for_each(|(bucket, count)| quantiles.add_to(*bucket, *count));
            State::Quantiles(quantiles)
        }
    })
}

fn distinct(message: &grampus::State) -> Distinct {
    let mut distinct = Distinct::default();
    for pair in message.registers_sparse().chunks_exact(3) {
        distinct.raise_register(u16::from_be_bytes([pair[0], pair[1]]), pair[2]);
    }
    let registers = message.registers().iter().enumerate().filter(|(_, rank)| **rank > 0);
    registers.for_each(|(index, rank)| distinct.raise_register(index as u16, *rank));
    distinct
}
