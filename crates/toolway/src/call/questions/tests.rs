//! The book by itself: bounds and what is remembered.
