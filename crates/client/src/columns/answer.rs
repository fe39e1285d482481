//! What the endpoint answers, in the words of `columnar`.

use columnar::aggregate::{Distinct, Moments, Quantiles};
use columnar::{Partial, State, Value};
use proto::grampus::aggregate::Function;
use proto::grampus::{self as message, AggregateResponse};

use crate::error::{Error, Result};

/// Bytes of a decimal's number at most.
const DECIMAL_LEN_MAX: usize = size_of::<i128>();
/// Bytes of a register in the list of few: its place, and itself.
const SPARSE_LEN: usize = 3;

/// Groups of an answer to a call for `functions`.
pub(super) fn partial(answer: AggregateResponse, functions: &[Function]) -> Result<Partial> {
    let group = |group: message::Group| {
        if group.state.len() != functions.len() {
            return Err(malformed(format!("{} states for {} aggregates", group.state.len(), functions.len())));
        }
        let key = group.key.iter().map(value).collect::<Result<Vec<Value>>>()?;
        let states = group.state.iter().zip(functions).map(|(state, function)| self::state(state, *function));
        Ok((key, states.collect::<Result<Vec<State>>>()?))
    };
    Ok(Partial { groups: answer.group.into_iter().map(group).collect::<Result<_>>()? })
}

/// A value.
///
/// # Errors
/// [`Error::Malformed`]: a decimal of more than 38 digits.
pub fn value(message: &message::Value) -> Result<Value> {
    Ok(match message {
        message::Value { whole: Some(whole), .. } => Value::Whole(*whole),
        message::Value { real: Some(real), .. } => Value::Real(*real),
        message::Value { decimal: Some(bytes), .. } => Value::Decimal(decimal(bytes)?),
        message::Value { raw: Some(raw), .. } => Value::Raw(raw.clone()),
        _ => Value::Null,
    })
}

/// An unscaled number: big endian, two's complement, as short as it may be.
///
/// # Errors
/// [`Error::Malformed`], if it has more than 128 bits.
pub fn decimal(bytes: &[u8]) -> Result<i128> {
    if bytes.len() > DECIMAL_LEN_MAX {
        return Err(malformed(format!("a decimal of {} bytes", bytes.len())));
    }
    let is_negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut whole = [if is_negative { 0xff } else { 0 }; DECIMAL_LEN_MAX];
    whole[DECIMAL_LEN_MAX - bytes.len()..].copy_from_slice(bytes);
    Ok(i128::from_be_bytes(whole))
}

fn state(state: &message::State, function: Function) -> Result<State> {
    let count = state.count.unwrap_or(0);
    let own_value = || state.value.as_ref().map_or(Ok(Value::Null), value);
    Ok(match function {
        Function::Count => State::Count(count),
        Function::Sum | Function::Average => State::Sum(count, sum(own_value()?)?),
        Function::Min => State::Min(own_value()?),
        Function::Max => State::Max(own_value()?),
        Function::Variance => State::Variance(Moments {
            count,
            mean: state.mean.unwrap_or(0.0),
            squares: state.squares.unwrap_or(0.0),
        }),
        Function::Distinct => State::Distinct(distinct(state)?),
        Function::Quantiles => State::Quantiles(quantiles(state)?),
    })
}

/// Sums of whole numbers are of as many digits as those of decimals.
fn sum(value: Value) -> Result<Value> {
    match value {
        Value::Null => Ok(Value::Decimal(0)),
        Value::Whole(whole) => Ok(Value::Decimal(whole.into())),
        Value::Raw(_) => Err(malformed("a sum is of bytes".into())),
        number => Ok(number),
    }
}

fn distinct(state: &message::State) -> Result<Distinct> {
    let mut distinct = Distinct::default();
    let dense = state.registers.iter().flatten().enumerate().filter(|(_, rank)| **rank > 0);
    for (index, rank) in dense {
        let index = u16::try_from(index).map_err(|_| malformed("too many registers".into()))?;
        distinct.raise(index, *rank);
    }
    let sparse = state.registers_sparse.as_deref().unwrap_or_default();
    if sparse.len() % SPARSE_LEN != 0 {
        return Err(malformed("a register is cut off".into()));
    }
    for register in sparse.chunks_exact(SPARSE_LEN) {
        distinct.raise(u16::from_be_bytes([register[0], register[1]]), register[2]);
    }
    Ok(distinct)
}

fn quantiles(state: &message::State) -> Result<Quantiles> {
    if state.bucket.len() != state.bucket_count.len() {
        return Err(malformed("buckets without counts".into()));
    }
    let mut quantiles = Quantiles::default();
    state.bucket.iter().zip(&state.bucket_count).for_each(|(bucket, count)| quantiles.add_to(*bucket, *count));
    Ok(quantiles)
}

fn malformed(what: String) -> Error {
    Error::Malformed(format!("of the columns' endpoint: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_as_short_as_they_may_be() {
        for (bytes, number) in [
            (&[][..], 0),
            (&[0x00], 0),
            (&[0xff], -1),
            (&[0x00, 0xff], 255),
            (&[0x80, 0x00], -32_768),
            (&i128::MIN.to_be_bytes(), i128::MIN),
        ] {
            assert_eq!(decimal(bytes).unwrap(), number);
        }
        assert!(decimal(&[0; 17]).is_err());
    }

    #[test]
    fn states_are_read_by_their_functions() {
        let number = |whole: i64| Some(message::Value { whole: Some(whole), ..Default::default() });
        let sum = message::State { count: Some(2), value: number(7), ..Default::default() };
        assert_eq!(state(&sum, Function::Sum).unwrap(), State::Sum(2, Value::Decimal(7)));
        assert_eq!(state(&sum, Function::Min).unwrap(), State::Min(Value::Whole(7)));
        assert_eq!(state(&sum, Function::Count).unwrap(), State::Count(2));
        let none = message::State::default();
        assert_eq!(state(&none, Function::Sum).unwrap(), State::Sum(0, Value::Decimal(0)));
        let few = message::State {
            registers_sparse: Some(vec![0x01, 0x02, 9, 0x00, 0x03, 4].into()),
            ..Default::default()
        };
        let State::Distinct(distinct) = state(&few, Function::Distinct).unwrap() else { panic!("another state") };
        assert_eq!(distinct, Distinct::Few(vec![(3, 4), (0x102, 9)]));
        let cut = message::State { registers_sparse: Some(vec![1, 2].into()), ..Default::default() };
        assert!(state(&cut, Function::Distinct).is_err());
    }

    #[test]
    fn an_answer_has_a_state_for_each_aggregate() {
        let answer = || AggregateResponse {
            group: vec![message::Group { key: vec![], state: vec![message::State::default()] }],
            ..Default::default()
        };
        assert!(partial(answer(), &[Function::Count]).is_ok());
        assert!(partial(answer(), &[Function::Count, Function::Sum]).is_err());
    }
}
