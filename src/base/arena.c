// SPDX-License-Identifier: MIT
// Arenas: blocks, commit, chaining, marks, cleanups, statistics. The fast path is inline in nebula/arena.h: it may go
// up to `limit`, which this file keeps at the end of the committed part, or at the cursor where every allocation must
// come here (checks on, cleanups running).

#include "arena.h"

#include "../platform/platform.h"
#include "base.h"
#include "poison.h"

// Pages are committed this many bytes at a time: filling the default 16 MiB costs 64 system calls once, and an arena
// that is hardly used holds little.
#define COMMIT_STEP_BYTES ((size_t)256 << 10)

// Chained blocks start at a cache line, so that two arenas never share one.
#define BLOCK_ALIGNMENT ((size_t)NB_CACHE_LINE)

// A smaller chained block would spend its time being chained; a larger default would be mostly unused: it is a
// sixteenth of the default capacity.
#define CHAIN_BLOCK_BYTES_MIN ((size_t)4 << 10)
#define CHAIN_BLOCK_BYTES_DEFAULT_MAX ((size_t)1 << 20)

// A runaway frame is refused at this many times the planned size.
#define CHAIN_CAPACITY_FACTOR 64

#define LABEL_DEFAULT "arena"

// How far `limit` may be ahead of the cursor, so that neither half of the 32 + 32 bit tally can run over.
#define TALLY_WINDOW_BYTES ((size_t)1 << 30)

typedef struct nb_arena_cleanup {
    struct nb_arena_cleanup *next;
    nb_arena_cleanup_fn run;
    void *user;
} nb_arena_cleanup;

// --- small questions ---

static size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) & ~(multiple - 1); }

static unsigned char *align_up(unsigned char *pointer, size_t alignment) {
    return (unsigned char *)(((uintptr_t)pointer + (alignment - 1)) & ~(uintptr_t)(alignment - 1));
}

static bool is_alignment(size_t alignment) {
    return nbi_is_power_of_two(alignment) && alignment <= NB_ARENA_ALIGNMENT_MAX;
}

// --- the fast path's view ---

static void fold_tally(nb_arena *arena) {
    arena->requested_bytes = nbi_arena_requested(arena);
    arena->allocation_count = nbi_arena_allocations(arena);
    arena->tally = 0;
}

// To be called after every change of the cursor or of what is committed.
static void set_limit(nb_arena *arena) {
    fold_tally(arena);
    if (arena->is_checked || arena->is_cleaning) {
        arena->limit = arena->cursor;
        return;
    }
    size_t room = nbi_distance(arena->cursor, nbi_block_usable_end(arena->current));
    arena->limit = arena->cursor + nbi_size_min(room, TALLY_WINDOW_BYTES);
}

// --- who may call ---

nb_result nbi_arena_check_object(const nb_arena *arena, const char *function) {
    if (arena == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "arena is NULL");
    if (arena->generation == 0) {
        return nbi_fail(NULL, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function, "the arena is not initialised");
    }
    return NB_OK;
}

nb_result nbi_arena_check_caller(const nb_arena *arena, const char *function) {
    nb_result result = nbi_arena_check_object(arena, function);
    if (result != NB_OK) return result;
    if (arena->is_checked && arena->owner != nbi_thread_id()) {
        return nbi_fail(&arena->hooks, NB_ITEM_ARENA_THREAD, NB_ERR_THREAD, function,
                        "%s: called from a thread that does not own it", arena->label);
    }
    if (arena->is_cleaning) {
        return nbi_fail(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function,
                        "%s: called from a cleanup of the same arena", arena->label);
    }
    return NB_OK;
}

static nb_result check_unmanaged(const nb_arena *arena, const char *function) {
    if (!arena->is_managed) return NB_OK;
    return nbi_fail(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function,
                    "%s: a frame's arena is reset and ended with its frame", arena->label);
}

// --- life ---

