//! The command line from outside: what is typed, what is printed, how it ends.
//!
//! One binary; one file per behaviour. Every test has a home of its own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod account;
mod accounts;
mod adding;
mod approvals;
mod asking;
mod audit;
mod authenticating;
mod authorities;
mod bad_input;
mod batch;
mod binding;
mod broken_vault;
mod call;
mod calling;
mod children;
mod classifier;
mod completions;
mod connect;
mod control;
mod curation;
mod daemon;
mod daily;
mod demo;
mod doctor;
mod documented;
mod exports;
mod gateway;
mod given;
mod giving_up;
mod glance;
mod helper;
mod hooks;
mod hostile;
mod idp;
mod import;
mod inherited;
mod inspection;
mod kept;
mod listing;
mod login;
mod logs;
mod looking;
mod managed;
mod managing;
mod names;
mod narrow;
mod network;
mod offers;
mod older;
mod patience;
mod peers;
mod permission;
mod permissions;
mod processes;
mod reached;
mod reaching;
mod reliability;
mod results;
mod rules;
mod scale;
mod screens;
mod security;
mod serve;
mod serve_attacks;
mod served;
mod shells;
mod shield;
mod shield_links;
mod shown;
mod skills;
mod state_shield;
mod status;
mod step_up;
mod storage;
mod support;
mod switching;
mod terminal;
mod tokens;
mod traces;
mod trusting;
mod turns;
mod usage;
mod user_home;
mod vault;
mod visiting;
mod watching;
mod words;
mod working_directory;
mod workload;
