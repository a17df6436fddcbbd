// SPDX-License-Identifier: MIT
// The one allocator of device memory: a few large blocks for each memory type, cut into pieces. Drivers allow few
// allocations and take long for each, so an object gets a part of one; what is large gets a block of its own.

#include "vulkan.h"

#include "nebula/report.h"

// Large enough for a thousand chunk meshes; small enough that a half empty one does no harm.
#define BLOCK_BYTES ((uint64_t)32 << 20)

// Below this a block is not made smaller where memory is short.
#define BLOCK_BYTES_MIN ((uint64_t)64 << 10)

// Where there is a limit, blocks are so small that it has room for as many: kinds of memory, each with one half empty.
#define BLOCK_COUNT_FAIR 16u

// How many answers about the budget come from what is known: drivers read files for it.
#define BUDGET_AGE_MAX 64u

void nbi_vulkan_memory_open(nbi_vulkan *v, uint64_t bytes_max, bool has_budget) {
    nbi_vulkan_memory *m = &v->memory;
    v->vk.GetPhysicalDeviceMemoryProperties(v->physical, &m->types);
    m->has_budget = has_budget;
    m->bytes_max = bytes_max != 0 ? bytes_max : UINT64_MAX;
    m->block_bytes_max = BLOCK_BYTES;
    while (m->block_bytes_max > m->bytes_max / BLOCK_COUNT_FAIR && m->block_bytes_max > BLOCK_BYTES_MIN)
        m->block_bytes_max /= 2;
    m->budget_age = BUDGET_AGE_MAX;
}

static void block_free(nbi_vulkan *v, nbi_vulkan_block *block) {
    v->memory.held_bytes -= block->size_bytes;
    v->memory.budget_age = BUDGET_AGE_MAX;
    nbi_ranges_unblock(&v->memory.ranges, block->first);
    // Mapped memory is unmapped with it.
    v->vk.FreeMemory(v->device, block->memory, NULL);
    *block = (nbi_vulkan_block){0};
}

void nbi_vulkan_memory_close(nbi_vulkan *v) {
    for (uint32_t i = 0; i < NBI_VULKAN_BLOCK_COUNT_MAX; ++i) {
        if (v->memory.blocks[i].memory != VK_NULL_HANDLE) block_free(v, &v->memory.blocks[i]);
    }
}

// Blocks that nothing is in any more are kept for what comes next, until memory is short.
static bool empty_blocks_free(nbi_vulkan *v) {
    bool has_freed = false;
    for (uint32_t i = 0; i < NBI_VULKAN_BLOCK_COUNT_MAX; ++i) {
        nbi_vulkan_block *block = &v->memory.blocks[i];
        if (block->memory == VK_NULL_HANDLE || block->used_bytes != 0) continue;
        block_free(v, block);
        has_freed = true;
    }
    return has_freed;
}

// --- memory types ---

static uint32_t bits_count(uint32_t bits) {
    uint32_t count = 0;
    for (; bits != 0; bits &= bits - 1) ++count;
    return count;
}

