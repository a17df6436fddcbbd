// SPDX-License-Identifier: MIT
#include "support/faults.h"

test_os os;
_Thread_local bool is_clock_slow;
static nb_atomic_u64 clock_slow_ns;
static nb_atomic_u32 threads_started; // unlike what is in `os`, no case sets it back

unsigned test_threads_started(void) { return nbi_atomic_load_relaxed_u32(&threads_started); }

static bool is_hit(test_fault *fault) {
    uint64_t call = nbi_atomic_fetch_add_seq_cst_u64(&fault->call_count, 1) + 1;
    if (call == fault->fail_at) return true;
    return fault->fail_from != 0 && call >= fault->fail_from && (fault->fail_until == 0 || call < fault->fail_until);
}

void *__real_nbi_pages_reserve(size_t size_bytes);
void *__wrap_nbi_pages_reserve(size_t size_bytes);
void *__wrap_nbi_pages_reserve(size_t size_bytes) {
    void *pages = is_hit(&os.pages) ? NULL : __real_nbi_pages_reserve(size_bytes);
    if (pages == NULL) return NULL;
    nbi_atomic_fetch_add_seq_cst_u64(&os.reserved_bytes, size_bytes);
    nbi_atomic_fetch_add_seq_cst_u32(&os.reserved_count, 1);
    return pages;
}

nb_result __real_nbi_pages_commit(void *address, size_t size_bytes);
nb_result __wrap_nbi_pages_commit(void *address, size_t size_bytes);
nb_result __wrap_nbi_pages_commit(void *address, size_t size_bytes) {
    return is_hit(&os.pages) ? NB_ERR_MEMORY : __real_nbi_pages_commit(address, size_bytes);
}

nb_result __real_nbi_pages_protect(void *address, size_t size_bytes, nbi_page_access access);
nb_result __wrap_nbi_pages_protect(void *address, size_t size_bytes, nbi_page_access access);
nb_result __wrap_nbi_pages_protect(void *address, size_t size_bytes, nbi_page_access access) {
    bool is_asked_for = os.protect == NBI_PAGE_NONE || os.protect == access;
    bool is_page_hit = is_hit(&os.pages);
    bool is_protect_hit = is_hit(&os.protects) && is_asked_for;
    return is_page_hit || is_protect_hit ? NB_ERR_OS : __real_nbi_pages_protect(address, size_bytes, access);
}

void __real_nbi_pages_release(void *address, size_t size_bytes);
void __wrap_nbi_pages_release(void *address, size_t size_bytes);
void __wrap_nbi_pages_release(void *address, size_t size_bytes) {
    nbi_atomic_fetch_sub_seq_cst_u64(&os.reserved_bytes, size_bytes);
    nbi_atomic_fetch_sub_seq_cst_u32(&os.reserved_count, 1);
    __real_nbi_pages_release(address, size_bytes);
}

nb_result __real_nbi_thread_start(nbi_thread *thread, const nbi_thread_desc *desc);
nb_result __wrap_nbi_thread_start(nbi_thread *thread, const nbi_thread_desc *desc);
nb_result __wrap_nbi_thread_start(nbi_thread *thread, const nbi_thread_desc *desc) {
    bool counts = os.thread_name == NULL || strcmp(os.thread_name, desc->name) == 0;
    if (counts && is_hit(&os.threads)) return NB_ERR_OS;
    nbi_atomic_fetch_add_relaxed_u32(&threads_started, 1);
    nb_result result = __real_nbi_thread_start(thread, desc);
    if (result == NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&os.started_count, 1);
    return result;
}

uint64_t __real_nbi_clock_now_ns(void);
uint64_t __wrap_nbi_clock_now_ns(void);
uint64_t __wrap_nbi_clock_now_ns(void) {
    if (is_clock_slow) return nbi_atomic_fetch_add_relaxed_u64(&clock_slow_ns, 1);
    return __real_nbi_clock_now_ns() + nbi_atomic_load_relaxed_u64(&os.clock_offset_ns);
}

nbi_program __real_nbi_program_get(void);
nbi_program __wrap_nbi_program_get(void);
nbi_program __wrap_nbi_program_get(void) {
    nbi_program program = __real_nbi_program_get();
    if (os.change_program != NULL) os.change_program(&program);
    return program;
}
