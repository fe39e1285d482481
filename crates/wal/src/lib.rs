//! To be filled in.
pub mod marker;
