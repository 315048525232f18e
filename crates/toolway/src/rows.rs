//! From a host's values to what front-ends show: the rows of `toolway_rows`.
//!
//! Owns the mapping, for every front-end. What only one of them can know, such as the command that
//! logs in, it adds itself; how rows are printed is its own too.

mod events;
mod logins;
mod offers;
mod servers;

pub use self::events::EventTeller;
pub use self::logins::{login_rows, served_rows, shown_time};
pub use self::offers::{asked_rows, skill_row, tool_row};
pub use self::servers::{
    UNNAMED_SCOPES, entry_row, explained_row, exported_servers, hook_row, name_table, place_row,
    planned_row, settle_row,
};