// The type that has all it must have and most of what would be good; of equals the first, as drivers put the best in
// front.
static bool type_find(const nbi_vulkan_memory *m, uint32_t allowed, nbi_vulkan_use use, uint32_t *out) {
    VkMemoryPropertyFlags must = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryPropertyFlags good = 0;
    if (use == NBI_VULKAN_USE_DEVICE) must = 0, good = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    if (use == NBI_VULKAN_USE_READBACK) good = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    // Types that need features of their own, or that only some images may have.
    const VkMemoryPropertyFlags special =
        ~(VkMemoryPropertyFlags)(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                 VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    uint32_t best = 0;
    for (uint32_t i = 0; i < m->types.memoryTypeCount; ++i) {
        VkMemoryPropertyFlags flags = m->types.memoryTypes[i].propertyFlags;
        if ((allowed & 1u << i) == 0 || (flags & must) != must || (flags & special) != 0) continue;
        uint32_t score = 1 + bits_count(flags & good);
        if (score <= best) continue;
        best = score;
        *out = i;
    }
    return best > 0;
}

// --- blocks ---

static nbi_vulkan_block *block_unused(nbi_vulkan_memory *m) {
    for (uint32_t i = 0; i < NBI_VULKAN_BLOCK_COUNT_MAX; ++i) {
        if (m->blocks[i].memory == VK_NULL_HANDLE) return &m->blocks[i];
    }
    return NULL;
}

static VkResult block_allocate(nbi_vulkan *v, nbi_vulkan_block *block) {
    const nbi_vulkan_memory *m = &v->memory;
    // Drivers may not be asked for more than there is.
    uint64_t heap_bytes = m->types.memoryHeaps[m->types.memoryTypes[block->type].heapIndex].size;
    if (block->size_bytes > m->bytes_max - m->held_bytes || block->size_bytes > heap_bytes)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = block->size_bytes,
                                 .memoryTypeIndex = block->type};
    VkResult result = v->vk.AllocateMemory(v->device, &info, NULL, &block->memory);
    if (result != VK_SUCCESS) block->memory = VK_NULL_HANDLE;
    return result;
}

// What the CPU sees stays mapped as long as it lives.
static VkResult block_map(nbi_vulkan *v, nbi_vulkan_block *block, nbi_vulkan_use use) {
    if (use == NBI_VULKAN_USE_DEVICE) return VK_SUCCESS;
    VkResult result = v->vk.MapMemory(v->device, block->memory, 0, VK_WHOLE_SIZE, 0, &block->mapped);
    if (result == VK_SUCCESS) return result;
    v->vk.FreeMemory(v->device, block->memory, NULL);
    block->memory = VK_NULL_HANDLE;
    return result;
}

static nb_result no_memory(nbi_vulkan *v, VkResult result, uint64_t size_bytes) {
    if (result == VK_ERROR_DEVICE_LOST) return nbi_vulkan_fail(v, result, "vkAllocateMemory");
    return nb_report_throttled(
        &v->hooks, &v->throttle, 0, false, NB_ITEM_VULKAN_MEMORY, NB_ERR_MEMORY, "vulkan",
        "no %llu bytes of device memory: %s; %llu are held, in use %llu of them; destroy buffers "
        "or images",
        nb_llu(size_bytes), nbi_vulkan_result_name(result), nb_llu(v->memory.held_bytes), nb_llu(v->memory.used_bytes));
}

// A block for at least size_bytes. Where memory is short it is smaller than it would be.
static nb_result block_create(nbi_vulkan *v, uint64_t size_bytes, const nbi_vulkan_block *like, nbi_vulkan_use use,
                              nbi_vulkan_block **out) {
    nbi_vulkan_memory *m = &v->memory;
    nbi_vulkan_block *unused = block_unused(m);
    if (unused == NULL || m->ranges.unused_count < 3) return no_memory(v, VK_ERROR_TOO_MANY_OBJECTS, size_bytes);
    nbi_vulkan_block block = *like;
    block.size_bytes = block.is_single ? size_bytes : m->block_bytes_max;
    VkResult result = block_allocate(v, &block);
    while (result != VK_SUCCESS && block.size_bytes / 2 >= size_bytes && block.size_bytes / 2 >= BLOCK_BYTES_MIN) {
        block.size_bytes /= 2;
        result = block_allocate(v, &block);
    }
    if (result != VK_SUCCESS && empty_blocks_free(v)) {
        block.size_bytes = size_bytes;
        result = block_allocate(v, &block);
    }
    if (result == VK_SUCCESS) result = block_map(v, &block, use);
    if (result != VK_SUCCESS) return no_memory(v, result, size_bytes);
    block.first = nbi_ranges_block(&m->ranges, block.size_bytes);
    m->held_bytes += block.size_bytes;
    m->budget_age = BUDGET_AGE_MAX;
    *unused = block;
    *out = unused;
    return NB_OK;
}

// --- pieces ---

