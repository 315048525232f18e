//! A program that talks more than MCP over its pipe, as its MCP client sees it.
//!
//! Owns what both sides of one pipe share: the ids of requests to it, and who is asked because of calls
//! that come as MCP, once the program has said what it answers.

use std::sync::{Arc, OnceLock};

use toolway::RequestAsked;

use crate::client_questions::ClientQuestions;

/// What both sides share.
#[derive(Clone, Default)]
pub(crate) struct ProgramSide {
    /// The requests to it that wait for an answer.
    pub(crate) questions: Arc<ClientQuestions>,
    /// Who is asked because of its requests.
    pub(crate) asked: Arc<OnceLock<RequestAsked>>,
}
