//! The code of an erasure-coded file: how its bytes are spread over units, each on one DataNode.

use bytes::Bytes;
use prost::Message;

use crate::generated::{ErasureCodingPolicy, ErasureCodingSchema};

/// Cells of HDFS's own policies.
const CELL_BYTES: u32 = 1 << 20;
/// Maximum number of units in HDFS (8-bit Reed-Solomon codes).
const UNITS_MAX: u32 = 255;

/// A code: each stripe has one cell of each unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    /// Units that have the bytes of the file.
    pub(crate) data_units: u32,
    /// Units that may be lost.
    pub(crate) parity_units: u32,
    pub(crate) cell_bytes: u32,
}

impl Coding {
    /// The code of the policy in a file's status; `None` if it is unknown or invalid.
    pub(crate) fn of(policy: &Bytes) -> Option<Coding> {
        let policy = ErasureCodingPolicy::decode(policy.clone()).ok()?;
        let coding = match &policy.schema {
            Some(ErasureCodingSchema { data_units, parity_units, .. }) => Coding {
                data_units: *data_units,
                parity_units: *parity_units,
                cell_bytes: policy.cell_size(),
            },
            None => Coding::by_id(policy.id)?,
        };
        let units = coding.data_units.saturating_add(coding.parity_units);
        let is_valid = coding.data_units > 0 && units <= UNITS_MAX && coding.cell_bytes > 0;
        is_valid.then_some(coding)
    }

    /// The code of a policy that HDFS defines (`SystemErasureCodingPolicies`).
    fn by_id(id: u32) -> Option<Coding> {
        let (data_units, parity_units) = match id {
            // RS-6-3 and RS-LEGACY-6-3.
            1 | 3 => (6, 3),
            2 => (3, 2),
            // XOR-2-1.
            4 => (2, 1),
            5 => (10, 4),
            _ => return None,
        };
        Some(Coding { data_units, parity_units, cell_bytes: CELL_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(id: u32, schema: Option<(u32, u32)>, cell_size: Option<u32>) -> Option<(u32, u32, u32)> {
        let schema = schema.map(|(data_units, parity_units)| ErasureCodingSchema {
            codec_name: "rs".to_owned(),
            data_units,
            parity_units,
        });
        let policy = ErasureCodingPolicy { name: None, schema, cell_size, id };
        let found = Coding::of(&policy.encode_to_vec().into())?;
        Some((found.data_units, found.parity_units, found.cell_bytes))
    }

    #[test]
    fn a_code_is_known_by_its_id_or_stated() {
        assert_eq!(coding(1, None, None), Some((6, 3, 1 << 20)));
        assert_eq!(coding(5, None, None), Some((10, 4, 1 << 20)));
        assert_eq!(coding(70, Some((4, 2)), Some(65536)), Some((4, 2, 65536)));
    }

    #[test]
    fn an_invalid_code_is_refused() {
        for (schema, cell_size) in
            [(None, None), (Some((0, 2)), Some(1)), (Some((u32::MAX, 2)), Some(1)), (Some((4, 2)), None)]
        {
            assert_eq!(coding(70, schema, cell_size), None);
        }
        assert_eq!(Coding::of(&Bytes::from_static(b"\xff")), None);
    }
}
