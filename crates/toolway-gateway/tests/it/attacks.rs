//! Attacks on the gateway by its clients and by servers, over a real host and real servers: what
//! was tried, and that it leads nowhere.

mod access;
mod clients;
mod faults;
mod headers;
mod http;
mod profiles;
mod servers;
