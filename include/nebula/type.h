// SPDX-License-Identifier: MIT
#pragma once

// Types as data: the struct of a table's row, described once by a list of its members. Columns, padding, layout,
// reports and saves follow from that list. The one rule: list every member, because state that is in no column is lost.
//
//     typedef struct pose { float x, y; } pose;
//     NB_STRUCT(pose, NB_FIELD(x), NB_FIELD(y))
//     typedef struct ship { pose at; uint32_t owner; } ship;
//     NB_ROW(ship, NB_COLUMN_OF(at, pose, NB_INTERPOLATE), NB_COLUMN(owner, NB_PLAIN))
//
// The macros only fill in plain data, so other languages fill in the same structs.

#include "nebula/hooks.h"
#include "nebula/types.h"

// A row for as long as it lives: {table, generation, slot}. Zero is null. A despawned entity is never valid again,
// unless the state is rewound to where it lived.
typedef struct nb_entity {
    uint64_t value;
} nb_entity;

// The kind of a member. NB_KIND_BYTES is anything without a kind of its own, such as an array or a struct without a
// description. An enum has the kind of its integer in C, and is NB_KIND_BYTES in C++.
typedef enum nb_kind {
    NB_KIND_BYTES = 0,
    NB_KIND_BOOL,
    NB_KIND_I8,
    NB_KIND_U8,
    NB_KIND_I16,
    NB_KIND_U16,
    NB_KIND_I32,
    NB_KIND_U32,
    NB_KIND_I64,
    NB_KIND_U64,
    NB_KIND_F32,
    NB_KIND_F64,
    NB_KIND_ENTITY,
    NB_KIND_STRUCT, // nb_member.type describes it
    NB_KIND_COUNT,
} nb_kind;

// How a table keeps a member. Bits, none of them one of nb_column_flags.
#define NB_PLAIN 0u        // simulated: hashed, saved, rewound, and copied into snapshots
#define NB_INTERPOLATE 16u // and its value before the newest tick is kept
#define NB_TICK_ONLY 32u   // simulated, but in no snapshot: jobs cannot read it
#define NB_LOCAL 64u       // of this machine: neither hashed nor saved, and in snapshots

struct nb_type;

typedef struct nb_member {
    const char *name;
    uint32_t offset_bytes, size_bytes; // in the struct
    uint32_t align_bytes;              // of its C type, at most NB_CACHE_LINE
    uint32_t flags;                    // NB_PLAIN and the others; 0 in a struct of NB_STRUCT
    nb_kind kind;
    const struct nb_type *(*type)(void); // of NB_KIND_STRUCT; else NULL
} nb_member;

typedef struct nb_type {
    const char *name;    // of the struct
    uint32_t size_bytes; // with the padding at its end
    uint32_t member_count;
    const nb_member *members; // in any order
} nb_type;

// Values in a row, at most, those in its structs counted one by one: 64 columns with four values each.
#define NB_TYPE_VALUE_COUNT_MAX 256u

// Structs inside structs, at most: deeper ones are refused.
#define NB_TYPE_DEPTH_MAX 8u

// --- private: the type of an expression, and the kind of a member ---

#if defined(__cplusplus)
extern "C++" { // also where a host includes this in a block of extern "C"
#include <type_traits>
#define NBI_TYPEOF(expression) std::remove_reference_t<decltype(expression)>
#define NBI_CAST(type, expression) static_cast<type>(expression)
#define NBI_NULL nullptr
template <class T> struct nbi_kind_of { static constexpr nb_kind value = NB_KIND_BYTES; };
#define NBI_KIND_ROW(type, kind) \
    template <> struct nbi_kind_of<type> { static constexpr nb_kind value = kind; }
NBI_KIND_ROW(bool, NB_KIND_BOOL);
NBI_KIND_ROW(int8_t, NB_KIND_I8);
NBI_KIND_ROW(uint8_t, NB_KIND_U8);
NBI_KIND_ROW(int16_t, NB_KIND_I16);
NBI_KIND_ROW(uint16_t, NB_KIND_U16);
NBI_KIND_ROW(int32_t, NB_KIND_I32);
NBI_KIND_ROW(uint32_t, NB_KIND_U32);
NBI_KIND_ROW(int64_t, NB_KIND_I64);
NBI_KIND_ROW(uint64_t, NB_KIND_U64);
NBI_KIND_ROW(float, NB_KIND_F32);
NBI_KIND_ROW(double, NB_KIND_F64);
NBI_KIND_ROW(nb_entity, NB_KIND_ENTITY);
#undef NBI_KIND_ROW
}
#define NBI_KIND_OF(type, member) nbi_kind_of<decltype(type::member)>::value
#else
#define NBI_TYPEOF(expression) __typeof__(expression)
#define NBI_CAST(type, expression) ((type)(expression))
#define NBI_NULL NULL
#define NBI_KIND_OF(type, member)         \
    _Generic(((type *)NULL)->member, bool \
             : NB_KIND_BOOL, int8_t       \
             : NB_KIND_I8, uint8_t        \
             : NB_KIND_U8, int16_t        \
             : NB_KIND_I16, uint16_t      \
             : NB_KIND_U16, int32_t       \
             : NB_KIND_I32, uint32_t      \
             : NB_KIND_U32, int64_t       \
             : NB_KIND_I64, uint64_t      \
             : NB_KIND_U64, float         \
             : NB_KIND_F32, double        \
             : NB_KIND_F64, nb_entity     \
             : NB_KIND_ENTITY, default    \
             : NB_KIND_BYTES)
