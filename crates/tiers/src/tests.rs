//! Tests over file systems in memory.

mod crash;
mod files;
mod moves;
mod status;
mod support;
