// SPDX-License-Identifier: MIT
// Linux: the program's own variables, where the loader has put them, and their names, from the symbol tables of the
// files that they come from.

#if defined(__linux__)

#define _GNU_SOURCE

#include "platform.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// --- which memory ---

typedef struct run_list {
    nbi_program_run *runs;
    uint32_t count, count_max;
    bool is_later; // the program itself comes first
} run_list;

typedef struct bounds {
    uintptr_t begin, end;
} bounds;

static bool is_inside(bounds outer, uintptr_t address) { return address >= outer.begin && address < outer.end; }

static bounds segment_of(const struct dl_phdr_info *object, const ElfW(Phdr) * header) {
    uintptr_t begin = (uintptr_t)object->dlpi_addr + (uintptr_t)header->p_vaddr;
    return (bounds){begin, begin + (uintptr_t)header->p_memsz};
}

static bool begins_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

// Nebula has nothing to find in itself, and the system's libraries write what they like.
static bool is_foreign(const struct dl_phdr_info *object) {
    if (begins_with(object->dlpi_name, "/lib") || begins_with(object->dlpi_name, "/usr/lib")) return true;
    if (object->dlpi_name[0] != '/') return true; // the kernel's own
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && is_inside(segment_of(object, header), (uintptr_t)nbi_program_runs))
            return true;
    }
    return false;
}

// What the loader writes: relocated once and then read-only, or each function's address at its first call.
static bounds loader_table(const struct dl_phdr_info *object, const ElfW(Dyn) * entry) {
    uintptr_t table = 0, size_bytes = 0;
    for (; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_PLTGOT) table = (uintptr_t)entry->d_un.d_ptr;
        if (entry->d_tag == DT_PLTRELSZ) size_bytes = (uintptr_t)entry->d_un.d_val / sizeof(ElfW(Rela));
    }
    if (table != 0 && table < (uintptr_t)object->dlpi_addr) table += (uintptr_t)object->dlpi_addr;
    return (bounds){table, table + (size_bytes + 3) * sizeof(void *)};
}

static void list_add(run_list *list, uintptr_t begin, uintptr_t end) {
    if (begin >= end || list->count == list->count_max) return;
    list->runs[list->count++] = (nbi_program_run){(const unsigned char *)begin, end - begin};
}

// The segment but for what the loader writes, which begins it.
static void list_segment(run_list *list, bounds segment, const bounds *loader, uint32_t loader_count) {
    uintptr_t at = segment.begin;
    for (uint32_t i = 0; i < loader_count; ++i) {
        if (!is_inside(segment, loader[i].begin)) continue;
        if (loader[i].begin > at) list_add(list, at, loader[i].begin);
        if (loader[i].end > at) at = loader[i].end;
    }
    // Whole words are compared.
    at = (at + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    list_add(list, at, segment.end / sizeof(uint64_t) * sizeof(uint64_t));
}

static int list_object(struct dl_phdr_info *object, size_t size_bytes, void *user) {
    run_list *list = user;
    bounds loader[2] = {{0, 0}, {0, 0}}; // read-only first, as it lies in the file
    (void)size_bytes;
    bool is_program = !list->is_later;
    list->is_later = true;
    if (!is_program && is_foreign(object)) return 0;
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        bounds segment = segment_of(object, header);
        if (header->p_type == PT_GNU_RELRO) loader[0] = segment;
        if (header->p_type == PT_DYNAMIC) loader[1] = loader_table(object, (const ElfW(Dyn) *)segment.begin);
    }
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        bool is_writable = header->p_type == PT_LOAD && (header->p_flags & PF_W) != 0;
        if (is_writable) list_segment(list, segment_of(object, header), loader, 2);
    }
    return list->count == list->count_max;
}

uint32_t nbi_program_runs(nbi_program_run *runs, uint32_t count_max) {
    run_list list = {.runs = runs, .count_max = count_max};
    if (count_max != 0) dl_iterate_phdr(list_object, &list);
    return list.count;
}

// --- reading it ---

#if defined(__GNUC__) && !defined(__clang__)
#define UNWATCHED __attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize_undefined))
#elif defined(__clang__)
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "memory")))
#else
#define UNWATCHED
#endif

// Word by word and volatile: a call of memcpy would be watched by a sanitizer, which knows of the gaps between
// variables and of other threads.
UNWATCHED void nbi_program_read(void *to, const unsigned char *from, size_t size_bytes) {
    uint64_t *words = to;
    const volatile uint64_t *source = (const volatile uint64_t *)(const void *)from;
    for (size_t i = 0; i < size_bytes / sizeof(uint64_t); ++i) words[i] = source[i];
}

