//! A door for the fuzzer to decimal numbers: whatever cells hold is computed with or refused.

use super::big_decimal::BigDecimal;
use super::interpreter::Interpreter;

/// Reads two values of cells, and computes with them if both are numbers.
pub fn decimals(left: &[u8], right: &[u8]) {
    let (Ok(Some(left)), Ok(Some(right))) = (BigDecimal::read(left), BigDecimal::read(right)) else { return };
    assert_eq!(BigDecimal::read(&left.to_bytes()), Ok(Some(left.clone())), "what is written is read again");
    let sum = BigDecimal::add(&left, &right);
    assert_eq!(sum, BigDecimal::add(&right, &left));
    assert_eq!(BigDecimal::multiply(&left, &right), BigDecimal::multiply(&right, &left));
    assert_eq!(BigDecimal::compare(&left, &right), BigDecimal::compare(&right, &left).reverse());
    let (of_sums, of_numbers) =
        (BigDecimal::compare(&sum, &BigDecimal::add(&right, &right)), BigDecimal::compare(&left, &right));
    assert_eq!(of_sums, of_numbers, "adding the same keeps the order");
}
