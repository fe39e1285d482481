//! Tests over file systems in memory.

mod crash;
mod files;
mod moves;
mod rules;
mod speeds;
mod status;
mod support;
