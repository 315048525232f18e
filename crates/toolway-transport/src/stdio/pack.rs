//! Byte strings and lists of them as one run of bytes.
//!
//! Owns the encoding: each length stands before its bytes. Names, values and paths need not be
//! text, so nothing here reads them.

/// Writes.
#[derive(Default)]
pub(super) struct Packer(Vec<u8>);

impl Packer {
    /// Adds a byte string.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Adds a list of them.
    pub(super) fn list<'a>(&mut self, items: impl IntoIterator<Item = &'a [u8]>) {
        let at = self.0.len();
        self.length(0);
        let mut count = 0_usize;
        for item in items {
            self.bytes(item);
            count += 1;
        }
        self.0[at..at + size_of::<u64>()].copy_from_slice(&(count as u64).to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&(length as u64).to_le_bytes());
    }

    /// All of it.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what a [`Packer`] wrote, in the same order. Nothing where it does not fit.
pub(super) struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte string.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (found, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(found)
    }

    /// The next list.
    pub(super) fn list(&mut self) -> Option<Vec<&'a [u8]>> {
        let count = self.length()?;
        // Every item takes the room of its length, so a wrong count cannot ask for more memory.
        (count <= self.0.len() / size_of::<u64>()).then_some(())?;
        (0..count).map(|_| self.bytes()).collect()
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn length(&mut self) -> Option<usize> {
        let (length, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u64::from_le_bytes(*length)).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(any::<u8>(), 0..40)
    }

    proptest! {
        #[test]
        fn what_went_in_comes_out(
            first in bytes(),
            lists in vec(vec(bytes(), 0..5), 0..5),
            last in bytes(),
        ) {
            let mut packer = Packer::default();
            packer.bytes(&first);
            for list in &lists {
                packer.list(list.iter().map(Vec::as_slice));
            }
            packer.bytes(&last);
            let bytes = packer.finish();
            let mut unpacker = Unpacker::new(&bytes);
            prop_assert_eq!(unpacker.bytes(), Some(&*first));
            for list in &lists {
                prop_assert_eq!(unpacker.list(), Some(list.iter().map(Vec::as_slice).collect()));
            }
            prop_assert_eq!(unpacker.bytes(), Some(&*last));
            prop_assert_eq!(unpacker.bytes(), None);
        }

        #[test]
        fn bytes_that_fit_nothing_are_nothing(bytes in bytes()) {
            let mut unpacker = Unpacker::new(&bytes);
            while unpacker.list().is_some() {}
            while unpacker.bytes().is_some() {}
        }
    }
}
