//! Filters alone.