static bool piece_take(nbi_vulkan_memory *m, nbi_vulkan_block *block, const VkMemoryRequirements *needs,
                       nbi_vulkan_piece *out) {
    if (block->size_bytes - block->used_bytes < needs->size) return false;
    uint32_t range = nbi_ranges_take(&m->ranges, block->first, needs->size, needs->alignment);
    if (range == NBI_RANGE_NONE) return false;
    uint64_t offset = m->ranges.items[range].offset;
    *out = (nbi_vulkan_piece){.memory = block->memory,
                              .offset = offset,
                              .size_bytes = needs->size,
                              .mapped = block->mapped != NULL ? (unsigned char *)block->mapped + offset : NULL,
                              .block = (uint32_t)(block - m->blocks),
                              .range = range};
    block->used_bytes += needs->size;
    m->used_bytes += needs->size;
    return true;
}

static bool is_alike(const nbi_vulkan_block *a, const nbi_vulkan_block *b) {
    return a->type == b->type && a->has_images == b->has_images && a->is_single == b->is_single;
}

nb_result nbi_vulkan_memory_take(nbi_vulkan *v, const VkMemoryRequirements *needs, nbi_vulkan_use use, bool is_image,
                                 nbi_vulkan_piece *out) {
    nbi_vulkan_memory *m = &v->memory;
    nbi_vulkan_block like = {.has_images = is_image, .is_single = needs->size > m->block_bytes_max / 4};
    if (!type_find(m, needs->memoryTypeBits, use, &like.type))
        return no_memory(v, VK_ERROR_FEATURE_NOT_PRESENT, needs->size);
    for (uint32_t i = 0; i < NBI_VULKAN_BLOCK_COUNT_MAX && !like.is_single; ++i) {
        nbi_vulkan_block *block = &m->blocks[i];
        // A block of memory that the CPU sees is mapped by its first use, so its uses do not mix.
        bool is_same_use = (block->mapped != NULL) == (use != NBI_VULKAN_USE_DEVICE);
        if (block->memory == VK_NULL_HANDLE || !is_alike(block, &like) || !is_same_use) continue;
        if (piece_take(m, block, needs, out)) return NB_OK;
    }
    nbi_vulkan_block *block = NULL;
    nb_result result = block_create(v, needs->size, &like, use, &block);
    if (result != NB_OK) return result;
    return piece_take(m, block, needs, out) ? NB_OK : no_memory(v, VK_ERROR_TOO_MANY_OBJECTS, needs->size);
}

void nbi_vulkan_memory_give(nbi_vulkan *v, nbi_vulkan_piece *piece) {
    if (piece->memory == VK_NULL_HANDLE) return;
    nbi_vulkan_block *block = &v->memory.blocks[piece->block];
    nbi_ranges_give(&v->memory.ranges, piece->range);
    block->used_bytes -= piece->size_bytes;
    v->memory.used_bytes -= piece->size_bytes;
    // The first range of a block is always the same record: neighbours join to the front.
    if (block->used_bytes == 0 && block->is_single) block_free(v, block);
    *piece = (nbi_vulkan_piece){0};
}

// --- budget ---

static uint64_t budget_ask(const nbi_vulkan *v) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                    .pNext = &budget};
    v->vk.GetPhysicalDeviceMemoryProperties2(v->physical, &properties);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < properties.memoryProperties.memoryHeapCount; ++i) {
        bool is_local = (properties.memoryProperties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
        if (is_local) bytes += budget.heapBudget[i];
    }
    return bytes;
}

void nbi_vulkan_memory_get(void *self, uint64_t *used_bytes, uint64_t *budget_bytes) {
    nbi_vulkan *v = (nbi_vulkan *)self;
    nbi_vulkan_memory *m = &v->memory;
    if (m->has_budget && m->budget_age++ >= BUDGET_AGE_MAX) {
        m->budget_bytes = budget_ask(v);
        m->budget_age = 0;
    }
    uint64_t known = m->budget_bytes;
    // A limit of our own counts where it is the smaller one.
    if (m->bytes_max != UINT64_MAX && (known == 0 || m->bytes_max < known)) known = m->bytes_max;
    *used_bytes = m->used_bytes;
    *budget_bytes = known;
}
