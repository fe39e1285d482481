//! Shared code of the tests of whole regions.
#![allow(dead_code)] // Each test uses a part.

pub mod camera;
pub mod model;
pub mod rules;
pub mod world;
