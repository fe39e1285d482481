//! Shared code of the tests of whole regions.
#![allow(dead_code, reason = "the crate analytics uses it too")]

pub mod camera;
pub mod model;
pub mod rules;
pub mod world;