nb_arena_desc nb_arena_desc_default(void) {
    // No capacity: whoever adds a buffer and forgets its size must be refused, not believed.
    return (nb_arena_desc){.label = LABEL_DEFAULT, .policy = NB_ARENA_POLICY_FAIL, .hooks = nb_hooks_default()};
}

static nb_result check_desc(const nb_arena_desc *desc, const nb_hooks *hooks, const char *function) {
    const char *problem = NULL;
    if ((unsigned)desc->policy >= NB_ARENA_POLICY_COUNT) problem = "policy is not an nb_arena_policy";
    if ((unsigned)desc->checks >= NB_ARENA_CHECKS_COUNT) problem = "checks is not an nb_arena_checks";
    if (desc->buffer != NULL && desc->capacity_bytes == 0) problem = "a buffer of size 0";
    if (problem != NULL) {
        return nbi_fail(hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function, "%s", problem);
    }
    // Sizes are subtracted and rounded up below; half the address space leaves room for both.
    if (desc->capacity_bytes > SIZE_MAX / 2) {
        return nbi_fail(hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_RANGE, function, "a capacity of %zu bytes",
                        desc->capacity_bytes);
    }
    return NB_OK;
}

// Reserved size of a first block made of pages. The capacity was checked: rounding cannot wrap.
static size_t reserved_bytes(const nb_arena_block *block) {
    return round_up(nbi_block_capacity(block), nbi_page_size());
}

static nb_result init_first_block(nb_arena *arena, const nb_arena_desc *desc, size_t capacity, const char *function) {
    unsigned char *base = (unsigned char *)desc->buffer;
    if (base == NULL) {
        base = (unsigned char *)nbi_pages_reserve(round_up(capacity, nbi_page_size()));
        if (base == NULL) {
            nbi_log(&arena->hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, function, "no address space for %zu bytes",
                    capacity);
            return NB_ERR_MEMORY;
        }
        arena->owns_pages = true;
    }
    arena->first = (nb_arena_block){.base = base, .committed = base, .end = base + capacity, .left_at = base};
    if (!arena->owns_pages) {
        arena->first.committed = arena->first.end;
        if (arena->is_checked) nbi_poison_fresh(base, capacity);
    }
    return NB_OK;
}

static void init_settings(nb_arena *arena, const nb_arena_desc *desc, size_t capacity) {
    arena->label = desc->label != NULL ? desc->label : LABEL_DEFAULT;
    arena->policy = desc->policy != NB_ARENA_POLICY_DEFAULT ? desc->policy : NB_ARENA_POLICY_FAIL;
    arena->keeps_committed = desc->keep_committed;
    bool is_checked_by_default = NB_ASSERTIONS || NBI_WITH_ASAN || NBI_WITH_MSAN;
    arena->is_checked =
        desc->checks == NB_ARENA_CHECKS_DEFAULT ? is_checked_by_default : desc->checks == NB_ARENA_CHECKS_ON;

    arena->chain_block_bytes = desc->chain_block_bytes;
    if (arena->chain_block_bytes == 0) {
        arena->chain_block_bytes = nbi_size_min(capacity, CHAIN_BLOCK_BYTES_DEFAULT_MAX);
    }
    arena->chain_block_bytes = nbi_size_max(arena->chain_block_bytes, CHAIN_BLOCK_BYTES_MIN);
    arena->chain_bytes_max = desc->chain_bytes_max;
    if (arena->chain_bytes_max == 0 && !nbi_size_mul(capacity, CHAIN_CAPACITY_FACTOR, &arena->chain_bytes_max)) {
        arena->chain_bytes_max = SIZE_MAX;
    }
}

nb_result nb_arena_init(nb_arena *arena, const nb_arena_desc *desc) {
    if (arena == NULL) return NBI_FAIL_NULL("arena");
    nb_arena_desc defaults = nb_arena_desc_default();
    if (desc == NULL) desc = &defaults;
    nb_hooks hooks = nbi_hooks_resolve(&desc->hooks);
    nb_result result = check_desc(desc, &hooks, __func__);
    if (result != NB_OK) return result;

    nb_arena fresh = {.hooks = hooks, .owner = nbi_thread_id()};
    size_t capacity = desc->capacity_bytes != 0 ? desc->capacity_bytes : NB_ARENA_CAPACITY_DEFAULT;
    init_settings(&fresh, desc, capacity);
    result = init_first_block(&fresh, desc, capacity, __func__);
    if (result != NB_OK) return result;
    *arena = fresh;
    arena->generation = 1;
    arena->current = &arena->first;
    arena->cursor = arena->first.base;
    set_limit(arena);
    return NB_OK;
}

