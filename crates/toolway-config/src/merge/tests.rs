//! Precedence.
