//! Tests over file systems in memory.

mod crash;
mod files;
mod speeds;
mod support;