nb_result nb_arena_init_buffer(nb_arena *arena, void *buffer, size_t size_bytes) {
    if (arena == NULL) return NBI_FAIL_NULL("arena");
    if (buffer == NULL) return NBI_FAIL_NULL("buffer");
    return nb_arena_init(arena, &(nb_arena_desc){.buffer = buffer, .capacity_bytes = size_bytes});
}

nb_result nb_arena_adopt(nb_arena *arena) {
    nb_result result = nbi_arena_check_object(arena, __func__);
    if (result == NB_OK) result = check_unmanaged(arena, __func__);
    if (result == NB_OK) arena->owner = nbi_thread_id();
    return result;
}

// --- blocks ---

// Makes the first block usable up to `end` at least, a step at a time.
static bool commit_up_to(nb_arena *arena, const unsigned char *end, const char *function) {
    nb_arena_block *block = arena->current;
    if (end <= block->committed) return true;
    size_t wanted = round_up(nbi_distance(block->base, end), COMMIT_STEP_BYTES);
    size_t target = nbi_size_min(wanted, reserved_bytes(block));
    size_t missing = target - nbi_distance(block->base, block->committed);
    if (nbi_pages_commit(block->committed, missing) != NB_OK) {
        nbi_log(&arena->hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, function, "%s: no memory for %zu bytes", arena->label,
                missing);
        return false;
    }
    if (arena->is_checked) nbi_poison_fresh(block->committed, missing);
    block->committed += missing;
    arena->steady_since = arena->reset_count;
    return true;
}

static bool fits(const unsigned char *cursor, const unsigned char *end, size_t size_bytes, size_t alignment) {
    size_t room = nbi_distance(cursor, end);
    size_t padding = (0 - (uintptr_t)cursor) & (alignment - 1);
    return padding <= room && size_bytes <= room - padding;
}

static void *take_from_current(nb_arena *arena, size_t size_bytes, size_t alignment, const char *function) {
    if (!fits(arena->cursor, arena->current->end, size_bytes, alignment)) return NULL;
    unsigned char *memory = align_up(arena->cursor, alignment);
    if (!commit_up_to(arena, memory + size_bytes, function)) return NULL;
    if (arena->is_checked) nbi_unpoison(memory, size_bytes);
    arena->cursor = memory + size_bytes;
    arena->requested_bytes += size_bytes;
    ++arena->allocation_count;
    set_limit(arena);
    return memory;
}

// The header stands at the start of the block's own memory.
static size_t block_memory_bytes(const nb_arena_block *block) {
    return nbi_distance((const unsigned char *)block, block->end);
}

static nb_arena_block *block_create(nb_arena *arena, size_t size_bytes, size_t alignment, const char *function) {
    size_t header = round_up(sizeof(nb_arena_block), BLOCK_ALIGNMENT);
    size_t slack = alignment > BLOCK_ALIGNMENT ? alignment : 0;
    size_t payload = 0;
    if (!nbi_size_add(size_bytes, slack, &payload)) return NULL;
    payload = nbi_size_max(payload, arena->chain_block_bytes);
    if (payload > arena->chain_bytes_max - arena->chained_bytes || payload > SIZE_MAX - header) return NULL;

    unsigned char *memory = (unsigned char *)nbi_alloc(&arena->hooks, header + payload, BLOCK_ALIGNMENT, function);
    if (memory == NULL) return NULL;
    nb_arena_block *block = (nb_arena_block *)(void *)memory;
    unsigned char *base = memory + header;
    unsigned char *end = base + payload;
    *block = (nb_arena_block){.base = base, .committed = end, .end = end, .left_at = base};
    if (arena->is_checked) nbi_poison_fresh(base, payload);
    arena->chained_bytes += payload;
    arena->steady_since = arena->reset_count;
    return block;
}

