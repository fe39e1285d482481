//! States of regions and tables in `hbase:meta`.

use std::fmt;

use prost::Message;
use proto::table_state::State;

/// The state of a region, stored as text in `info:state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaRegionState {
    /// Not served, and not supposed to be.
    Offline,
    /// A server was requested to open it.
    Opening,
    /// Served.
    Open,
    /// A server was requested to close it.
    Closing,
    /// Not served.
    Closed,
    /// Being split.
    Splitting,
    /// Split: its daughters are served.
    Split,
    /// No server could open it.
    FailedOpen,
    /// Its server could not close it.
    FailedClose,
    /// Being merged.
    Merging,
    /// Merged: another region is served.
    Merged,
    /// A daughter that is being created.
    SplittingNew,
    /// A merged region that is being created.
    MergingNew,
    /// Its server died.
    AbnormallyClosed,
}

const REGION_STATES: [(MetaRegionState, &str); 14] = [
    (MetaRegionState::Offline, "OFFLINE"),
    (MetaRegionState::Opening, "OPENING"),
    (MetaRegionState::Open, "OPEN"),
    (MetaRegionState::Closing, "CLOSING"),
    (MetaRegionState::Closed, "CLOSED"),
    (MetaRegionState::Splitting, "SPLITTING"),
    (MetaRegionState::Split, "SPLIT"),
    (MetaRegionState::FailedOpen, "FAILED_OPEN"),
    (MetaRegionState::FailedClose, "FAILED_CLOSE"),
    (MetaRegionState::Merging, "MERGING"),
    (MetaRegionState::Merged, "MERGED"),
    (MetaRegionState::SplittingNew, "SPLITTING_NEW"),
    (MetaRegionState::MergingNew, "MERGING_NEW"),
    (MetaRegionState::AbnormallyClosed, "ABNORMALLY_CLOSED"),
];

impl MetaRegionState {
    /// The text in `info:state`.
    pub fn as_str(self) -> &'static str {
        REGION_STATES.iter().find(|(state, _)| *state == self).expect("every state has its text").1
    }

    /// The state that the text of `info:state` names.
    pub fn parse(text: &[u8]) -> Option<MetaRegionState> {
        REGION_STATES.iter().find(|(_, name)| name.as_bytes() == text).map(|(state, _)| *state)
    }
}

impl fmt::Display for MetaRegionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a table, stored as a message in `table:state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableState {
    /// Its regions are served.
    Enabled,
    /// Its regions are closed.
    Disabled,
    /// Its regions are being closed.
    Disabling,
    /// Its regions are being opened.
    Enabling,
}

impl TableState {
    /// The value of `table:state`, without a prefix.
    pub fn to_bytes(self) -> Vec<u8> {
        proto::TableState::from(self).encode_to_vec()
    }

    /// Decodes the value of `table:state`; `None` if it is not a table state.
    pub fn from_bytes(value: &[u8]) -> Option<TableState> {
        TableState::try_from(&proto::TableState::decode(value).ok()?).ok()
    }
}

impl From<TableState> for proto::TableState {
    fn from(state: TableState) -> proto::TableState {
        let state = match state {
            TableState::Enabled => State::Enabled,
            TableState::Disabled => State::Disabled,
            TableState::Disabling => State::Disabling,
            TableState::Enabling => State::Enabling,
        };
        proto::TableState { state: state.into() }
    }
}

impl TryFrom<&proto::TableState> for TableState {
    type Error = prost::UnknownEnumValue;

    fn try_from(state: &proto::TableState) -> Result<TableState, prost::UnknownEnumValue> {
        Ok(match State::try_from(state.state)? {
            State::Enabled => TableState::Enabled,
            State::Disabled => TableState::Disabled,
            State::Disabling => TableState::Disabling,
            State::Enabling => TableState::Enabling,
        })
    }
}

impl fmt::Display for TableState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TableState::Enabled => "ENABLED",
            TableState::Disabled => "DISABLED",
            TableState::Disabling => "DISABLING",
            TableState::Enabling => "ENABLING",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_states_are_hbases_bytes() {
        let cases = [
            (TableState::Enabled, [8, 0]),
            (TableState::Disabled, [8, 1]),
            (TableState::Disabling, [8, 2]),
            (TableState::Enabling, [8, 3]),
        ];
        for (state, bytes) in cases {
            assert_eq!(state.to_bytes(), bytes);
            assert_eq!(TableState::from_bytes(&bytes), Some(state));
        }
        assert_eq!(TableState::from_bytes(&[8, 9]), None);
        assert_eq!(TableState::from_bytes(b"PBUF"), None);
    }

    #[test]
    fn region_states_are_read_back() {
        for (state, text) in REGION_STATES {
            assert_eq!(MetaRegionState::parse(state.as_str().as_bytes()), Some(state));
            assert_eq!(state.to_string(), text);
        }
        assert_eq!(MetaRegionState::parse(b"open"), None);
    }
}
