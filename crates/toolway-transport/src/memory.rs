//! Memory that is given back to the system, by a process that runs for long.
//!
//! Owns the words to the allocator of the C library, where that is GNU's; others are left alone. And
//! the word to the system that the code of a start is not needed any more.

use std::time::Duration;

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

/// The processor time that the program has used so far: one that uses none is idle.
pub fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// How much memory of the machine the program holds, in bytes, where the system says so.
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Lets go of the pages that hold the program's code and constants: most were needed for its start
/// alone. What is used again comes back from the file, or from the system's copy of it.
pub fn return_code_pages() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    code_pages::give_back();
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[expect(
    unsafe_code,
    reason = "only the C library knows where the program lies, and only raw addresses name it"
)]
mod code_pages {
    use std::ffi::{c_int, c_void};

    pub(super) fn give_back() {
        // SAFETY: `of_object` has the type that is asked for, and uses no data.
        unsafe {
            libc::dl_iterate_phdr(Some(of_object), std::ptr::null_mut());
        }
    }

    /// Lets go of what nobody can have written to in one object: the program, or a library.
    unsafe extern "C" fn of_object(
        object: *mut libc::dl_phdr_info,
        _size: usize,
        _data: *mut c_void,
    ) -> c_int {
        // SAFETY: the C library lends the object and its table for the time of this call.
        let (base, table) = unsafe {
            let object = &*object;
            let length = usize::from(object.dlpi_phnum);
            let table = if object.dlpi_phdr.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts(object.dlpi_phdr, length)
            };
            (object.dlpi_addr, table)
        };
        // The loader writes addresses into what may be written to, and makes some of it read-only
        // later: those pages have no other copy. The table says how they began.
        let is_code = |segment: &&libc::Elf64_Phdr| {
            segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_W == 0
        };
        let page = page_size();
        for segment in table.iter().filter(is_code) {
            // Pages at the ends may hold a neighbour's part.
            let begin = (base + segment.p_vaddr).next_multiple_of(page);
            let end = (base + segment.p_vaddr + segment.p_filesz) / page * page;
            if begin < end {
                let length = usize::try_from(end - begin).unwrap_or_default();
                // SAFETY: whole pages of a mapping that is read only, private, and of a file: who
                // reads them next finds the same bytes. Where it is not one (the system's own
                // object), it is refused.
                unsafe {
                    libc::madvise(begin as *mut c_void, length, libc::MADV_DONTNEED);
                }
            }
        }
        0
    }

    fn page_size() -> u64 {
        // SAFETY: it reads a constant of the system.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(size)
            .ok()
            .filter(|size| *size > 0)
            .unwrap_or(1 << 16)
    }
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

    fn resident() -> usize {
        status("VmRSS:")
    }

    fn resident_of_files() -> usize {
        status("RssFile:")
    }

    /// In KiB.
    fn status(field: &str) -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
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
    fn code_that_was_let_go_of_runs_again() {
        let before = resident_of_files();
        return_code_pages();
        assert!(resident_of_files() < before);
        // Formatting, parsing and a thread: code and constants of this program and its libraries.
        let word = std::thread::spawn(|| format!("{:>8.3}", "2.5".parse::<f64>().unwrap()));
        assert_eq!(word.join().unwrap(), "   2.500");
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
