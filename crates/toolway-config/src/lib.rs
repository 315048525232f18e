//! Toolway's configuration: files, environment and flags to a plan.
//!
//! Owns: permission and hook settings (`permission.rs`).

pub mod permission;

pub use permission::{
    Decision, Hints, Hook, HookAction, HookEvent, Hooks, Mode, Permissions, Subject,
};