#endif

#if defined(__GNUC__)
#define NBI_GENERATED static inline __attribute__((unused))
#else
#define NBI_GENERATED static inline
#endif

// For sizeof, typeof and alignof alone: never evaluated.
#define NBI_OF(type) NBI_CAST(type *, NBI_NULL)

#define NBI_MEMBER(member, flags, kind, type)                                                                      \
    {                                                                                                              \
#member, NBI_CAST(uint32_t, offsetof(nb_row, member)), NBI_CAST(uint32_t, sizeof(NBI_OF(nb_row)->member)), \
            NBI_CAST(uint32_t, NB_ALIGNOF(NBI_TYPEOF(NBI_OF(nb_row)->member))), flags, kind, type                  \
    }

#define NBI_TYPE(struct_type, ...)                                                                     \
    NBI_GENERATED const nb_type *struct_type##_type(void) {                                            \
        typedef struct_type nb_row;                                                                    \
        static const nb_member members[] = {__VA_ARGS__};                                              \
        static const nb_type type = {#struct_type, NBI_CAST(uint32_t, sizeof(nb_row)),                 \
                                     NBI_CAST(uint32_t, sizeof members / sizeof members[0]), members}; \
        return &type;                                                                                  \
    }

// --- declarations ---

// A member of a struct of NB_STRUCT, by its name.
#define NB_FIELD(member) NBI_MEMBER(member, NB_PLAIN, NBI_KIND_OF(nb_row, member), NBI_NULL)

// A member that is a struct of NB_STRUCT itself: NB_FIELD_OF(at, pose).
#define NB_FIELD_OF(member, struct_type) NBI_MEMBER(member, NB_PLAIN, NB_KIND_STRUCT, struct_type##_type)

// A column: a member of a row, and how its table keeps it.
#define NB_COLUMN(member, flags) NBI_MEMBER(member, flags, NBI_KIND_OF(nb_row, member), NBI_NULL)

// A column of a struct of NB_STRUCT: NB_COLUMN_OF(at, pose, NB_INTERPOLATE).
#define NB_COLUMN_OF(member, struct_type, flags) NBI_MEMBER(member, flags, NB_KIND_STRUCT, struct_type##_type)

// Describes a struct that is a member of others: makes pose_type().
#define NB_STRUCT(struct_type, ...) NBI_TYPE(struct_type, __VA_ARGS__)

// Describes the row of a table: makes ship_type(), for nb_table_desc.type.
#define NB_ROW(struct_type, ...) NBI_TYPE(struct_type, __VA_ARGS__)

NB_EXTERN_C_BEGIN

// Checks a description: each byte of the struct is in one member, or is padding that alignment asks for. A member that
// was left out is found, unless it lies where padding would be. hooks may be NULL; the log names type and bytes.
// Thread: any. Owner: nothing. Fails: NB_ERR_MISUSE (NULL, no name, bytes in no member or in two, another size than the
// struct inside), NB_ERR_RANGE (a member outside of the struct, deeper than NB_TYPE_DEPTH_MAX).
NB_API nb_result nb_type_check(const nb_type *type, const nb_hooks *hooks);

NB_EXTERN_C_END
