//! Memory that is given back to the system, by a process that runs for long.
//!
//! Owns the words to the allocator of the C library, where that is GNU's; others are left alone.

/// From now on a block of a megabyte or more is a mapping of its own, gone when it is freed.
///
/// By itself the allocator takes the first large block that is freed as a sign to keep the next ones,
/// so that a few large results would stay with the process for good.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::return_large_blocks();
}

/// Gives back what is free between blocks that are in use, as a start with many servers leaves it.
pub fn return_unused() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::return_unused();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator is the C library's")]
mod gnu {
    /// Blocks from this size on are mapped.
    const LARGE: i32 = 1 << 20;

    /// The most that is kept free at the end: less would go back and forth with every call.
    const KEPT: i32 = 2 << 20;

    pub(super) fn return_large_blocks() {
        // SAFETY: both set a number of the allocator, which locks itself, and touch no block.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        }
    }

    pub(super) fn return_unused() {
        // SAFETY: only pages that no block lies in are given back.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(target_env = "gnu")]
#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    /// In KiB.
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().split_whitespace().next().unwrap();
        number.parse().unwrap()
    }

    #[test]
    fn large_blocks_leave_no_trace() {
        return_large_blocks();
        let before = resident();
        for _ in 0..3 {
            let block = std::hint::black_box(vec![1_u8; 16 * MEBIBYTE]);
            assert!(resident() > before + 12 * 1024);
            drop(block);
        }
        assert!(resident() < before + 4 * 1024);
    }

    #[test]
    fn what_is_free_between_blocks_is_given_back() {
        let blocks: Vec<Vec<u8>> = (0..4096).map(|_| vec![1_u8; 8 * 1024]).collect();
        let full = resident();
        // One of sixteen stays, so that nothing is free at the end.
        let kept: Vec<Vec<u8>> = blocks
            .into_iter()
            .enumerate()
            .filter_map(|(place, block)| (place % 16 == 15).then_some(block))
            .collect();
        return_unused();
        assert!(resident() + 16 * 1024 < full);
        drop(std::hint::black_box(kept));
    }
}
