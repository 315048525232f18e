//! Clients and servers of both eras, in every combination, over every pair of transports.
//!
//! What is promised is the table of the eras: whatever a client and a server would say to each other
//! in one era arrives, in the way of the era of whoever hears it.

mod asked;
mod heard;
mod served;
mod tasks;
