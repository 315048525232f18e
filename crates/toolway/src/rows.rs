//! From a host's values to what front-ends show: the rows of `toolway_rows`.
//!
//! Owns the mapping, for every front-end. What only one of them can know, such as the command that
//! logs in, it adds itself; how rows are printed is its own too.

mod calls;
mod events;
mod logins;
mod offers;
mod permissions;
mod questions;
mod servers;

pub use self::calls::background_row;
pub use self::events::EventTeller;
pub use self::logins::{login_rows, served_rows, shown_time};
pub use self::offers::{asked_rows, skill_row, tool_row};
pub use self::permissions::{rule_listing, secret_row, unheeded_row, variable_row};
pub use self::servers::{
    UNNAMED_SCOPES, entry_row, explained_row, exported_servers, hook_row, name_table, place_row,
    planned_row, settle_row,
};
