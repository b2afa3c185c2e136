//! Heap configuration for programs with many threads.

/// Makes all threads that start from now on share one heap. By default the C library gives each thread its
/// own.
///
/// A server parses a request on one thread and works on another. With separate heaps, memory freed by the
/// first thread is not available to the second: the peak for a plan of 7 MB was 267 MiB, and is 198 MiB with
/// one heap. Only a program should call this, before it starts threads. A library leaves the heap to its
/// host.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way to set it")]
pub fn share_heap() {
    // SAFETY: `mallopt` takes two integers and locks the heap itself.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Does nothing: other C libraries have a single heap.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn share_heap() {}
