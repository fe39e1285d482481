//! Arbitrary-precision integers, with only the operations that sums and products of decimals need.
//!
//! Most numbers fit in 128 bits and are computed as such. Others are magnitudes in 32-bit limbs.
//! The representation is unique: a number is large only if it does not fit in 128 bits.

use std::cmp::Ordering;

/// The greatest power of ten that fits in a limb, and its exponent.
const LIMB_POWER: u32 = 1_000_000_000;
const LIMB_DIGITS: u64 = 9;

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Integer {
    Small(i128),
    Large(Large),
}

/// A number that does not fit in 128 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Large {
    negative: bool,
    // The magnitude, least significant limb first, without trailing zeros.
    limbs: Vec<u32>,
}

impl Integer {
    /// Decodes big-endian two's complement of any length. Empty input is zero.
    pub(super) fn from_bytes(bytes: &[u8]) -> Integer {
        let fill = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
        if bytes.len() <= size_of::<i128>() {
            let mut wide = [fill; size_of::<i128>()];
            wide[size_of::<i128>() - bytes.len()..].copy_from_slice(bytes);
            return Integer::Small(i128::from_be_bytes(wide));
        }
        let mut limbs: Vec<u32> = bytes
            .rchunks(4)
            .map(|chunk| {
                let mut limb = [fill; 4];
                limb[4 - chunk.len()..].copy_from_slice(chunk);
                u32::from_be_bytes(limb)
            })
            .collect();
        if fill != 0 {
            negate(&mut limbs);
        }
        Integer::of(fill != 0, limbs)
    }

