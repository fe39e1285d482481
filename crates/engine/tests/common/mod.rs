//! Shared code of the tests of whole regions.

pub mod camera;
pub mod model;
pub mod rules;
pub mod world;