// --- names ---

// A file's symbols are read so many at a time.
#define SYMBOL_CHUNK 256

// More than any program has; what a damaged file says is not believed.
#define SYMBOL_COUNT_MAX ((uint64_t)1 << 24)

typedef struct found_object {
    const void *address;
    uintptr_t base;
    char path[512];
    bool is_later, is_found;
} found_object;

static int find_object(struct dl_phdr_info *object, size_t size_bytes, void *user) {
    found_object *found = user;
    (void)size_bytes;
    bool is_program = !found->is_later;
    found->is_later = true;
    for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        bounds segment = segment_of(object, header);
        if (header->p_type != PT_LOAD || !is_inside(segment, (uintptr_t)found->address)) continue;
        found->base = (uintptr_t)object->dlpi_addr;
        found->is_found = true;
        snprintf(found->path, sizeof found->path, "%s", is_program ? "/proc/self/exe" : object->dlpi_name);
        return 1;
    }
    return 0;
}

static bool read_at(int file, void *bytes, size_t size_bytes, uint64_t offset) {
    return pread(file, bytes, size_bytes, (off_t)offset) == (ssize_t)size_bytes;
}

// The table of all symbols, or of those that others link to where a file was stripped, and the names that belong to it.
static bool find_table(int file, ElfW(Shdr) * table, ElfW(Shdr) * names) {
    ElfW(Ehdr) head;
    ElfW(Shdr) section;
    bool is_found = false;
    if (!read_at(file, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return false;
    if (head.e_shentsize != sizeof section) return false;
    for (ElfW(Half) i = 0; i < head.e_shnum; ++i) {
        if (!read_at(file, &section, sizeof section, head.e_shoff + (uint64_t)i * sizeof section)) return false;
        bool is_better = section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && !is_found);
        if (!is_better || section.sh_entsize != sizeof(ElfW(Sym)) || section.sh_link >= head.e_shnum) continue;
        *table = section;
        is_found = read_at(file, names, sizeof *names, head.e_shoff + (uint64_t)section.sh_link * sizeof section);
        if (is_found && section.sh_type == SHT_SYMTAB) return true;
    }
    return is_found;
}

static bool is_of(const ElfW(Sym) * symbol, uintptr_t address) {
    bool is_variable = (symbol->st_info & 15) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF;
    return is_variable && address >= symbol->st_value && address - symbol->st_value < symbol->st_size;
}

static bool find_symbol(int file, uintptr_t address, ElfW(Sym) * out, ElfW(Shdr) * names) {
    ElfW(Shdr) table = {0};
    ElfW(Sym) symbols[SYMBOL_CHUNK];
    if (!find_table(file, &table, names)) return false;
    uint64_t count = table.sh_size / sizeof symbols[0];
    for (uint64_t i = 0; i < count && i < SYMBOL_COUNT_MAX; i += SYMBOL_CHUNK) {
        uint64_t left = count - i < SYMBOL_CHUNK ? count - i : SYMBOL_CHUNK;
        if (!read_at(file, symbols, (size_t)left * sizeof symbols[0], table.sh_offset + i * sizeof symbols[0]))
            return false;
        for (uint64_t j = 0; j < left; ++j) {
            if (!is_of(&symbols[j], address)) continue;
            *out = symbols[j];
            return true;
        }
    }
    return false;
}

static void read_name(int file, const ElfW(Shdr) * names, const ElfW(Sym) * symbol, nbi_program_symbol *out) {
    ssize_t length = pread(file, out->name, sizeof out->name - 1, (off_t)(names->sh_offset + symbol->st_name));
    out->name[length > 0 ? length : 0] = '\0';
}

bool nbi_program_name(const void *address, nbi_program_symbol *out) {
    found_object object = {.address = address};
    dl_iterate_phdr(find_object, &object);
    int file = object.is_found ? open(object.path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return false;
    ElfW(Shdr) names;
    ElfW(Sym) symbol;
    bool is_named = find_symbol(file, (uintptr_t)address - object.base, &symbol, &names);
    if (is_named) {
        *out = (nbi_program_symbol){.begin = (const unsigned char *)(object.base + (uintptr_t)symbol.st_value),
                                    .size_bytes = (size_t)symbol.st_size};
        read_name(file, &names, &symbol, out);
    }
    close(file);
    return is_named && out->name[0] != '\0';
}

size_t nbi_program_offset(const void *address) {
    found_object object = {.address = address};
    dl_iterate_phdr(find_object, &object);
    return (size_t)((uintptr_t)address - object.base);
}

#endif