static void block_destroy(nb_arena *arena, nb_arena_block *block) {
    size_t capacity = nbi_block_capacity(block);
    if (arena->is_checked) nbi_unpoison(block->base, capacity);
    arena->chained_bytes -= capacity;
    nbi_free(&arena->hooks, block, block_memory_bytes(block));
}

static void report_full(nb_arena *arena, size_t size_bytes, const char *outcome, const char *function) {
    if (arena->is_full_reported) return;
    arena->is_full_reported = true;
    nbi_log(&arena->hooks, NB_LOG_WARNING, NB_ITEM_ARENA_FULL, function,
            "%s: %zu bytes do not fit, %zu of %zu in use: %s", arena->label, size_bytes, nbi_arena_used(arena),
            nbi_arena_capacity(arena), outcome);
}

// Goes on to the next block, a kept one or a new one. A kept block that is too small stays for a later overflow.
static bool enter_next_block(nb_arena *arena, size_t size_bytes, size_t alignment, const char *function) {
    if (arena->policy != NB_ARENA_POLICY_CHAIN) return false;
    nb_arena_block *next = arena->current->next;
    if (next == NULL || !fits(next->base, next->end, size_bytes, alignment)) {
        nb_arena_block *fresh = block_create(arena, size_bytes, alignment, function);
        if (fresh == NULL) return false;
        fresh->next = next;
        arena->current->next = fresh;
        next = fresh;
        report_full(arena, size_bytes, "a block was chained", function);
    }
    arena->current->left_at = arena->cursor;
    arena->used_before_bytes += nbi_block_capacity(arena->current);
    arena->current = next;
    arena->cursor = next->base;
    return true;
}

// --- allocation ---

static void *take(nb_arena *arena, size_t size_bytes, size_t alignment, const char *function) {
    fold_tally(arena);
    void *memory = take_from_current(arena, size_bytes, alignment, function);
    if (memory != NULL) return memory;
    ++arena->overflow_count;
    if (enter_next_block(arena, size_bytes, alignment, function)) {
        return take_from_current(arena, size_bytes, alignment, function);
    }
    ++arena->refused_count;
    report_full(arena, size_bytes, "refused", function);
    return NULL;
}

static void *alloc_checked(nb_arena *arena, size_t size_bytes, size_t alignment, const char *function) {
    if (nbi_arena_check_caller(arena, function) != NB_OK) return NULL;
    if (!is_alignment(alignment)) {
        nbi_fail(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function,
                 "%s: alignment %zu is not a power of two up to %zu", arena->label, alignment, NB_ARENA_ALIGNMENT_MAX);
        return NULL;
    }
    if (size_bytes == 0) return align_up(arena->cursor, alignment);
    return take(arena, size_bytes, alignment, function);
}

void *nb_arena_alloc_slow(nb_arena *arena, size_t size_bytes, size_t alignment) {
    return alloc_checked(arena, size_bytes, alignment, "nb_arena_alloc");
}

static void *fail_null(const nb_arena *arena, const char *what, const char *function) {
    if (nbi_arena_check_object(arena, function) != NB_OK) return NULL;
    nbi_fail(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function, "%s: %s is NULL", arena->label, what);
    return NULL;
}

void *nb_arena_fill(nb_arena *arena, size_t count, size_t element_bytes, size_t alignment, const void *value) {
    if (value == NULL) return fail_null(arena, "value", __func__);
    size_t size_bytes = 0;
    if (!nbi_size_mul(count, element_bytes, &size_bytes)) size_bytes = SIZE_MAX;
    unsigned char *memory = (unsigned char *)alloc_checked(arena, size_bytes, alignment, __func__);
    if (memory == NULL || element_bytes == 0) return memory;
    for (size_t i = 0; i < count; ++i) memcpy(memory + i * element_bytes, value, element_bytes);
    return memory;
}