    /// Encodes in big-endian two's complement with the fewest bytes; at least one.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let bytes: Vec<u8> = match self {
            Integer::Small(number) => number.to_be_bytes().to_vec(),
            Integer::Large(large) => {
                // An extra limb, so that the sign bit fits.
                let mut limbs = [&large.limbs[..], &[0]].concat();
                if large.negative {
                    negate(&mut limbs);
                }
                limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect()
            }
        };
        let is_redundant = |pair: &[u8]| matches!((pair[0], pair[1] & 0x80), (0, 0) | (0xff, 0x80));
        let start = bytes.windows(2).take_while(|pair| is_redundant(pair)).count();
        bytes[start..].to_vec()
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == Integer::Small(0)
    }

    /// Lower and upper bound of the number of decimal digits.
    pub(super) fn digits(&self) -> (u64, u64) {
        let bits = match self {
            Integer::Small(number) => u64::from(128 - number.unsigned_abs().leading_zeros()),
            Integer::Large(large) => {
                let last = large.limbs.last().expect("large numbers have limbs");
                large.limbs.len() as u64 * 32 - u64::from(last.leading_zeros())
            }
        };
        // log10(2) is between 0.30102 and 0.30103.
        (bits.saturating_sub(1) * 30102 / 100_000 + 1, bits * 30103 / 100_000 + 1)
    }

    pub(super) fn add(&self, other: &Integer) -> Integer {
        if let (Integer::Small(left), Integer::Small(right)) = (self, other)
            && let Some(sum) = left.checked_add(*right)
        {
            return Integer::Small(sum);
        }
        let (left, right) = (self.magnitude(), other.magnitude());
        if self.is_negative() == other.is_negative() {
            return Integer::of(self.is_negative(), sum(&left, &right));
        }
        match compare_limbs(&left, &right) {
            Ordering::Less => Integer::of(other.is_negative(), difference(&right, &left)),
            _ => Integer::of(self.is_negative(), difference(&left, &right)),
        }
    }

    pub(super) fn multiply(&self, other: &Integer) -> Integer {
        if let (Integer::Small(left), Integer::Small(right)) = (self, other)
            && let Some(product) = left.checked_mul(*right)
        {
            return Integer::Small(product);
        }
        Integer::of(self.is_negative() != other.is_negative(), product(&self.magnitude(), &other.magnitude()))
    }

    /// Multiplies by `10^exponent`.
    pub(super) fn scale_up(&self, exponent: u64) -> Integer {
        let mut scaled = self.clone();
        for_limbs(exponent, |power| scaled = scaled.multiply(&Integer::Small(i128::from(power))));
        scaled
    }

    /// Divides by `10^exponent`, rounding half to even.
    pub(super) fn scale_down(&self, exponent: u64) -> Integer {
        let Some(but_one) = exponent.checked_sub(1) else { return self.clone() };
        let mut limbs = self.magnitude();
        let mut has_rest = false;
        for_limbs(but_one, |power| has_rest |= divide(&mut limbs, power) != 0);
        let digit = divide(&mut limbs, 10);
        let is_odd = limbs.first().is_some_and(|limb| limb % 2 == 1);
        if digit > 5 || (digit == 5 && (has_rest || is_odd)) {
            limbs = sum(&limbs, &[1]);
        }
        Integer::of(self.is_negative(), limbs)
    }

    fn of(negative: bool, mut limbs: Vec<u32>) -> Integer {
        let used = limbs.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1);
        limbs.truncate(used);
        // The magnitude of `i128::MIN` does not fit in a positive `i128`.
        let fits = |magnitude: u128| match negative {
            false => i128::try_from(magnitude).ok(),
            true => 0i128.checked_sub_unsigned(magnitude),
        };
        let small = (limbs.len() <= 4)
            .then(|| limbs.iter().rev().fold(0u128, |magnitude, limb| magnitude << 32 | u128::from(*limb)));
        match small.and_then(fits) {
            Some(small) => Integer::Small(small),
            None => Integer::Large(Large { negative, limbs }),
        }
    }

    fn is_negative(&self) -> bool {
        match self {
            Integer::Small(number) => *number < 0,
            Integer::Large(large) => large.negative,
        }
    }

    fn magnitude(&self) -> Vec<u32> {
        match self {
            Integer::Small(number) => {
                let magnitude = number.unsigned_abs();
                (0..4).map(|at| (magnitude >> (32 * at)) as u32).collect()
            }
            Integer::Large(large) => large.limbs.clone(),
        }
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Integer) -> Ordering {
        match (self, other) {
            (Integer::Small(left), Integer::Small(right)) => left.cmp(right),
            _ => match (self.is_negative(), other.is_negative()) {
                (false, false) => compare_limbs(&self.magnitude(), &other.magnitude()),
                (true, true) => compare_limbs(&other.magnitude(), &self.magnitude()),
                (left, right) => right.cmp(&left),
            },
        }
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Integer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Calls `work` with powers of ten whose product is `10^exponent`.
fn for_limbs(exponent: u64, mut work: impl FnMut(u32)) {
    (0..exponent / LIMB_DIGITS).for_each(|_| work(LIMB_POWER));
    match (exponent % LIMB_DIGITS) as u32 {
        0 => {}
        rest => work(10u32.pow(rest)),
    }
}

fn negate(limbs: &mut [u32]) {
    let mut carry = true;
    for limb in limbs {
        (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
    }
}

/// Compares magnitudes, which may have trailing zeros.
fn compare_limbs(left: &[u32], right: &[u32]) -> Ordering {
    let longer = left.len().max(right.len());
    let limb = |limbs: &[u32], at: usize| limbs.get(at).copied().unwrap_or(0);
    (0..longer)
        .rev()
        .map(|at| limb(left, at).cmp(&limb(right, at)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn sum(left: &[u32], right: &[u32]) -> Vec<u32> {
    let (longer, shorter) = if left.len() < right.len() { (right, left) } else { (left, right) };
    let mut sum = Vec::with_capacity(longer.len() + 1);
    let mut carry = 0u64;
    for (at, limb) in longer.iter().enumerate() {
        carry += u64::from(*limb) + shorter.get(at).map_or(0, |limb| u64::from(*limb));
        sum.push(carry as u32);
        carry >>= 32;
    }
    sum.push(carry as u32);
    sum
}

/// `left - right`; must not be negative.
fn difference(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut borrow = false;
    let subtract = |(at, limb): (usize, &u32)| {
        let (less, first) = limb.overflowing_sub(right.get(at).copied().unwrap_or(0));
        let (less, second) = less.overflowing_sub(u32::from(borrow));
        borrow = first || second;
        less
    };
    left.iter().enumerate().map(subtract).collect()
}

fn product(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut product = vec![0u32; left.len() + right.len()];
    for (at, limb) in left.iter().enumerate() {
        let mut carry = 0u64;
        for (place, other) in product[at..].iter_mut().zip(right.iter().chain(std::iter::repeat(&0))) {
            carry += u64::from(*place) + u64::from(*limb) * u64::from(*other);
            *place = carry as u32;
            carry >>= 32;
        }
    }
    product
}

/// Divides in place; returns the remainder.
fn divide(limbs: &mut [u32], divisor: u32) -> u32 {
    let mut rest = 0u64;
    for limb in limbs.iter_mut().rev() {
        let dividend = rest << 32 | u64::from(*limb);
        *limb = (dividend / u64::from(divisor)) as u32;
        rest = dividend % u64::from(divisor);
    }
    rest as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number in limbs, regardless of its size.
    fn large(number: i128) -> Integer {
        Integer::Large(Large { negative: number < 0, limbs: Integer::Small(number).magnitude() })
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 1..40)
    }

    /// Two's complement, extended to a length that is sufficient for all tests.
    fn wide(integer: &Integer) -> [u8; 96] {
        let bytes = integer.to_bytes();
        let mut wide = [if bytes[0] & 0x80 == 0 { 0 } else { 0xff }; 96];
        wide[96 - bytes.len()..].copy_from_slice(&bytes);
        wide
    }

    fn wide_sum(left: [u8; 96], right: [u8; 96]) -> [u8; 96] {
        let mut sum = [0; 96];
        let mut carry = 0;
        for at in (0..96).rev() {
            carry += u16::from(left[at]) + u16::from(right[at]);
            sum[at] = carry as u8;
            carry >>= 8;
        }
        sum
    }

    proptest! {
        #[test]
        fn bytes_come_back_as_short_as_they_can_be(bytes in bytes()) {
            let integer = Integer::from_bytes(&bytes);
            let back = integer.to_bytes();
            prop_assert!(back.len() <= bytes.len());
            prop_assert_eq!(Integer::from_bytes(&back), integer);
            let longer = [&[if bytes[0] & 0x80 == 0 { 0 } else { 0xff }; 20][..], &bytes].concat();
            prop_assert_eq!(Integer::from_bytes(&longer).to_bytes(), back);
        }

        #[test]
        fn sums_are_those_of_bytes(left in bytes(), right in bytes()) {
            let (left, right) = (Integer::from_bytes(&left), Integer::from_bytes(&right));
            prop_assert_eq!(wide(&left.add(&right)), wide_sum(wide(&left), wide(&right)));
            let minus_right = right.multiply(&Integer::Small(-1));
            prop_assert_eq!(left.add(&right).add(&minus_right), left.clone());
            let negative = wide(&left.add(&minus_right))[0] & 0x80 != 0;
            prop_assert_eq!(left < right, negative);
        }

        #[test]
        fn limbs_compute_as_the_processor_does(left in any::<i64>(), right in any::<i64>()) {
            let (left, right) = (i128::from(left), i128::from(right));
            prop_assert_eq!(large(left).multiply(&large(right)), Integer::Small(left * right));
            prop_assert_eq!(large(left).add(&large(right)), Integer::Small(left + right));
            prop_assert_eq!(large(left).cmp(&large(right)), left.cmp(&right));
        }

        #[test]
        fn products_distribute(one in bytes(), two in bytes(), three in bytes()) {
            let [one, two, three] = [one, two, three].map(|bytes| Integer::from_bytes(&bytes));
            prop_assert_eq!(one.multiply(&two.add(&three)), one.multiply(&two).add(&one.multiply(&three)));
        }

        #[test]
        fn powers_of_ten_undo_each_other(bytes in bytes(), exponent in 0u64..40) {
            let integer = Integer::from_bytes(&bytes);
            let scaled = integer.scale_up(exponent);
            prop_assert_eq!(scaled.scale_down(exponent), integer.clone());
            let (least, most) = scaled.digits();
            let digits = scaled.scale_down(least.saturating_sub(1));
            prop_assert!(integer.is_zero() || !digits.is_zero());
            prop_assert!(scaled.scale_down(most + 1).is_zero());
        }
    }

    #[test]
    fn halves_go_to_the_even_neighbour() {
        let down = |number: i128, exponent| Integer::Small(number).scale_down(exponent);
        let cases = [
            (25, 1, 2),
            (35, 1, 4),
            (-25, 1, -2),
            (-35, 1, -4),
            (251, 2, 3),
            (-251, 2, -3),
            (249, 2, 2),
            (50, 2, 0),
            (51, 2, 1),
            (4, 1, 0),
            (-51, 2, -1),
            (7, 0, 7),
            (15_000_000_001, 10, 2),
            (15_000_000_000, 10, 2),
            (25_000_000_000, 10, 2),
            (25_000_000_001, 10, 3),
        ];
        for (number, exponent, expected) in cases {
            assert_eq!(down(number, exponent), Integer::Small(expected), "{number} {exponent}");
        }
    }

    #[test]
    fn the_edge_of_the_small_ones_is_seamless() {
        let one = Integer::Small(1);
        let above = Integer::Small(i128::MAX).add(&one);
        assert!(matches!(&above, Integer::Large(_)));
        assert_eq!(above.add(&Integer::Small(-1)), Integer::Small(i128::MAX));
        let minus_above = above.multiply(&Integer::Small(-1));
        assert_eq!(minus_above, Integer::Small(i128::MIN));
        assert!(above > Integer::Small(i128::MAX) && minus_above.add(&Integer::Small(-1)) < minus_above);
    }
}
