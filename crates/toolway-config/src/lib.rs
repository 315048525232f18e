//! Toolway's configuration: files, environment and flags to a plan.

pub mod edit;
pub mod import;