void *nb_arena_memdup(nb_arena *arena, const void *source, size_t size_bytes, size_t alignment) {
    if (source == NULL) return fail_null(arena, "source", __func__);
    void *memory = alloc_checked(arena, size_bytes, alignment, __func__);
    if (memory != NULL && size_bytes != 0) memcpy(memory, source, size_bytes);
    return memory;
}

char *nb_arena_strdup(nb_arena *arena, const char *text) {
    if (text == NULL) return fail_null(arena, "text", __func__);
    return (char *)nb_arena_memdup(arena, text, strlen(text) + 1, 1);
}

// To be called before the cursor moves back.
static void note_peak(nb_arena *arena) {
    size_t used = nbi_arena_used(arena);
    arena->frame_peak_bytes = nbi_size_max(arena->frame_peak_bytes, used);
    arena->high_watermark_bytes = nbi_size_max(arena->high_watermark_bytes, used);
}

// The newest block changes its end. False: it must move.
static bool resize_in_place(nb_arena *arena, unsigned char *memory, size_t old_bytes, size_t new_bytes,
                            const char *function) {
    if (new_bytes > nbi_distance(memory, arena->current->end)) return false;
    if (!commit_up_to(arena, memory + new_bytes, function)) return false;
    if (arena->is_checked && new_bytes > old_bytes) nbi_unpoison(memory + old_bytes, new_bytes - old_bytes);
    if (arena->is_checked && new_bytes < old_bytes) nbi_poison_released(memory + new_bytes, old_bytes - new_bytes);
    note_peak(arena);
    fold_tally(arena);
    // A caller may name a block larger than it asked for, padding included; the sum must not wrap.
    arena->requested_bytes -= nbi_size_min(arena->requested_bytes, old_bytes);
    arena->requested_bytes += new_bytes;
    arena->cursor = memory + new_bytes;
    set_limit(arena);
    return true;
}

void *nb_arena_grow(nb_arena *arena, void *memory, size_t old_size_bytes, size_t new_size_bytes, size_t alignment) {
    if (memory == NULL || old_size_bytes == 0) return alloc_checked(arena, new_size_bytes, alignment, __func__);
    if (nbi_arena_check_caller(arena, __func__) != NB_OK) return NULL;
    if (!is_alignment(alignment) || !nbi_arena_is_in_use(arena, memory, old_size_bytes)) {
        NBI_FAIL(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE,
                 "%s: %zu bytes at %p with alignment %zu are no block of this arena", arena->label, old_size_bytes,
                 memory, alignment);
        return NULL;
    }
    unsigned char *bytes = (unsigned char *)memory;
    bool is_aligned = ((uintptr_t)memory & (alignment - 1)) == 0;
    bool is_newest = bytes + old_size_bytes == arena->cursor;
    if (is_aligned && is_newest && resize_in_place(arena, bytes, old_size_bytes, new_size_bytes, __func__)) {
        return memory;
    }
    if (is_aligned && new_size_bytes <= old_size_bytes) return memory;
    void *moved = take(arena, new_size_bytes, alignment, __func__);
    if (moved != NULL) memcpy(moved, memory, nbi_size_min(old_size_bytes, new_size_bytes));
    return moved;
}

// --- release ---

nb_result nb_arena_defer(nb_arena *arena, nb_arena_cleanup_fn cleanup, void *user) {
    nb_result result = nbi_arena_check_caller(arena, __func__);
    if (result != NB_OK) return result;
    if (cleanup == NULL) return NBI_FAIL(&arena->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, "cleanup is NULL");
    nb_arena_cleanup *node =
        (nb_arena_cleanup *)take(arena, sizeof(nb_arena_cleanup), _Alignof(nb_arena_cleanup), __func__);
    if (node == NULL) return NB_ERR_MEMORY;
    *node = (nb_arena_cleanup){.next = arena->cleanups, .run = cleanup, .user = user};
    arena->cleanups = node;
    return NB_OK;
}

