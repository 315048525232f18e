//! The commands, one file each. A file holds the command's flags, whose doc comments are its
//! help, and the function that runs it.

pub(crate) mod account;
pub(crate) mod add;
pub(crate) mod add_json;
pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
mod follow;
pub(crate) mod generate_docs;
pub(crate) mod get;
pub(crate) mod idp;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod logs;
pub(crate) mod man;
mod offers;
pub(crate) mod permissions;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod reconnect;
pub(crate) mod refresh;
pub(crate) mod remove;
pub(crate) mod resources;
pub(crate) mod skills;
pub(crate) mod state;
pub(crate) mod switch;
pub(crate) mod tools;
pub(crate) mod vault;