// Bound: the number of nb_arena_defer calls since the mark.
static void run_cleanups(nb_arena *arena, const nb_arena_cleanup *stop) {
    if (arena->cleanups == stop) return;
    arena->is_cleaning = true;
    set_limit(arena);
    while (arena->cleanups != stop) {
        nb_arena_cleanup *node = arena->cleanups;
        arena->cleanups = node->next;
        node->run(node->user);
    }
    arena->is_cleaning = false;
}

// Poisons what lies between the mark and the cursor, in every block the arena went through since.
static void poison_since(nb_arena *arena, const nb_arena_mark *mark) {
    unsigned char *start = mark->cursor;
    for (nb_arena_block *block = mark->block;; block = block->next) {
        nbi_poison_released(start, nbi_distance(start, nbi_block_used_end(arena, block)));
        if (block == arena->current) return;
        start = block->next->base;
    }
}

static void rewind_to(nb_arena *arena, const nb_arena_mark *mark) {
    run_cleanups(arena, mark->cleanups);
    note_peak(arena);
    if (arena->is_checked) poison_since(arena, mark);
    arena->current = mark->block;
    arena->cursor = mark->cursor;
    arena->used_before_bytes = mark->used_before_bytes;
    arena->tally = 0;
    arena->requested_bytes = mark->requested_bytes;
    arena->allocation_count = mark->allocation_count;
    set_limit(arena);
}

void nbi_arena_paint(nb_arena *arena, unsigned char byte, size_t size_bytes) {
    size_t room = nbi_distance(arena->cursor, nbi_block_usable_end(arena->current));
    size_t painted = nbi_size_min(room, size_bytes);
    if (arena->is_checked) nbi_unpoison(arena->cursor, painted);
    if (painted != 0) memset(arena->cursor, byte, painted);
    if (arena->is_checked) nbi_poison_fresh(arena->cursor, painted);
}

nb_arena_mark nb_arena_save(const nb_arena *arena) {
    if (nbi_arena_check_caller(arena, __func__) != NB_OK) return (nb_arena_mark){0};
    return (nb_arena_mark){
        .block = arena->current,
        .cursor = arena->cursor,
        .cleanups = arena->cleanups,
        .used_before_bytes = arena->used_before_bytes,
        .requested_bytes = nbi_arena_requested(arena),
        .allocation_count = nbi_arena_allocations(arena),
        .generation = arena->generation,
    };
}

// After a rewind to an older mark the note may have run and be gone, though new blocks have covered the mark's place.
static bool is_cleanup_pending(const nb_arena *arena, const nb_arena_cleanup *wanted) {
    const nb_arena_cleanup *node = arena->cleanups;
    while (node != NULL && node != wanted) node = node->next;
    return node == wanted;
}

// The mark's block is compared, not followed: it may have been freed by a trim after a rewind to an older mark.
static bool is_mark_reachable(const nb_arena *arena, const nb_arena_mark *mark) {
    if (mark->generation != arena->generation || !is_cleanup_pending(arena, mark->cleanups)) return false;
    for (const nb_arena_block *block = &arena->first;; block = block->next) {
        if (block == mark->block)
            return mark->cursor >= block->base && mark->cursor <= nbi_block_used_end(arena, block);
        if (block == arena->current) return false;
    }
}

nb_result nb_arena_rewind(nb_arena *arena, nb_arena_mark mark) {
    nb_result result = nbi_arena_check_caller(arena, __func__);
    if (result != NB_OK) return result;
    if (!is_mark_reachable(arena, &mark)) {
        return NBI_FAIL(&arena->hooks, NB_ITEM_ARENA_STALE, NB_ERR_STALE,
                        "%s: the mark lies behind a reset, a rewind or in another arena", arena->label);
    }
    rewind_to(arena, &mark);
    return NB_OK;
}

// Chained blocks behind the current one, as far as keep_bytes does not need them.
static bool trim_blocks(nb_arena *arena, size_t keep_bytes) {
    size_t kept = arena->used_before_bytes + nbi_block_capacity(arena->current);
    nb_arena_block **link = &arena->current->next;
    for (; *link != NULL && kept < keep_bytes; link = &(*link)->next) kept += nbi_block_capacity(*link);
    bool has_freed = *link != NULL;
    for (nb_arena_block *block = *link; block != NULL;) {
        nb_arena_block *next = block->next;
        block_destroy(arena, block);
        block = next;
    }
    *link = NULL;
    return has_freed;
}

// Whole commit steps of the first block above both keep_bytes and what is in use.
static bool trim_pages(nb_arena *arena, size_t keep_bytes) {
    nb_arena_block *first = &arena->first;
    size_t committed = nbi_distance(first->base, first->committed);
    if (!arena->owns_pages || keep_bytes >= committed) return false;
    size_t needed = nbi_size_max(keep_bytes, nbi_distance(first->base, nbi_block_used_end(arena, first)));
    size_t target = round_up(needed, COMMIT_STEP_BYTES);
    if (target >= committed) return false;
    // Where the OS refuses, the pages stay usable and nothing changes.
    if (nbi_pages_decommit(first->base + target, committed - target) != NB_OK) return false;
    first->committed = first->base + target;
    return true;
}

static void trim(nb_arena *arena, size_t keep_bytes) {
    bool has_freed = trim_blocks(arena, keep_bytes);
    bool has_decommitted = trim_pages(arena, keep_bytes);
    if (has_freed || has_decommitted) arena->steady_since = arena->reset_count;
    set_limit(arena);
}

nb_result nb_arena_trim(nb_arena *arena, size_t keep_bytes) {
    nb_result result = nbi_arena_check_caller(arena, __func__);
    if (result == NB_OK) trim(arena, keep_bytes);
    return result;
}

// Gives memory back only when it has neither grown nor shrunk for a whole ring of frames, and only when half of it or
// more would go: a load that swings never pays for pages twice in a row.
static void shrink_if_idle(nb_arena *arena) {
    if (arena->keeps_committed || arena->reset_count - arena->steady_since < NB_ARENA_PEAK_COUNT) return;
    arena->steady_since = arena->reset_count;
    size_t largest = 0;
    size_t second = 0;
    nbi_arena_largest_peaks(arena, &largest, &second);
    if (largest <= nbi_arena_committed(arena) / 2) trim(arena, largest);
}

static void reset(nb_arena *arena) {
    nb_arena_mark start = {.block = &arena->first, .cursor = arena->first.base};
    rewind_to(arena, &start);
    arena->peaks[arena->reset_count % NB_ARENA_PEAK_COUNT] = arena->frame_peak_bytes;
    arena->frame_peak_bytes = 0;
    ++arena->reset_count;
    ++arena->generation;
    arena->is_full_reported = false;
    shrink_if_idle(arena);
}

nb_result nb_arena_reset(nb_arena *arena) {
    nb_result result = nbi_arena_check_caller(arena, __func__);
    if (result == NB_OK) result = check_unmanaged(arena, __func__);
    if (result == NB_OK) reset(arena);
    return result;
}

static void deinit(nb_arena *arena) {
    nb_arena_mark start = {.block = &arena->first, .cursor = arena->first.base};
    rewind_to(arena, &start);
    trim_blocks(arena, 0);
    nb_arena_block *first = &arena->first;
    if (arena->is_checked) nbi_unpoison(first->base, nbi_distance(first->base, first->committed));
    if (arena->owns_pages) nbi_pages_release(first->base, reserved_bytes(first));
    *arena = (nb_arena){0};
}

nb_result nb_arena_deinit(nb_arena *arena) {
    if (arena == NULL || arena->generation == 0) return NB_OK;
    nb_result result = nbi_arena_check_caller(arena, __func__);
    if (result == NB_OK) result = check_unmanaged(arena, __func__);
    if (result == NB_OK) deinit(arena);
    return result;
}

void nbi_arena_reset_managed(nb_arena *arena) { reset(arena); }

void nbi_arena_deinit_managed(nb_arena *arena) { deinit(arena); }
